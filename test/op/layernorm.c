#include "case.h"

static const HnCase layernormalization[] = {
    { "f32[1,2]={1,3} f32[2]={1,1} f32[2]={0,0}", "epsilon=0.0", "f32[1,2]={-1,1}" },
    { "f32[2,2]={1,3,5,9} f32[2]={2,3}", "epsilon=0.0", "f32[2,2]={-2,3,-2,3} f32[2,1]={2,7} f32[2,1]={1,0.5}" },
    { "f32[2,2]={0,2,4,6} f32[2,2]={1,1,1,1} f32={1}", "axis=0 epsilon=4.0",
      "f32[2,2]={0,0.66666667,1.33333333,2} f32[1,1]={3} f32[1,1]={0.33333333}" },
    { "f32[2,1,2]={1,3,5,9} f32[2,1,1]={1,10}", "epsilon=0.0", "f32[2,1,2]={-1,1,-10,10}" }, /* scale over rows */
    { "f32[2]={1,3} f32[2]={1,1}", "epsilon=0.0 stash_type=16", "f32[2]={-1,1} bf16[1]={2} bf16[1]={1}" },
    { "f16[2]={1,3} f16[2]={1,1}", "epsilon=0.0 stash_type=16", "f16[2]={-1,1} bf16[1]={2} bf16[1]={1}" },
    { "f32[2,3,4] f32[4] f32[4]", NULL },
    { "f32[5,67] f32[67] f32[67]", NULL, .n_out = 3 },
    { "f32[7,24] f32[24] f32[24]", NULL, .n_out = 3 }, /* short rows, the last not of whole vectors */
    { "f32[9,39] f32[39]", NULL, .n_out = 3 },
    { "f32[6,11] f32[11] f32[11]", NULL },
    { "f32[3,63] f32[63] f32[63]", NULL, .n_out = 3 },
    { "f32[5,64] f32[64]", NULL },
    { "f32[3,300] f32[300]", NULL, .n_out = 3 },
    { "f32[515,260] f32[260] f32[260]", NULL, .n_out = 3 }, /* a warp for each */
    { "f32[2,1100] f32[1100]", NULL, .n_out = 3 },
    { "f32[1,4500] f32[4500]", NULL },
    { "f32[2,8200] f32[8200] f32[8200]", NULL, .n_out = 3 }, /* more than the threads of a block can hold */
    { "f32[2,3,4] f32[3,1] f32[1,4]", "axis=-2" },
    { "f32[0,4] f32[4] f32[4]", NULL, "f32[0,4]={} f32[0,1]={} f32[0,1]={}" },
    { "f32[2,4] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,4] f32[1,1,4]", "axis=2", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,4] f32[4]", "stash_type=7", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(layernormalization, "LayerNormalization", layernormalization);

static const HnCase rmsnormalization[] = {
    { "f32[2,2]={1,7,-6,8} f32[2]={1,2}", "epsilon=0.0", "f32[2,2]={0.2,2.8,-0.84852814,2.2627417}" },
    { "f32[2,2]={2,2,2,2} f32[1]={3}", "axis=0 epsilon=0.0", "f32[2,2]={3,3,3,3}" },
    { "f64[1,2]={3,-3} f32[2]={1,1}", "epsilon=0.0", "f32[1,2]={1,-1}" }, /* the type of the scale */
    { "f32[2,3,4] f32[4]", NULL },
    { "f32[5,300] f32[300]", NULL },
    { "f32[6,25] f32[25]", NULL },
    { "f32[2,8201] f32[8201]", NULL },
    { "f32[2,3,4] f32[3,4]", "axis=1" },
    { "f32[0,4] f32[4]", NULL, "f32[0,4]={}" },
    { "f32[2,4] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(rmsnormalization, "RMSNormalization", rmsnormalization);
