#include "case.h"

static const HnCase where_cases[] = {
    { "bool[2,2]={1,0,1,1} f32[2,2]={1,2,3,4} f32[2,2]={9,8,7,6}", NULL, "f32[2,2]={1,8,3,4}" },
    { "bool[2]={1,0} i64={1} i64={-1}", NULL, "i64[2]={1,-1}", .opset = 9 },
    { "bool={1} u8[2,1]={1,2} u8[3]={7,8,9}", NULL, "u8[2,3]={1,1,1,2,2,2}" },
    { "bool[2,1]={1,0} f16[1,2]={1,2} f16={0}", NULL, "f16[2,2]={1,2,0,0}" },
    { "bool[2]={0,1} bool[2]={1,1} bool[2]={0,0}", NULL, "bool[2]={0,1}" },
    { "bool[3,1,5] f32[4,1] f32[5]", NULL },
    { "bool[0] f64[1] f64[1]", NULL, "f64[0]={}" },
    { "f32[2] f32[2] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "bool[2] f32[2] i32[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "bool[2] f32[3] f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "bool[3,1] f32[37] f32[3,37]", NULL },
    { "bool[2,19] f32 f32[2,1]", NULL },
    { "bool[4,33] i64[4,33] i64", NULL },
};
HN_CASES(where, "Where", where_cases);
