#include "case.h"

static const HnCase causalconv[] = {
    { "f32[1,1,3]={1,2,3} !f32[1,1,2]={10,1}", NULL, "f32[1,1,3]={1,12,23} f32[1,1,1]={3}" },
    { "f32[1,2,1]={1,2} !f32[2,1,3]={1,2,3,4,5,6} f32[2]={0.5,-1} f32[1,2,2]={1,0,0,1}", NULL,
      "f32[1,2,1]={4.5,16} f32[1,2,2]={0,1,1,2}" },
    { "f32[1,1,2]={0,1} !f32[1,1,1]={1}", "activation='silu'", "f32[1,1,2]={0,0.7310586} f32[1,1,0]={}" },
    { "f32[2,3,9] !f32[3,1,4] f32[3]", "activation='swish'", "f32[2,3,9] f32[2,3,3]" },
    { "f32[2,3,1] !f32[3,1,4] - f32[2,3,3]", NULL, "f32[2,3,1] f32[2,3,3]" },
    { "f32[2,3,0] !f32[3,1,2]", NULL, "f32[2,3,0]={} f32[2,3,1]={0,0,0,0,0,0}" },
    { "f32[2,3,1] f32[2,1,4]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3,1] f32[3,1,4] - f32[2,3,4]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3,1] f32[3,1,0]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[3,1,1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3,1] f32[3,1,1]", "activation='relu'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(causalconvwithstate, "CausalConvWithState", causalconv);
