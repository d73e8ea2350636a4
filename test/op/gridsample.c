#include "case.h"

static const HnCase gridsample[] = {
    /* one row: -1 and 1 are its outer edges, or the centres of the outermost elements */
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,3,2]={-1,0,0,0,0.75,0}", NULL, "f32[1,1,1,3]={0.5,2.5,4}" },
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,3,2]={-1,0,0,0,1,0}", "align_corners=1", "f32[1,1,1,3]={1,2.5,4}" },
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,3,2]={-9,0,9,0,0.25,0}", "padding_mode='border'", "f32[1,1,1,3]={1,4,3}" },
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,2,2]={-1.5,0,1.75,0}", "padding_mode='reflection'", "f32[1,1,1,2]={1.5,3}" },
    /* halves go to the even index */
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,3,2]={-0.5,0,0,0,0.5,0}", "mode='nearest'", "f32[1,1,1,3]={1,3,3}" },
    { "f32[1,1,1,4]={1,2,3,4} f32[1,1,1,2]={0,0}", "mode='bicubic' align_corners=1", "f32[1,1,1,1]={2.5}",
      .opset = 16 },
    { "i32[1,1,1,2]={1,4} f32[1,1,1,2]={0,0}", NULL, "i32[1,1,1,1]={2}" },
    { "f32[2,3,4,5] f32[2,6,7,2]@-1.3:1.3", "mode='cubic' padding_mode='reflection'" },
    { "f64[1,2,3,4,5] f32[1,2,3,2,3]@-1.2:1.2", "mode='linear' padding_mode='border'" },
    { "f32[1,2,0,4] f32[1,2,3,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,3,4] f32[1,2,3,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,3,4] f32[1,0,3,2]", NULL, "f32[1,2,0,3]={}" },
    { "f32[1,1,1,2]={1,2} f32[1,1,2,2]={nan,0,inf,0}", NULL, "f32[1,1,1,2]={0,0}" },
    { "f32[2,3,7,9] f32[2,5,33,2]@-1.3:1.3", "mode='linear' padding_mode='zeros'" },
    { "f32[2,3,7,9] f32[2,5,33,2]@-1.3:1.3", "mode='linear' padding_mode='border' align_corners=1" },
    { "f32[2,3,7,9] f32[2,5,33,2]@-3:3", "mode='linear' padding_mode='reflection'" },
    { "f32[1,3,7,9] f32[1,5,33,2]@-1.3:1.3", "mode='nearest' padding_mode='border'" },
};
HN_CASES(gridsample, "GridSample", gridsample);
