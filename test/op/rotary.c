#include "case.h"

static const HnCase rotaryembedding[] = {
    /* a quarter turn: (a, b) becomes (-b, a); halves pair up */
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,2]={0,0} f32[1,1,2]={1,1}", NULL, "f32[1,1,1,4]={-3,-4,1,2}" },
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,2]={0,0} f32[1,1,2]={1,1}", "interleaved=1", "f32[1,1,1,4]={-2,1,-4,3}" },
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,1]={0} f32[1,1,1]={1}", "rotary_embedding_dim=2", "f32[1,1,1,4]={-2,1,3,4}" },
    /* two heads side by side, positions 1 and 0 */
    { "f32[1,2,4]={1,2,3,4,5,6,7,8} f32[2,1]={1,0} f32[2,1]={0,1} i64[1,2]={1,0}", "num_heads=2",
      "f32[1,2,4]={-2,1,-4,3,5,6,7,8}" },
    { "f32[2,3,4,6] f32[9,3] f32[9,3] i64[2,4]={0,1,2,3,8,7,6,5}", NULL },
    { "f32[2,4,18] f32[2,4,3] f32[2,4,3]", "num_heads=3 interleaved=1" },
    { "f32[2,4,18] f32[9,2]! f32[9,2]! i64[2,4]={0,1,2,3,8,8,6,5}", "num_heads=3 rotary_embedding_dim=4" },
    { "f32[2,3,4,6] f32[2,4,3]! f32[2,4,3]!", "interleaved=1" },
    { "f32[0,1,2,4] f32[0,2,2] f32[0,2,2]", NULL, "f32[0,1,2,4]={}" },
    { "f32[1,1,1,2] f32[2,1] f32[2,1] i64[1,1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,1,3] f32[1,1,1] f32[1,1,1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,4] f32[1,1,2] f32[1,1,2]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1,1,4] f32[1,1,1] f32[1,1,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(rotaryembedding, "RotaryEmbedding", rotaryembedding);
