#include "case.h"

static const HnCase layernormgrad[] = {
    /* rows -1 1 and -2 2 around their means: x^ is -1 and 1 */
    { "f32[2,2]={1,2,3,5} f32[2,2]={1,3,0,4} f32[2]={1,2}", "epsilon=0.0",
      "f32[2,2]={0,0,0,0} f32[2]={-4,7} f32[2]={4,7}", .atol = 1e-6 },
    { "f32[1,2]={1,2} f32[1,2]={3,4} f32[2]={1,1}", "epsilon=12.5 centred=0", /* mean square 12.5: inv is 1 / 5 */
      "f32[1,2]={0.068,0.224} f32[2]={0.6,1.6} f32[2]={1,2}", .atol = 1e-6 },
    { "f32[5,7,128] f32[5,7,128] f32[128]", NULL, .n_out = 3, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[70,33] f32[70,33] f32[33]", "centred=0 epsilon=0.01", .n_out = 3, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[6,5,4] f32[6,5,4] f32[5,4]", "axis=1", .n_out = 3, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[6,5] f32[6,5] f32[4]", NULL, .n_out = 3, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[6,5] f32[6,5] f32[5]", "axis=2", .n_out = 3, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(layernormgrad, "LayerNormGrad", layernormgrad);
