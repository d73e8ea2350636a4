#include "case.h"

static const HnCase clip_cases[] = {
    { "f32[3]={-2,0,2} f32={-1} f32={1}", NULL, "f32[3]={-1,0,1}" },
    { "f32[3]={-2,0,6} f32={2} f32={1}", NULL, "f32[3]={1,1,1}" }, /* the maximum wins */
    { "f32[3]={-2,0,2} - f32={0}", NULL, "f32[3]={-2,0,0}" },
    { "f32[3]={-2,nan,2} f32={0}", NULL, "f32[3]={0,nan,2}" },
    { "i8[3]={-1,0,1} i8={0}", NULL, "i8[3]={0,0,1}", .opset = 12 },
    { "u64[2]={1,18446744073709551615} - u64={5}", NULL, "u64[2]={1,5}" },
    { "f32[3]={-2,0,2}", "min=-1.0 max=1.0", "f32[3]={-1,0,1}", .opset = 6 },
    { "f32[3]={-2,0,2}", "max=1.0", "f32[3]={-2,0,1}", .opset = 1 },
    { "f32[2,3,4]", NULL, .opset = 6 },
    { "f32[2,3] f32[1] f32={1}", NULL },
    { "f32[3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] f32={0}", NULL, .opset = 6, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "bool[3]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(clip, "Clip", clip_cases);
