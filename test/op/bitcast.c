#include "case.h"

static const HnCase bitcast[] = {
    { "f32[2]={1,-2}", "to=6", "i32[2]={1065353216,-1073741824}" },
    { "i64[1]={4611686018427387904}", "to=11", "f64[1]={2}" },
    { "u16={15360}", "to=10", "f16={1}" },
    { "u8[3]={0,1,7}", "to=9", "bool[3]={0,1,1}" },
    { "i8[0]={}", "to=2", "u8[0]={}" },
    { "f32[2]", "to=11", .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[2]", "to=8", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(bitcast, "BitCast", bitcast);
