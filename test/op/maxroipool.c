#include "case.h"

static const HnCase maxroipool[] = {
    { "f32[1,1,4,4]={0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15} f32[2,5]={0,0,0,3,3,0,1,1,2,2}", "pooled_shape=[2,2]",
      "f32[2,1,2,2]={5,7,13,15,5,6,9,10}" },
    { "f32[1,1,4,4]={0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15} f32[1,5]={0,0,0,6,6}",
      "pooled_shape=[1,2] spatial_scale=0.5", "f32[1,1,1,2]={13,15}" },
    { "f64[2,3,9,7] f64[2,5]={0,0,0,6,6,1,2,3,6,8}", "pooled_shape=[3,2]" },
    /* wholly outside: 0 */
    { "f32[1,1,2,2]={-1,-2,-3,-4} f32[1,5]={0,7,7,9,9}", "pooled_shape=[1,1]", "f32[1,1,1,1]={0}" },
    { "f32[1,1,2,2] f32[1,5]={1,0,0,1,1}", "pooled_shape=[1,1]", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2,2] f32[1,4]", "pooled_shape=[1,1]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,2,2] f32[1,5]", "pooled_shape=[1]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(maxroipool, "MaxRoiPool", maxroipool);

static const HnCase maxroipoolgrad[] = {
    { "f32[1,1,2,2]={1,4,3,2} f32[2,5]={0,0,0,1,1,0,0,1,1,1} f32[2,1,1,1]={5,7}", "pooled_shape=[1,1]",
      "f32[1,1,2,2]={0,5,7,0}" },
    /* ties: the first */
    { "f32[1,1,2,2]={4,4,4,4} f32[1,5]={0,0,0,1,1} f32[1,1,1,1]={5}", "pooled_shape=[1,1]", "f32[1,1,2,2]={5,0,0,0}" },
    { "f32[1,1,2,2] f32[1,5]={0,7,7,9,9} f32[1,1,1,1]={5}", "pooled_shape=[1,1]", "f32[1,1,2,2]={0,0,0,0}" },
    { "f32[2,3,9,7] f32[2,5]={0,0,0,6,6,1,2,3,6,8} f32[2,3,3,2]", "pooled_shape=[3,2]" },
    { "f32[1,1,2,2] f32[1,5]={1,0,0,1,1} f32[1,1,1,1]", "pooled_shape=[1,1]", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2,2] f32[1,5]={0,0,0,1,1} f32[1,1,2,1]", "pooled_shape=[1,1]", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(maxroipoolgrad, "MaxRoiPoolGrad", maxroipoolgrad);
