#include "case.h"

static const HnCase convtranspose[] = {
    /* the specification's example in one dimension */
    { "f32[1,1,3]={0,1,2} f32[1,2,3]={1,1,1,1,1,1}", NULL, "f32[1,2,5]={0,1,3,3,2,0,1,3,3,2}" },
    { "f32[1,1,2]={1,10} f32[1,1,3]={1,2,3}", "strides=[2]", "f32[1,1,5]={1,2,13,20,30}" },
    { "f32[1,1,2]={1,10} f32[1,1,3]={1,2,3}", "strides=[2] output_padding=[1]", "f32[1,1,6]={1,2,13,20,30,0}" },
    { "f32[1,1,2]={1,10} f32[1,1,3]={1,2,3} f32[1]={100}", "strides=[2] pads=[1,2]", "f32[1,1,2]={102,113}" },
    /* one too many: at the end for SAME_UPPER only */
    { "f32[1,1,2]={1,10} f32[1,1,3]={1,2,3}", "strides=[2] auto_pad='SAME_UPPER'", "f32[1,1,4]={1,2,13,20}" },
    { "f32[1,1,2]={1,10} f32[1,1,3]={1,2,3}", "strides=[2] auto_pad='SAME_LOWER'", "f32[1,1,4]={2,13,20,30}" },
    { "f32[1,1,2]={1,10} f32[1,1,3]={1,2,3}", "strides=[2] output_shape=[4]", "f32[1,1,4]={2,13,20,30}" },
    { "f32[1,1,2]={1,10} f32[1,1,3]={1,2,3}", "strides=[2] output_shape=[4]", "f32[1,1,4]={2,13,20,30}", .opset = 1 },
    { "f32[1,2,2]={1,2,3,4} f32[2,1,2]={1,1,1,-1}", "group=2 dilations=[2]", "f32[1,2,4]={1,2,1,2,3,4,-3,-4}" },
    { "f32[2,4,5,6] f32[4,3,3,2] f32[6]", "group=2 strides=[2,1] pads=[1,0,0,1] output_padding=[1,0]" },
    { "f32[1,2,2,3,2] f32[2,2,2,2,3]", "dilations=[1,2,1]" },
    /* constant weights: phases of strides, dilations that share factors with them, borders, groups */
    { "f32[2,4,5,6] !f32[4,3,3,2] f32[6]", "group=2 strides=[2,1] pads=[1,0,0,1] output_padding=[1,0]" },
    { "f32[1,3,4,19] !f32[3,5,2,5] f32[5]", "strides=[1,2] pads=[0,2,0,2]" },
    { "f32[1,3,4,9] !f32[3,5,3,4]", "strides=[3,2] dilations=[2,3] pads=[1,2,3,0] output_padding=[2,1]" },
    { "f32[1,3,4,9] !f32[3,5,3,4]", "strides=[2,4] dilations=[4,2]" },
    { "f32[1,2,7] !f32[2,3,2] f32[3]", "strides=[5]" },
    { "f32[1,2,7] !f32[2,3,2]", "strides=[3] output_shape=[24]" },
    { "f32[1,2,2] !f32[2,3,9]", "pads=[4,4]" },
    { "f32[1,16,5,33] !f32[16,1,3,3] f32[16]", "group=16 dilations=[2,1] pads=[4,1,4,1]" },
    { "f32[1,32,24,24] !f32[32,16,4,4] f32[16]", "strides=[2,2] pads=[1,1,1,1]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[1,2,2,3,2] !f32[2,2,2,2,3]", "dilations=[1,2,1] strides=[2,1,2]" },
    /* many channels: phases of three axes, groups */
    { "f32[1,3,3,4,3] f32[3,18,2,3,2] f32[18]", "strides=[2,1,2] pads=[0,1,0,1,0,1] output_padding=[1,0,0]" },
    { "f32[2,6,5,7] f32[6,17,3,4]", "group=2 strides=[3,2] dilations=[2,2] pads=[1,2,0,1]" },
    /* few output channels: sums that overlap, that are cut off, that leave results alone */
    { "f32[2,40,150] !f32[40,1,64] f32[1]", "strides=[16] pads=[48,40]", .rtol = 1e-4, .atol = 1e-4 },
    /* taps that lie side by side in the result */
    { "f32[2,24,9,13] !f32[24,1,2,2] f32[1]", "strides=[2,2]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[1,24,5,7] !f32[24,2,3,3]", "strides=[3,3] output_padding=[1,2]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[1,24,5,7] !f32[24,1,3,2]", "strides=[1,2] pads=[1,1,0,0]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[1,70,330] !f32[70,3,40]", "strides=[8] dilations=[3] output_padding=[7]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[1,64,200] !f32[64,1,5]", "strides=[9] output_padding=[8]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[2,48,21,19] !f32[48,3,4,4] f32[3]", "strides=[2,2] pads=[1,1,1,1]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[1,96,40,23] !f32[96,2,5,3]", "strides=[3,2] dilations=[2,1] pads=[2,1,5,3]", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[1,64,1,150] !f32[64,1,1,32]", "strides=[1,8]", .rtol = 1e-4, .atol = 1e-4 },
    /* a source that is 0 nearly everywhere, they say: it need not be */
    { "f32[1,1,3]={0,1,-0.0} !f32[1,1,2]={2,3}", "few=1", "f32[1,1,4]={0,2,3,0}" },
    { "f32[2,21,6,7] !f32[21,40,3,3]", "pads=[1,1,1,1] few=1" },
    { "f32[3,6,5,7] !f32[6,17,3,4]",
      "group=2 strides=[3,2] dilations=[2,2] pads=[1,2,0,1] output_padding=[1,1] few=1" },
    { "f32[2,5,3,4,5] !f32[5,9,2,3,3]", "strides=[1,2,1] few=1" },
    { "f32[2,4,6] !f32[4,3,3] f32[3]", "few=1" },
    { "f32[0,2,4] f32[2,3,3]", NULL, "f32[0,3,6]={}" },
    { "f32[1,2,4] f32[3,3,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,2] f32[2,1,1]", "pads=[3,3]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,2] f32[2,1,1]", "output_shape=[1,2,3,4]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,2,2] f32[2,1,1]", "group=3", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(convtranspose, "ConvTranspose", convtranspose);
