#include "case.h"

static const HnCase scaler[] = {
    { "f32[2,3]={1,2,3,4,5,6}", "offset=[1.0,2.0,3.0] scale=[2.0,0.5,1.0]", "f32[2,3]={0,0,0,6,1.5,3}" },
    { "f64[3]={1,2,3}", "offset=[1.0] scale=[2.0]", "f32[3]={0,2,4}" },
    { "i64[2,2]={1,2,3,4}", "offset=[0.5,0.5] scale=[2.0,4.0]", "f32[2,2]={1,6,5,14}" },
    { "i32[2,2]={1,2,3,4}", "scale=[2.0]", "f32[2,2]={2,4,6,8}" },
    { "f32[0,2]", "offset=[1.0]", "f32[0,2]={}" },
    { "f32[33,7]", "offset=[1.0,2.0,3.0,4.0,5.0,6.0,7.0] scale=[1.0,0.1,3.0,4.0,5.0,6.0,7.0]" },
    { "f32[2,3]", "offset=[1.0,2.0] scale=[1.0,1.0]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3]", "offset=[1.0,2.0] scale=[1.0,1.0,1.0]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(scaler, "Scaler", scaler);

static const HnCase imputer[] = {
    { "f32[2,2]={nan,1,2,nan}", "imputed_value_floats=[5.0,6.0] replaced_value_float=nan", "f32[2,2]={5,1,2,6}" },
    { "f32[2,2]={0,1,2,nan}", "imputed_value_floats=[5.0] replaced_value_float=0.0", "f32[2,2]={5,1,2,nan}" },
    { "i64[2,2]={-1,1,2,-1}", "imputed_value_int64s=[5,6] replaced_value_int64=-1", "i64[2,2]={5,1,2,6}" },
    { "f64[2]={nan,1}", "imputed_value_floats=[0.5] replaced_value_float=nan", "f64[2]={0.5,1}" },
    { "i32[2]={3,1}", "imputed_value_int64s=[7] replaced_value_int64=3", "i32[2]={7,1}" },
    { "f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2]", "imputed_value_int64s=[7]", .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[2,3]", "imputed_value_floats=[7.0,8.0]", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(imputer, "Imputer", imputer);

static const HnCase binarizer[] = {
    { "f32[2,2]={-1,0,0.5,nan}", NULL, "f32[2,2]={0,0,1,0}" },
    { "i64[3]={1,2,3}", "threshold=2.0", "i64[3]={0,0,1}" },
    { "f32[40,3]", "threshold=0.25" },
};
HN_CASES(binarizer, "Binarizer", binarizer);

static const HnCase normalizer[] = {
    { "f32[2,2]={3,4,0,0}", "norm='L2'", "f32[2,2]={0.6,0.8,0,0}" },
    { "f32[2,2]={-3,1,2,2}", "norm='L1'", "f32[2,2]={-0.75,0.25,0.5,0.5}" },
    { "f32[2,2]={-3,2,0,-1}", NULL, "f32[2,2]={-1.5,1,0,-1}" }, /* the largest number, which may be 0 */
    { "i64[2]={3,4}", "norm='L2'", "f32[2]={0.6,0.8}" },
    { "f32[0,3]", "norm='L1'", "f32[0,3]={}" },
    { "f32[21,13]", "norm='L2'" },
    { "f32[1,2,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(normalizer, "Normalizer", normalizer);
