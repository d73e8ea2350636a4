#include "case.h"

static const HnCase gridsamplegrad[] = {
    /* the middle of two elements by two, then a quarter to the right */
    { "f32[1,1,2,2]={1,2,3,5} f32[1,1,1,2]={0,0} f32[1,1,1,1]={4}", "align_corners=1",
      "f32[1,1,2,2]={1,1,1,1} f32[1,1,1,2]={3,5}" },
    { "f32[1,1,2,2]={1,2,3,5} f32[1,1,1,2]={0.5,-1} f32[1,1,1,1]={4}", "align_corners=1",
      "f32[1,1,2,2]={1,3,0,0} f32[1,1,1,2]={2,5.5}" },
    /* outside: zeros, and elements at the border that do not change with the place */
    { "f32[1,1,2,2]={1,2,3,5} f32[1,1,1,2]={-9,0} f32[1,1,1,1]={4}", NULL,
      "f32[1,1,2,2]={0,0,0,0} f32[1,1,1,2]={0,0}" },
    { "f32[1,1,2,2]={1,2,3,5} f32[1,1,1,2]={-9,-9} f32[1,1,1,1]={4}", "padding_mode='border'",
      "f32[1,1,2,2]={4,0,0,0} f32[1,1,1,2]={0,0}" },
    {
        "f32[1,1,2,2] f32[1,1,1,2]={0.9,0.9} f32[1,1,1,1]={4}",
        "mode='nearest'",
        "f32[1,1,2,2]={0,0,0,4} f32[1,1,1,2]={0,0}",
    },
    { "f32[2,3,4,5] f32[2,6,7,2]@-1.3:1.3 f32[2,3,6,7]", "mode='cubic'", .n_out = 2 },
    { "f32[0,3,4,5] f32[0,6,7,2] f32[0,3,6,7]", NULL, "f32[0,3,4,5]={} f32[0,6,7,2]={}" },
    { "f32[1,1,2,2] f32[1,1,1,2] f32[1,1,1,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(gridsamplegrad, "GridSampleGrad", gridsamplegrad);
