#include "case.h"

static const HnCase instancenormalization[] = {
    /* {-1,0,1} and {2,3,4} have variance 2/3 */
    { "f64[1,2,1,3]={-1,0,1,2,3,4} f64[2]={1,1.5} f64[2]={0,1}", "epsilon=0.0",
      "f64[1,2,1,3]={-1.224744871391589,0,1.224744871391589,-0.8371173070873836,1,2.8371173070873836}" },
    { "f32[1,1,2]={1,3} f32[1]={2} f32[1]={1}", "epsilon=3.0", "f32[1,1,2]={0,2}", .opset = 6 },
    { "f32[1,1,2]={1,3} f32[1]={2} f32[1]={1}", "epsilon=3.0 consumed_inputs=[0]", "f32[1,1,2]={0,2}", .opset = 1 },
    { "f32[2,3,4,5] f32[3] f32[3]", NULL },
    { "f32[1,2,130,129] f32[2] f32[2]", NULL }, /* few large ones */
    { "f32[2,3,0] f32[3] f32[3]", NULL, "f32[2,3,0]={}" },
    { "f32[2,3,4] f32[4] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] f32[3] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(instancenormalization, "InstanceNormalization", instancenormalization);

static const HnCase groupnormalization[] = {
    { "f32[1,4]={1,3,5,9} f32[4]={1,2,3,4} f32[4]={0,0,0,1}", "num_groups=2 epsilon=0.0", "f32[1,4]={-1,2,-3,5}" },
    { "f32[1,4]={1,3,5,9} f32[2]={1,2} f32[2]={0,1}", "num_groups=2 epsilon=0.0", "f32[1,4]={-1,1,-1,3}",
      .opset = 18 }, /* a scale and bias per group */
    { "f32[2,6,3,3] f32[6] f32[6]", "num_groups=3" },
    { "f32[1,4,91,92] f32[4] f32[4]", "num_groups=2" },
    { "f32[2,6,5] f32[2] f32[2]", "num_groups=2", .opset = 20 },
    { "f32[2,4] f32[4] f32[4]", "num_groups=3", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,4] f32[2] f32[2]", "num_groups=2", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,4] f32[4] f32[4]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,4] f32[4] f32[4]", "num_groups=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(groupnormalization, "GroupNormalization", groupnormalization);
