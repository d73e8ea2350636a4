#include "case.h"

static const HnCase maxunpool[] = {
    /* the specification's examples: a larger output has the unpooled tensor in its first corner */
    { "f32[1,1,2,2]={1,2,3,4} i64[1,1,2,2]={5,7,13,15}", "kernel_shape=[2,2] strides=[2,2]",
      "f32[1,1,4,4]={0,0,0,0,0,1,0,2,0,0,0,0,0,3,0,4}" },
    { "f32[1,1,2,2]={5,6,7,8} i64[1,1,2,2]={5,7,13,15} !i64[4]={1,1,5,5}", "kernel_shape=[2,2] strides=[2,2]",
      "f32[1,1,5,5]={0,0,0,0,0,0,5,0,6,0,0,0,0,0,0,0,7,0,8,0,0,0,0,0,0}" },
    { "f64[1,1,2]={3,4} i64[1,1,2]={0,2}", "kernel_shape=[3] strides=[2] pads=[1,1]", "f64[1,1,3]={3,0,4}" },
    { "f32[0,1,2] i64[0,1,2]={}", "kernel_shape=[2]", "f32[0,1,3]={}" },
    { "f32[1,1,2] i64[1,1,2]={0,3}", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2] i64[1,1,2]={0,-1}", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2] i64[1,1,2]={0,1} i64[3]={1,1,2}", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,2] i64[1,1,3]={0,1,2}", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(maxunpool, "MaxUnpool", maxunpool);
