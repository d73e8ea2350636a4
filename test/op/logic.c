#include "case.h"

static const HnCase and_cases[] = {
    { "bool[4]={0,0,1,1} bool[4]={0,1,0,1}", NULL, "bool[4]={0,0,0,1}" },
    { "bool[2,2]={1,1,0,0} bool[2]={1,0}", NULL, "bool[2,2]={1,0,0,0}" },
    { "bool[2,2]={1,1,1,1} bool[2]={1,0}", "broadcast=1 axis=0", "bool[2,2]={1,1,0,0}", .opset = 1 },
    { "i32[1] i32[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(and, "And", and_cases);

static const HnCase or_cases[] = {
    { "bool[4]={0,0,1,1} bool[4]={0,1,0,1}", NULL, "bool[4]={0,1,1,1}" },
    { "bool[2,1]={1,0} bool[1,2]={1,0}", NULL, "bool[2,2]={1,1,1,0}" },
    { "bool[2,2]={0,0,0,0} bool[2,1]={1,0}", "broadcast=1", "bool[2,2]={1,1,0,0}", .opset = 6 },
};
HN_CASES(or, "Or", or_cases);

static const HnCase xor_cases[] = {
    { "bool[4]={0,0,1,1} bool[4]={0,1,0,1}", NULL, "bool[4]={0,1,1,0}" },
    { "bool[0,2] bool[2]", NULL, "bool[0,2]={}" },
    { "bool={1} bool={1}", NULL, "bool={0}", .opset = 7 },
};
HN_CASES(xor, "Xor", xor_cases);

static const HnCase bitwiseand_cases[] = {
    { "i32[3]={-1,12,7} i32[3]={5,10,-8}", NULL, "i32[3]={5,8,0}" },
    { "u8[2,1]={15,240} u8[2]={60,255}", NULL, "u8[2,2]={12,15,48,240}" },
    { "f32[1] f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(bitwiseand, "BitwiseAnd", bitwiseand_cases);

static const HnCase bitwiseor_cases[] = {
    { "i16[3]={-1,12,0} i16[3]={5,10,0}", NULL, "i16[3]={-1,14,0}" },
    { "u64[2]={1,9223372036854775808} u64={2}", NULL, "u64[2]={3,9223372036854775810}" },
};
HN_CASES(bitwiseor, "BitwiseOr", bitwiseor_cases);

static const HnCase bitwisexor_cases[] = {
    { "i8[3]={-1,12,0} i8[3]={5,10,0}", NULL, "i8[3]={-6,6,0}" },
    { "u32[2]={4294967295,1} u32={1}", NULL, "u32[2]={4294967294,0}" },
};
HN_CASES(bitwisexor, "BitwiseXor", bitwisexor_cases);

static const HnCase bitshift_cases[] = {
    { "u8[3]={16,4,1} u8[3]={1,2,3}", "direction='RIGHT'", "u8[3]={8,1,0}", .opset = 11 },
    { "u8[4]={16,4,1,1} u8[4]={1,2,3,8}", "direction='LEFT'", "u8[4]={32,16,8,0}" },
    { "i8[4]={-8,-8,-8,8} i8[4]={1,-1,8,8}", "direction='RIGHT'", "i8[4]={-4,-1,-1,0}" },
    { "i32[3]={-1,3,1} i32[3]={31,-1,32}", "direction='LEFT'", "i32[3]={-2147483648,0,0}" },
    { "u64[1]={1} u64[2]={63,64}", "direction='LEFT'", "u64[2]={9223372036854775808,0}" },
    { "u8[1] u8[1]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "u8[1] u8[1]", "direction='UP'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(bitshift, "BitShift", bitshift_cases);
