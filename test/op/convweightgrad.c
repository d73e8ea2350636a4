#include "case.h"

static const HnCase convweightgrad[] = {
    { "f32[1,1,3]={1,2,3} f32[1,1,2]={1,10} f32[1,1,2]", NULL, "f32[1,1,2]={21,32}" },
    { "f32[1,1,3]={1,2,3} f32[1,1,3]={1,10,100} f32[1,1,3]", "pads=[1,1]", "f32[1,1,3]={210,321,32}" },
    { "f32[2,3,6,7] f32[2,4,6,7] f32[4,3,3,3]", "pads=[1,1,1,1]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[2,4,9,8] f32[2,6,4,3] f32[6,2,3,3]", "strides=[2,2] group=2 pads=[0,0,0,0]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[0,1,3] f32[0,1,2] f32[1,1,2]", NULL, "f32[1,1,2]={0,0}" },
    { "f32[1,1,3] f32[1,1,3] f32[1,1,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(convweightgrad, "ConvWeightGrad", convweightgrad);
