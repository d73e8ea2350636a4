#include "case.h"

static const HnCase max_cases[] = {
    { "f32[3]={3,2,1} f32[3]={1,4,4} f32[3]={2,5,3}", NULL, "f32[3]={3,5,4}" },
    { "f32[3]={3,2,1}", NULL, "f32[3]={3,2,1}" },
    { "f32[2,1]={1,3} f32[2]={2,nan} f32={0}", NULL, "f32[2,2]={2,nan,3,nan}", .opset = 8 },
    { "i8[2]={-128,127} i8={0}", NULL, "i8[2]={0,127}" },
    { "u64[2]={0,18446744073709551615} u64[1]={1}", NULL, "u64[2]={1,18446744073709551615}", .opset = 12 },
    { "f32[3,4] f32[1,4] f32[3,1]", NULL },
    { "f32[0] f32[1]", NULL, "f32[0]={}" },
    { "f32[2] f32[1]", NULL, .opset = 6, .refused = TRUE, .code = HN_ERROR_SHAPE }, /* no broadcast before 8 */
    { "f32[2] f64[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[2] f32[3] f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(max, "Max", max_cases);

static const HnCase min_cases[] = {
    { "f32[3]={3,2,1} f32[3]={1,4,4} f32[3]={2,5,0}", NULL, "f32[3]={1,2,0}" },
    { "f16[2]={1,nan} f16[2]={2,2}", NULL, "f16[2]={1,nan}" },
    { "i64[2]={-9223372036854775808,5} i64={3}", NULL, "i64[2]={-9223372036854775808,3}" },
    { "f32[3,4] f32[3,4]", NULL, .opset = 1 },
};
HN_CASES(min, "Min", min_cases);

static const HnCase sum_cases[] = {
    { "f32[3]={3,0,2} f32[3]={1,3,4} f32[3]={2,6,6}", NULL, "f32[3]={6,9,12}" },
    { "f32[3]={3,0,2}", NULL, "f32[3]={3,0,2}", .opset = 6 },
    { "f32[1]={1} f32[1]={16777216} f32[1]={1} f32[1]={-16777216}", NULL, "f32[1]={2}" }, /* not lost on the way */
    { "f32[2,1,3] f32[4,1]", NULL },
    { "f32[0,2] f32[2]", NULL, "f32[0,2]={}" },
    { "f32[2] f32[2,2]", NULL, .opset = 6, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "i32[2] i32[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(sum, "Sum", sum_cases);

static const HnCase mean_cases[] = {
    { "f32[3]={3,0,2} f32[3]={1,3,4} f32[3]={2,6,6}", NULL, "f32[3]={2,3,4}" },
    { "f64[1]={1} f64[2]={2,3}", NULL, "f64[2]={1.5,2}" },
    { "f32[3] f32[3]", "consumed_inputs=[0,0]", .opset = 1 },
};
HN_CASES(mean, "Mean", mean_cases);
