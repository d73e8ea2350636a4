#include "case.h"

static const HnCase add_cases[] = {
    { "f32[2,3]={1,2,3,4,5,6} f32[3]={10,20,30}", NULL, "f32[2,3]={11,22,33,14,25,36}" },
    { "f32[2,1]={1,2} f32[1,3]={10,20,30}", NULL, "f32[2,3]={11,21,31,12,22,32}" },
    { "f32[3,1,5,1] f32[4,1,6]", NULL },
    { "f32={1} f32={2}", NULL, "f32={3}" },
    { "f32[0,3] f32[3]", NULL, "f32[0,3]={}" },
    { "f32[1] f32[2,0]", NULL, "f32[2,0]={}" },
    { "f32[2,0] f32[2,1]", NULL, "f32[2,0]={}" },
    { "u8[2]={200,1} u8[2]={100,2}", NULL, "u8[2]={44,3}" },
    { "i32[1]={2147483647} i32[1]={1}", NULL, "i32[1]={-2147483648}", .opset = 7 },
    /* before 7: the second operand laid against axes of the first */
    { "f32[2,3,2]={0,0,0,0,0,0,0,0,0,0,0,0} f32[3]={1,2,3}", "broadcast=1 axis=1",
      "f32[2,3,2]={1,1,2,2,3,3,1,1,2,2,3,3}", .opset = 6 },
    { "f32[2,3]={1,2,3,4,5,6} f32[3]={10,20,30}", "broadcast=1", "f32[2,3]={11,22,33,14,25,36}", .opset = 6 },
    { "f32[2,2]={1,2,3,4} f32[2]={10,20}", "broadcast=1 axis=0", "f32[2,2]={11,12,23,24}", .opset = 1 },
    { "f32[2,2]={1,2,3,4} f32[1,1]={10}", "broadcast=1", "f32[2,2]={11,12,13,14}", .opset = 6 },
    { "f32[2,3] f32[3]", NULL, .opset = 6, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[3]", "broadcast=1 axis=0", .opset = 6, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] f32[2,3]", "broadcast=1", .opset = 6, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[4]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] f64[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[3,1,37] f32[5,1]", NULL }, /* both broadcast */
    { "f32[2,3,4,5] f32[3,1,5]", NULL },
    { "f32[1] f32[4,9]", NULL },
    { "i64[3,1] i64[1,21]", NULL },
    { "f32[5003] f32[5003]", NULL }, /* more than one block of a device takes, and some behind whole vectors */
    { "f32[4101] f32={3}", NULL },
    { "f32[1] f32[2,1031]", NULL },
    { "f32[37,68] f32[68]", NULL },
    { "f32[8,9,20] f32[9,1]", NULL },
    { "f32[9,1] f32[5,9,24]", NULL },
    { "f32[72] f32[41,72]", NULL },
    { "f32[40,16] f32[40,1]", NULL },
    { "f32[3,4,8] f32[4,8]", NULL },
    { "f32[3,4,8] f32[3,1,8]", NULL },
};
HN_CASES(add, "Add", add_cases);

static const HnCase sub_cases[] = {
    { "f32[3]={1,2,3} f32[3]={3,2,1}", NULL, "f32[3]={-2,0,2}" },
    { "u8[2]={1,5} u8[1]={2}", NULL, "u8[2]={255,3}" },
    { "i64[1]={-9223372036854775807} i64[1]={2}", NULL, "i64[1]={9223372036854775807}" },
    { "f32[3,4,5] f32[5]", NULL },
    { "f32[2,2]={1,2,3,4} f32={1}", "broadcast=1", "f32[2,2]={0,1,2,3}", .opset = 6 },
};
HN_CASES(sub, "Sub", sub_cases);

static const HnCase mul_cases[] = {
    { "f32[3]={1,2,3} f32[3]={4,5,6}", NULL, "f32[3]={4,10,18}" },
    { "u16[1]={65535} u16[1]={65535}", NULL, "u16[1]={1}" },
    { "i64[1]={4611686018427387904} i64[1]={3}", NULL, "i64[1]={-4611686018427387904}" },
    { "f32[2,1,3] f32[4,1]", NULL },
    { "f16[2]={300,0.5} f16={300}", NULL, "f16[2]={inf,150}" },
};
HN_CASES(mul, "Mul", mul_cases);

static const HnCase div_cases[] = {
    { "f32[4]={3,4,1,-1} f32[4]={1,2,0,0}", NULL, "f32[4]={3,2,inf,-inf}" },
    { "i32[4]={-3,3,7,-2147483648} i32[4]={2,-2,0,-1}", NULL, "i32[4]={-1,-1,0,-2147483648}" }, /* towards zero */
    { "u8[2]={200,7} u8[1]={3}", NULL, "u8[2]={66,2}" },
    { "i8[2]={-128,-128} i8[2]={-1,2}", NULL, "i8[2]={-128,-64}" },
    { "f32[2,3] f32[2,1]@1:2", NULL, .opset = 7 },
    { "f32[2,2]={2,4,6,8} f32[2]={2,4}", "broadcast=1 axis=0", "f32[2,2]={1,2,1.5,2}", .opset = 6 },
};
HN_CASES(div, "Div", div_cases);

static const HnCase mod_cases[] = {
    { "i32[6]={-4,7,5,4,-7,8} i32[6]={2,-3,8,-2,3,5}", NULL, "i32[6]={0,-2,5,0,2,3}", .opset = 13 },
    { "i32[6]={-4,7,5,4,-7,8} i32[6]={2,-3,8,-2,3,5}", "fmod=1", "i32[6]={0,1,5,0,-1,3}", .opset = 13 },
    { "f32[3]={-4.25,7.5,5} f32[3]={2,-3.25,8}", "fmod=1", "f32[3]={-0.25,1,5}", .opset = 10 },
    { "f32[4]={-4.25,7.5,-1,1} f32[4]={2,-3.25,inf,-inf}", NULL, "f32[4]={1.75,-2.25,inf,-inf}" }, /* since 28 */
    { "i64[3]={5,-9223372036854775808,3} i64[3]={0,-1,2}", NULL, "i64[3]={0,0,1}" },
    { "u8[2,3]={0,1,2,3,4,5} u8={2}", NULL, "u8[2,3]={0,1,0,1,0,1}" },
    { "f32[2] f32[2]", NULL, .opset = 13, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2] f32[2]", "fmod=2", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(mod, "Mod", mod_cases);
