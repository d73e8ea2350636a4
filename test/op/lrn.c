#include "case.h"

static const HnCase lrn[] = {
    { "f32[1,3,1,1]={1,2,3}", "size=1 alpha=1.0 beta=1.0 bias=0.0", "f32[1,3,1,1]={1,0.5,0.33333333}" },
    { "f32[1,3]={1,2,3}", "size=3 alpha=3.0 beta=1.0 bias=0.0", "f32[1,3]={0.2,0.14285714,0.23076923}" },
    /* an even size reaches one channel further up */
    { "f32[1,3]={1,2,3}", "size=2 alpha=2.0 beta=1.0 bias=1.0", "f32[1,3]={0.16666667,0.14285714,0.3}", .opset = 1 },
    { "f32[2,5,3,3]", "size=3" },
    { "f32[2,7,23,24]", "size=5 alpha=0.5" }, /* more pixels than are summed at a time */
    { "f32[1,3,9]", "size=3 beta=0.6 bias=1.5" },
    { "f32[2,2,4]", "size=9 alpha=0.5 beta=0.5 bias=2.0" },
    { "f32[2,0,4]", "size=3", "f32[2,0,4]={}" },
    { "f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3]", "size=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[3]", "size=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(lrn, "LRN", lrn);
