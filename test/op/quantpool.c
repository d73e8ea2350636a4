#include "case.h"

#define OF " !f32={0.02} !u8={120} !f32={0.05} !u8={7}"

static const HnCase quantaveragepool[] = {
    /* 0.5 * the mean of (x - 2), in steps of 0.25 around 10 */
    { "u8[1,1,4]={2,4,6,3} f32={0.5} u8={2} f32={0.25} u8={10}", "kernel_shape=[2] strides=[2]", "u8[1,1,2]={12,15}" },
    { "u8[1,1,4]={2,4,6,3} f32={0.5} u8={2}", "whole=1", "f32[1,1,1]={0.875}" },
    { "u8[1,1,4]={2,4,6,3} f32={0.5} u8={2}", "whole=1 flat=1 hi=0.5", "f32[1,1]={0.5}" },
    /* padding counts, or not */
    { "u8[1,1,2]={4,6} f32={1} u8={2}", "kernel_shape=[2] pads=[1,1]", "f32[1,1,3]={2,3,4}" },
    { "u8[1,1,2]={4,6} f32={1} u8={2}", "kernel_shape=[2] pads=[1,1] count_include_pad=1", "f32[1,1,3]={1,3,2}" },
    /* halves go to the even number */
    { "u8[1,1,4]={0,1,1,2} f32={1} u8={0} f32={1}", "kernel_shape=[2] strides=[2]", "u8[1,1,2]={0,2}" },
    { "i8[1,2,2]={-128,-128,127,126} f32={1} i8={0} f32={1} i8={-1}", "whole=1", "i8[1,2,1]={-128,125}" },
    /* kernels */
    { "u8[2,70,9,13]" OF, "kernel_shape=[3,3] pads=[1,1,1,1]" },
    { "u8[1,64,9,13]" OF, "kernel_shape=[2,3] strides=[2,2] count_include_pad=1 pads=[1,0,0,2]" },
    { "i8[1,600,7,7] !f32={0.02} !i8={-100} !f32={0.05} !i8={7}", "whole=1 lo=0.0" },
    { "u8[3,130,20,21] !f32={0.02} !u8={120}", "whole=1 flat=1" },
    { "u8[1,5,20,21]" OF, "kernel_shape=[3,2] dilations=[2,3] ceil_mode=1 strides=[2,2]" },
    { "u8[1,3,9,7]" OF, "kernel_shape=[3,3] pads=[1,1,1,1]" },
    { "i8[2,8,9,7] !f32={0.02} !i8={-100} !f32={0.05} !i8={7}", "kernel_shape=[2,2] strides=[2,2]" },
    { "u8[1,15,9,7]" OF, "kernel_shape=[3,3]" },
    { "i8[1,17,9,7] !f32={0.02} !i8={-100}", "kernel_shape=[3,3]" },
    { "u8[1,24,9,7]" OF, "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]" },
    { "u8[1,33,20,21]" OF, "whole=1" },
    { "u8[1,58,9,7]" OF, "kernel_shape=[3,3]" },
    { "u8[1,20,31]" OF, "kernel_shape=[4] strides=[3]" },
    { "u8[1,20,5,6,7]" OF, "kernel_shape=[2,2,2] pads=[1,1,1,0,0,0]" },
    { "u8[1,1,5,6]" OF, "whole=1" },
    /* refused */
    { "u8[1,2] f32={1}", "whole=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "u8[1,1,2] f32={1}", "kernel_shape=[4]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "u8[1,1,2] f32={1}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "u8[1,1,2] f32={1}", "kernel_shape=[2] flat=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "u8[1,1,2] f32[2]", "whole=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(quantaveragepool, "QuantAveragePool", quantaveragepool);
