#include "case.h"

/* dy, x, scale, mean, 1 / deviation, bias: x^ is -1 and 1 in channel 0, -1 and 1 in channel 1 */
#define ALL "f32[2,2,1]={1,2,4,8} f32[2,2,1]={1,2,3,6} f32[2]={1,10} f32[2]={2,4} f32[2]={1,0.5} f32[2]={0,-11}"

#define FROZEN \
    "f32[2,2,1]={1,2,4,8} f32[2,2,1]={1,2,3,6} f32[2]={1,10} f32[2]={2,4} f32[2]={1,4} f32[2]={0,-11}" /* variance */

static const HnCase batchnormgrad[] = {
    { ALL, NULL, "f32[2,2,1]={0,0,0,0} f32[2]={3,6} f32[2]={5,10}" },
    { FROZEN, "frozen=1 epsilon=0.0", "f32[2,2,1]={1,10,4,40} f32[2]={3,6} f32[2]={5,10}" },
    { FROZEN, "frozen=1 epsilon=0.0 mask='relu'",
      "f32[2,2,1]={0,0,4,0} f32[2]={4,0} f32[2]={4,0}" }, /* y: -1 -21 1 -1 */
    { FROZEN, "frozen=1 epsilon=0.0 mask='clip' lo=-1.0 hi=0.5", "f32[2,2,1]={1,0,0,40} f32[2]={-1,8} f32[2]={1,8}" },
    { "f32[3,20,7,9] f32[3,20,7,9] f32[20] f32[20] f32[20]@0.5:2", NULL, .n_out = 3, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[2,2,65,64] f32[2,2,65,64] f32[2] f32[2] f32[2]@0.5:2", NULL, .n_out = 3, .rtol = 1e-4, .atol = 1e-3 },
    { "f32[300,5] f32[300,5] f32[5] f32[5] f32[5]@0.5:2", NULL, .n_out = 3, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[40,67] f32[40,67] f32[67] f32[67] f32[67]@0.5:2 f32[67]", "mask='relu'", .n_out = 3, .rtol = 1e-4,
      .atol = 1e-4 },
    { "f32[5,19,6] f32[5,19,6] f32[19] f32[19] f32[19]@0.5:2 f32[19]", "mask='clip' lo=-0.5 hi=0.5", .n_out = 3,
      .rtol = 1e-4, .atol = 1e-4 },
    { "f32[4,2,3,5,2] f32[4,2,3,5,2] f32[2] f32[2] f32[2]@0.5:2", "frozen=1", .n_out = 3, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[2,3] f32[2,3] f32[3] f32[3] f32[3]", "mask='relu'", .n_out = 3, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[2] f32[2] f32[1] f32[1] f32[1]", NULL, .n_out = 3, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(batchnormgrad, "BatchNormGrad", batchnormgrad);
