#include "case.h"

static const HnCase maxpoolgrad[] = {
    { "f32[1,1,2]={1,2} f32[1,1,4]={3,5,5,4} f32[1,1,2]={5,5}", "kernel_shape=[2] strides=[2]",
      "f32[1,1,4]={0,1,2,0}" },
    { "f32[1,1,3]={1,2,4} f32[1,1,4]={3,5,5,4} f32[1,1,3]={5,5,5}", "kernel_shape=[2]", /* the first of equal ones */
      "f32[1,1,4]={0,3,4,0}" },
    { "f32[1,1,2,1]={1,2} f32[1,1,3,1]={-1,-2,-3} f32[1,1,2,1]={-1,-3}",
      "kernel_shape=[2,1] strides=[2,1] pads=[0,0,1,0]", "f32[1,1,3,1]={1,0,2}" },
    { "f32[1,1,2,2]={1,2,3,4} f32[1,1,3,3]={1,9,2,3,9,8,7,9,8} f32[1,1,2,2]={9,9,9,9}", "kernel_shape=[2,2]",
      "f32[1,1,3,3]={0,3,0,0,7,0,0,0,0}" }, /* first along the last axis, then along the one before */
    { "f32[0,1,3] f32[0,1,4] f32[0,1,3]", "kernel_shape=[2]", "f32[0,1,4]={}" },
    { "f32[1,1,4] f32[1,1,4] f32[1,1,3]", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,3] f32[1,1,4] f32[1,1,3]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(maxpoolgrad, "MaxPoolGrad", maxpoolgrad);
