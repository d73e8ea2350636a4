#include "case.h"

static const HnCase onehot[] = {
    { "i64[3]={0,7,8} !i64={3} i32[2]={2,5}", NULL, "i32[3,3]={5,2,2,2,2,2,2,2,2}", .opset = 9 },
    { "i64[2]={1,-1} f32={3} f32[2]={0,1}", "axis=0", "f32[3,2]={0,0,1,0,0,1}" },
    { "i64[1]={-1} i64={2} f32[2]={0,1}", NULL, "f32[1,2]={0,0}", .opset = 9 }, /* negative ones were outside */
    { "f32[2]={1.9,0.5} i8[1]={2} bool[2]={0,1}", "axis=-2", "bool[2,2]={0,1,1,0}" },
    { "i64={1} i64={2} bf16[2]={0,1}", NULL, "bf16[2]={0,1}" },
    { "i64[2]={0,0} i64={0} f32[2]={0,1}", NULL, "f32[2,0]={}" },
    { "i64[2] i64={-1} f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64[2] i64={2} f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64[2] i64={2} f32[2]", "axis=3", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[3]={-9223372036854775808,9223372036854775807,1} !i64={2} f32[2]={0,1}", NULL, "f32[3,2]={0,0,0,0,0,1}" },
    { "f32[4]={nan,inf,-inf,1e30} !i64={2} u8[2]={7,9}", NULL, .rtol = 1 },
    { "i64[0,2] !i64={3} f32[2]", "axis=0", "f32[3,0,2]" },
    { "i64[2] !i64={0} f32[2]", NULL, "f32[2,0]" },
    { "i64[2] !i64={9223372036854775807} f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(onehot, "OneHot", onehot);
