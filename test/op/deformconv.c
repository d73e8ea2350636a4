#include "case.h"

static const HnCase deformconv[] = {
    /* the specification's example: the offset moves two taps by half an element */
    { "f32[1,1,3,3]={0,1,2,3,4,5,6,7,8} f32[1,1,2,2]={1,1,1,1} "
      "f32[1,8,2,2]={0.5,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,-0.1,0,0,0,0,0,0,0,0}",
      "kernel_shape=[2,2]", "f32[1,1,2,2]={9.5,12,20,23.9}" },
    /* mask and bias; places outside are zero */
    { "f32[1,1,3]={1,2,3} f32[1,1,1]={2} f32[1,1,3]={0,0.5,9} f32[1]={10} f32[1,1,3]={1,0.5,1}", NULL,
      "f32[1,1,3]={12,12.5,10}" },
    { "f32[2,4,6,5] f32[4,2,3,2] f32[2,24,4,4]@-2:2 f32[4] f32[2,12,4,4]", "group=2 offset_group=2" },
    { "f64[2,4,4,4] f64[4,2,2,2] f64[2,16,3,3]@-1:1 f64[4] f64[2,8,3,3]", "group=2 offset_group=2" },
    { "f32[1,2,4,4,3] f32[1,2,2,2,2] f32[1,24,5,5,4]@-1:1", "pads=[1,1,1,1,1,1]" },
    { "f32[1,1,3,3] f32[1,1,2,2] f32[1,7,2,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,3,3] f32[1,1,2,2] f32[1,8,3,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,3,3,3] f32[1,3,2,2] f32[1,16,2,2]", "offset_group=2", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(deformconv, "DeformConv", deformconv);

static const HnCase deformconvgrad[] = {
    /* taps on an element, half way between two, and outside */
    { "f32[1,1,3]={1,2,4} f32[1,1,1]={2} f32[1,1,3]={0,0.5,9} f32[1,1,3]={1,0.5,1} f32[1,1,3]={1,1,1}", NULL,
      "f32[1,1,3]={2,0.5,0.5} f32[1,1,1]={2.5} f32[1,1,3]={2,2,0} f32[1,1,3]={2,6,0}" },
    { "f32[1,1,3]={1,2,4} f32[1,1,1]={2} f32[1,1,3]={0,0.5,9} - f32[1,1,3]={1,1,1}", NULL,
      "f32[1,1,3]={2,1,1} f32[1,1,1]={4} f32[1,1,3]={2,4,0}" },
    { "f32[2,4,6,5] f32[4,2,3,2] f32[2,24,4,4]@-2:2 f32[2,12,4,4] f32[2,4,4,4]", "group=2 offset_group=2", .n_out = 4 },
    { "f32[0,1,3] f32[1,1,1] f32[0,1,3] - f32[0,1,3]", NULL, "f32[0,1,3]={} f32[1,1,1]={0} f32[0,1,3]={}" },
    { "f32[1,1,3,3] f32[1,1,2,2] f32[1,8,2,2] - f32[1,1,3,2]", NULL, .n_out = 3, .refused = TRUE,
      .code = HN_ERROR_SHAPE },
    { "f32[1,1,3,3] f32[1,1,2,2] f32[1,7,2,2] - f32[1,1,2,2]", NULL, .n_out = 3, .refused = TRUE,
      .code = HN_ERROR_SHAPE },
};
HN_CASES(deformconvgrad, "DeformConvGrad", deformconvgrad);
