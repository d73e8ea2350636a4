#include "case.h"

#define VECTORS "support_vectors=[1.0,0.0,0.0,1.0] "

static const HnCase svmregressor[] = {
    { "f32[2,2]={1,2,3,4}", VECTORS "n_supports=2 coefficients=[2.0,3.0] rho=[0.5]", "f32[2,1]={8.5,18.5}" },
    { "f32[1,2]={1,2}",
      VECTORS "n_supports=2 coefficients=[2.0,3.0] rho=[0.5] kernel_type='POLY' kernel_params=[1.0,1.0,2.0]",
      "f32[1,1]={35.5}" },
    { "f32[1,2]={1,2}",
      VECTORS "n_supports=2 coefficients=[2.0,3.0] rho=[0.5] kernel_type='RBF' kernel_params=[0.5,0.0,0.0]",
      "f32[1,1]={1.874308856}" },
    { "f32[1,2]={1,2}",
      VECTORS "n_supports=2 coefficients=[2.0,3.0] rho=[0.5] kernel_type='SIGMOID' kernel_params=[0.5,0.0,0.0]",
      "f32[1,1]={3.709016764}" },
    { "f32[2,2]={1,2,-3,-4}", VECTORS "n_supports=2 coefficients=[2.0,3.0] rho=[0.5] one_class=1", "f32[2,1]={1,-1}" },
    { "f32[1,2]={1,2}", "coefficients=[2.0,3.0] rho=[0.5]", "f32[1,1]={8.5}" },
    { "f32[1,2]", VECTORS "n_supports=3 coefficients=[2.0,3.0,1.0] rho=[0.5]", .refused = TRUE,
      .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,2]", VECTORS "n_supports=2 coefficients=[2.0] rho=[0.5]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,2]", VECTORS "n_supports=2 coefficients=[2.0,1.0]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(svmregressor, "SVMRegressor", svmregressor);

static const HnCase svmclassifier[] = {
    { "f32[2,2]={3,1,1,3}",
      VECTORS "vectors_per_class=[1,1] coefficients=[1.0,-1.0] rho=[0.5] classlabels_strings=['a','b']",
      "string[2]={'a','b'} f32[2,2]={-2.5,2.5,1.5,-1.5}" },
    { "f32[2,2]={3,1,1,3}", VECTORS "vectors_per_class=[1,1] coefficients=[1.0,-1.0] rho=[0.5] classlabels_ints=[7,9]",
      "i64[2]={7,9} f32[2,2]={-2.5,2.5,1.5,-1.5}" },
    { "f32[1,2]={3,1}",
      "vectors_per_class=[1,1,1] support_vectors=[1.0,0.0,0.0,1.0,1.0,1.0] "
      "coefficients=[1.0,-1.0,0.5,1.0,0.5,-1.0] rho=[0.5,0.25,0.125] classlabels_ints=[7,8,9]",
      "i64[1]={7} f32[1,3]={2.5,5.25,-3.375}" },
    { "f32[1,2]={3,1}", "coefficients=[1.0,-1.0,0.5,1.0] rho=[0.5] classlabels_ints=[7,9]",
      "i64[1]={9} f32[1,2]={2.5,3}" },
    { "f32[1,2]={3,1}",
      VECTORS "vectors_per_class=[1,1] coefficients=[1.0,-1.0] rho=[0.5] classlabels_ints=[7,9] "
              "prob_a=[-1.0] prob_b=[0.5]",
      "i64[1]={7} f32[1,2]={0.880797,0.119203}", .rtol = 1e-4 },
    { "f32[1,2]={3,1}", VECTORS "vectors_per_class=[1,1] coefficients=[1.0] rho=[0.5] classlabels_ints=[7,9]",
      .n_out = 2, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,2]={3,1}", VECTORS "vectors_per_class=[1,-1] coefficients=[1.0,1.0] rho=[0.5] classlabels_ints=[7,9]",
      .n_out = 2, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,2]={3,1}", VECTORS "vectors_per_class=[1,1] coefficients=[1.0,1.0] rho=[0.5] classlabels_ints=[7,9,11]",
      .n_out = 2, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(svmclassifier, "SVMClassifier", svmclassifier);
