#include "case.h"

static const HnCase softmaxgrad[] = {
    { "f32[2,2]={1,3,2,0} f32[2,2]={0.25,0.75,0.5,0.5}", NULL, "f32[2,2]={-0.375,0.375,0.5,-0.5}" },
    { "f32[2,2]={1,3,2,0} f32[2,2]={0.25,0.75,0.5,0.5}", "axis=0", "f32[2,2]={-0.0625,0.5625,0.375,-1.125}" },
    { "f32[1,2]={1,3} f32[1,2]={0,0}", "log=1", "f32[1,2]={-3,-1}" },
    { "f32[3,4,70] f32[3,4,70]", NULL, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[3,4,70] f32[3,4,70]", "axis=1 log=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[3,5,7,9] f32[3,5,7,9]", "axis=-3", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[0,3] f32[0,3]", NULL, "f32[0,3]={}" },
    { "f32[2,3] f32[2,4]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(softmaxgrad, "SoftmaxGrad", softmaxgrad);
