#include "case.h"

static const HnCase linearregressor[] = {
    { "f32[2,2]={1,2,3,4}", "targets=1 coefficients=[1.0,10.0] intercepts=[0.5]", "f32[2,1]={21.5,43.5}" },
    { "f64[2,2]={1,2,3,4}", "targets=2 coefficients=[1.0,10.0,-1.0,2.0]", "f32[2,2]={21,3,43,5}" },
    { "i64[2]={1,2}", "coefficients=[1.0,10.0]", "f32[1,1]={21}" },
    { "f32[1,2]={0,0}", "targets=2 coefficients=[1.0,1.0,1.0,1.0] post_transform='SOFTMAX'", "f32[1,2]={0.5,0.5}" },
    { "f32[50,20]",
      "targets=2 coefficients=[1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,1.0,1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,1.0,"
      "1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,1.0,1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,1.0] intercepts=[1.0,-1.0]" },
    { "f32[2,2]", "targets=3 coefficients=[1.0,2.0]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3]", "targets=1 coefficients=[1.0,2.0]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3]", "targets=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(linearregressor, "LinearRegressor", linearregressor);

static const HnCase linearclassifier[] = {
    { "f32[2,2]={1,2,3,-4}", "coefficients=[1.0,10.0] intercepts=[0.5] classlabels_strings=['no','yes']",
      "string[2]={'yes','no'} f32[2,2]={-20.5,21.5,37.5,-36.5}" },
    { "f32[2,2]={1,2,3,-4}",
      "coefficients=[1.0,10.0,-1.0,2.0,0.0,0.0] intercepts=[0.0,0.0,1.0] classlabels_ints=[4,5,6]",
      "i64[2]={4,6} f32[2,3]={21,3,1,-37,-11,1}" },
    { "f32[2,2]={1,2,3,-4}", "coefficients=[1.0,10.0] intercepts=[0.5] classlabels_ints=[4,5]",
      "i64[2]={5,4} f32[2,2]={-20.5,21.5,37.5,-36.5}" },
    { "f32[2,2]={1,2,3,-4}", "coefficients=[1.0,10.0] intercepts=[0.5]", "i64[2]={1,0} f32[2,1]={21.5,-36.5}" },
    { "f32[1,2]={0,0}",
      "coefficients=[1.0,10.0,1.0,1.0] intercepts=[0.0,0.0] classlabels_ints=[4,5] post_transform='LOGISTIC'",
      "i64[1]={4} f32[1,2]={0.5,0.5}" },
    { "f32[2,2]", "coefficients=[1.0,10.0,1.0,1.0] intercepts=[0.0,0.0] classlabels_ints=[4]", .n_out = 2,
      .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(linearclassifier, "LinearClassifier", linearclassifier);
