#include "case.h"

static const HnCase abs_cases[] = {
    { "f32[3,5]", NULL },
    { "f32[4]={-1.5,0,2,-inf}", NULL, "f32[4]={1.5,0,2,inf}" },
    { "i8[3]={-128,-1,127}", NULL, "i8[3]={-128,1,127}" }, /* the smallest has no positive */
    { "i64[1]={-9223372036854775807}", NULL, "i64[1]={9223372036854775807}" },
    { "u64[1]={18446744073709551615}", NULL, "u64[1]={18446744073709551615}" },
    { "f32[3,4,5]", NULL, .opset = 1 },
    { "bool[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(abs, "Abs", abs_cases);

static const HnCase neg_cases[] = {
    { "f32[2]={-4,2}", NULL, "f32[2]={4,-2}" },
    { "i32[3]={-2147483648,0,7}", NULL, "i32[3]={-2147483648,0,-7}" },
    { "f32[3,0]", NULL, "f32[3,0]={}", .opset = 6 },
    { "u8[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(neg, "Neg", neg_cases);

static const HnCase sign_cases[] = {
    { "f32[3,5]", NULL },
    { "f32[4]={-5,0,0.1,nan}", NULL, "f32[4]={-1,0,1,nan}" },
    { "i16[3]={-300,0,300}", NULL, "i16[3]={-1,0,1}", .opset = 9 },
    { "u32={4000000000}", NULL, "u32={1}" },
};
HN_CASES(sign, "Sign", sign_cases);

static const HnCase relu_cases[] = {
    { "f32[5003]", NULL }, /* more than one block of a device takes, and some behind whole vectors */
    { "f32[4]={-1,0,2,nan}", NULL, "f32[4]={0,0,2,nan}" },
    { "i8[3]={-128,0,127}", NULL, "i8[3]={0,0,127}" },
    { "f32[3,4,5]", NULL, .opset = 6 },
    { "f32[2]={-3,3}", "consumed_inputs=[0]", "f32[2]={0,3}", .opset = 1 },
    { "f32={-1}", NULL, "f32={0}" },
    { "u16[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(relu, "Relu", relu_cases);

static const HnCase erf_cases[] = {
    { "f32[4]={-1,0,1,inf}", NULL, "f32[4]={-0.8427008,0,0.8427008,1}" },
    { "f32[1,3,32,32]", NULL, .opset = 9 },
    { "i32[3]={-10,1,10}", NULL, "i32[3]={-1,0,1}" },
};
HN_CASES(erf, "Erf", erf_cases);

static const HnCase not_cases[] = {
    { "bool[3]={true,false,true}", NULL, "bool[3]={false,true,false}" },
    { "bool={false}", NULL, "bool={true}", .opset = 1 },
    { "i32[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(not, "Not", not_cases);

static const HnCase bitwisenot_cases[] = {
    { "i32[3]={0,-1,7}", NULL, "i32[3]={-1,0,-8}" },
    { "u16[2]={0,65280}", NULL, "u16[2]={65535,255}" },
    { "f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(bitwisenot, "BitwiseNot", bitwisenot_cases);

static const HnCase shrink_cases[] = {
    { "f32[5]={-2,-1,0,1,2}", "lambd=1.5", "f32[5]={-2,0,0,0,2}" },
    { "f32[5]={-2,-1,0,1,2}", "lambd=1.5 bias=1.5", "f32[5]={-0.5,0,0,0,0.5}" },
    { "i8[3]={-5,0,5}", "bias=2.0", "i8[3]={-3,0,3}" },
    { "f32[3,4]", NULL },
};
HN_CASES(shrink, "Shrink", shrink_cases);

static const HnCase isinf_cases[] = {
    { "f32[4]={-inf,inf,nan,1}", NULL, "bool[4]={true,true,false,false}" },
    { "f32[4]={-inf,inf,nan,1}", "detect_negative=0", "bool[4]={false,true,false,false}" },
    { "f64[2]={-inf,inf}", "detect_positive=0", "bool[2]={true,false}", .opset = 10 },
    { "f16[2]={-inf,0}", NULL, "bool[2]={true,false}" },
    { "f32[4]={-inf,inf,0,1}", "detect_negative=0 detect_positive=0", "bool[4]={false,false,false,false}" },
    { "f32[3,37]", NULL },
};
HN_CASES(isinf, "IsInf", isinf_cases);

static const HnCase isnan_cases[] = {
    { "f32[4]={-inf,nan,0,1}", NULL, "bool[4]={false,true,false,false}" },
    { "f64={nan}", NULL, "bool={true}", .opset = 9 },
    { "bf16[2]={nan,1}", NULL, "bool[2]={true,false}" },
    { "f32[3,37]", NULL },
    { "i32[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(isnan, "IsNaN", isnan_cases);
