#include "case.h"

#define X "f32[2,2,1]={1,2,3,6}" /* channel 0: 1 3, channel 1: 2 6 */

static const HnCase batchnormalization[] = {
    { "f32[4,3,5] f32[3] f32[3] f32[3] f32[3]@0.5:2", "training_mode=1", "f32[4,3,5]", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[4,3,5] f32[3] f32[3] f32[3] f32[3]@0.5:2", "epsilon=0.01", "f32[4,3,5]" },
    { X " f32[2]={1,10} f32[2]={0,1} f32[2]={1,2} f32[2]={4,16}", "epsilon=0.0", "f32[2,2,1]={0,1,1,11}" },
    { "f32[2]={1,3} f32[1]={2} f32[1]={1} f32[1]={1} f32[1]={1}", "epsilon=3.0", "f32[2]={1,3}" },
    /* training: mean 2 4, variance 1 4 */
    { X " f32[2]={1,10} f32[2]={0,1} f32[2]={1,2} f32[2]={4,16}", "epsilon=0.0 momentum=0.5 training_mode=1",
      "f32[2,2,1]={-1,-9,1,11} f32[2]={1.5,3} f32[2]={2.5,10}" },
    { X " f32[2]={1,10} f32[2]={0,1} f32[2]={1,2} f32[2]={4,16}", "epsilon=0.0 momentum=0.5",
      "f32[2,2,1]={-1,-9,1,11} f32[2]={1.5,3} f32[2]={2.5,10} f32[2]={2,4} f32[2]={1,4}", .opset = 9 },
    { X " f32[2]={1,10} f32[2]={0,1} f32[2]={1,2} f32[2]={4,16}", "epsilon=0.0", "f32[2,2,1]={0,1,1,11}", .opset = 9 },
    { X " f32[2]={1,10} f32[2]={0,1} f32[2]={1,2} f32[2]={4,16}", "epsilon=0.0 is_test=1", "f32[2,2,1]={0,1,1,11}",
      .opset = 6 },
    { X " f32[2]={1,10} f32[2]={0,1} f32[2]={1,2} f32[2]={4,16}", "epsilon=0.0 consumed_inputs=[0,0,0,1,1]",
      "f32[2,2,1]={-1,-9,1,11}", .opset = 1 },
    { "f32[1,1,2]={1,2} f32[1,2]={1,10} f32[1,2]={0,1} f32[1,2]={1,1} f32[1,2]={1,1}", "epsilon=0.0 spatial=0",
      "f32[1,1,2]={0,11}", .opset = 7 }, /* each element of a sample has a channel of its own */
    { "f32[2,3,4,5] f32[3] f32[3] f32[3] f32[3]@0.5:2", NULL },
    { "f32[2,3,9,5] f32[3] f32[3] f32[3] f32[3]@0.5:2", NULL },
    { "f32[2,3,4] f32[3] f32[3] f32[3] f32[3]@0.5:2", "training_mode=1", .n_out = 3 },
    { "f32[0,3,4] f32[3] f32[3] f32[3] f32[3]@0.5:2", NULL, "f32[0,3,4]={}" },
    { "f32[1,3] f32[2] f32[3] f32[3] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,3] f32[3] f32[3] f32[3] f32[3]", NULL, .n_out = 3, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[1,3] f32[3] f32[3] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
};
HN_CASES(batchnormalization, "BatchNormalization", batchnormalization);

static const HnCase batchnormtrain[] = {
    { X " f32[2]={1,10} f32[2]={0,1} f32[2]={1,2} f32[2]={4,16}", "epsilon=0.0 momentum=0.5",
      "f32[2,2,1]={-1,-9,1,11} f32[2]={1.5,3} f32[2]={2.5,10} f32[2]={2,4} f32[2]={1,0.5}" },
    { "f32[3,20,7,9] f32[20] f32[20] f32[20] f32[20]@0.5:2", NULL, .n_out = 5, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,2,65,64] f32[2] f32[2] f32[2] f32[2]@0.5:2", NULL, .n_out = 5, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[300,5] f32[5] f32[5] f32[5] f32[5]@0.5:2", NULL, .n_out = 5, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[40,67] f32[67] f32[67] f32[67] f32[67]@0.5:2", "epsilon=0.1 momentum=0.25", .n_out = 5, .rtol = 1e-4,
      .atol = 1e-5 },
    { "f32[4,2,3,5,2] f32[2] f32[2] f32[2] f32[2]@0.5:2", NULL, .n_out = 1, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[1,3] f32[2] f32[3] f32[3] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(batchnormtrain, "BatchNormTrain", batchnormtrain);
