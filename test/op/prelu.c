#include "case.h"

static const HnCase prelu_cases[] = {
    { "f32[4]={-1,-2,0,3} f32[4]={2,0.5,7,9}", NULL, "f32[4]={-2,-1,0,3}" },
    { "f32[2,2]={-1,-2,-3,4} f32[2]={2,3}", NULL, "f32[2,2]={-2,-6,-6,4}", .opset = 7 },
    { "f32[3,4,5] f32[4,1]", NULL },
    { "i32[3]={-2,2,-2147483648} i32={3}", NULL, "i32[3]={-6,2,-2147483648}", .opset = 9 },
    { "u32[2] u32[1]", NULL, "u32[2]" },
    { "f32[1,2,2]={-1,-1,-1,-1} f32[2]={2,3}", NULL, "f32[1,2,2]={-2,-2,-3,-3}", .opset = 6 }, /* one per channel */
    { "f32[2,3] f32[1]={0.5}", NULL, .opset = 1 },
    { "f32[0,2] f32[2]", NULL, "f32[0,2]={}" },
    { "f32[3] f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE }, /* not the reverse */
    { "f32[2,3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(prelu, "PRelu", prelu_cases);
