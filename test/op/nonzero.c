#include "case.h"

static const HnCase nonzero[] = {
    { "bool[2,2]={1,0,1,1}", NULL, "i64[2,3]={0,1,1,0,0,1}", .opset = 9 },
    { "f32[4]={0,-0.0,nan,2}", NULL, "i64[1,2]={2,3}" },
    { "f16[3]={-0.0,1,0}", NULL, "i64[1,1]={1}" },
    { "i64={5}", NULL, "i64[0,1]={}" },
    { "u8[2,0]", NULL, "i64[2,0]={}" },
};
HN_CASES(nonzero, "NonZero", nonzero);

static const HnCase compress[] = {
    { "f32[3,2]={1,2,3,4,5,6} bool[3]={0,1,1}", "axis=0", "f32[2,2]={3,4,5,6}", .opset = 9 },
    { "f32[3,2]={1,2,3,4,5,6} bool[2]={0,1}", "axis=-1", "f32[3,1]={2,4,6}", .opset = 11 },
    { "i8[3,2]={1,2,3,4,5,6} bool[5]={0,1,0,0,1}", NULL, "i8[2]={2,5}" },
    { "f32[3] bool[0]={}", "axis=0", "f32[0]={}" },
    { "u8={4} bool[1]={1}", NULL, "u8[1]={4}" },
    { "f32[2] bool[3]={0,0,1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2] bool[1,1]={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(compress, "Compress", compress);
