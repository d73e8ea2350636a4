#include "case.h"

static const HnCase equal_cases[] = {
    { "i32[3]={1,2,3} i32[3]={1,0,3}", NULL, "bool[3]={true,false,true}" },
    { "f32[2]={nan,1} f32={1}", NULL, "bool[2]={false,true}" },
    { "bool[2]={true,false} bool[2]={true,true}", NULL, "bool[2]={true,false}", .opset = 7 },
    { "i64[2,2]={1,2,3,4} i64[2]={1,3}", "broadcast=1 axis=0", "bool[2,2]={true,false,true,false}", .opset = 6 },
    { "u64[2]={18446744073709551615,0} u64[1]={18446744073709551615}", NULL, "bool[2]={true,false}" },
    { "f32[0] f32[1]", NULL, "bool[0]={}" },
    { "f32[3,4,5] f32[5]", NULL },
    { "f32[2] i32[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(equal, "Equal", equal_cases);

static const HnCase greater_cases[] = {
    { "f32[4]={1,2,3,nan} f32[4]={2,2,2,2}", NULL, "bool[4]={false,false,true,false}" },
    { "i8[2]={-1,1} i8={0}", NULL, "bool[2]={false,true}", .opset = 9 },
    { "u8[2]={255,1} u8={127}", NULL, "bool[2]={true,false}" },
    { "f32[2,2]={1,2,3,4} f32[2]={2,2}", "broadcast=1", "bool[2,2]={false,false,true,true}", .opset = 1 },
    { "f32[3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(greater, "Greater", greater_cases);

static const HnCase greaterorequal_cases[] = {
    { "f32[4]={1,2,3,nan} f32[4]={2,2,2,2}", NULL, "bool[4]={false,true,true,false}", .opset = 12 },
    { "i16[2,1]={1,2} i16[2]={1,2}", NULL, "bool[2,2]={true,false,true,true}" },
    { "f16={1} f16={1}", NULL, "bool={true}" },
};
HN_CASES(greaterorequal, "GreaterOrEqual", greaterorequal_cases);

static const HnCase less_cases[] = {
    { "f32[4]={1,2,3,nan} f32[4]={2,2,2,2}", NULL, "bool[4]={true,false,false,false}" },
    { "i64[2]={-9223372036854775808,1} i64={0}", NULL, "bool[2]={true,false}" },
    { "f32[2,2]={1,2,3,4} f32[1]={2}", "broadcast=1", "bool[2,2]={true,false,false,false}", .opset = 6 },
};
HN_CASES(less, "Less", less_cases);

static const HnCase lessorequal_cases[] = {
    { "f32[4]={1,2,3,nan} f32[4]={2,2,2,2}", NULL, "bool[4]={true,true,false,false}", .opset = 12 },
    { "u32[2]={0,4294967295} u32[2]={0,1}", NULL, "bool[2]={true,false}" },
    { "f32[2,3] f32[1,3]", NULL },
};
HN_CASES(lessorequal, "LessOrEqual", lessorequal_cases);
