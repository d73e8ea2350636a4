#include "case.h"

static const HnCase affinegrid[] = {
    /* the identity: the centres of a 2 x 2 image, then its corners */
    { "f32[1,2,3]={1,0,0,0,1,0} !i64[4]={1,1,2,2}", NULL, "f32[1,2,2,2]={-0.5,-0.5,0.5,-0.5,-0.5,0.5,0.5,0.5}" },
    { "f32[1,2,3]={1,0,0,0,1,0} i64[4]={1,3,2,2}", "align_corners=1", "f32[1,2,2,2]={-1,-1,1,-1,-1,1,1,1}" },
    { "f64[1,3,4]={1,0,0,0,0,1,0,0,0,0,1,5} i64[5]={1,1,1,1,2}", NULL, "f64[1,1,1,2,3]={-0.5,0,5,0.5,0,5}" },
    { "f32[2,2,3] i64[4]={2,1,3,4}", NULL, "f32[2,3,4,2]" },
    { "f32[0,2,3] i64[4]={0,1,3,4}", NULL, "f32[0,3,4,2]={}" },
    { "f32[1,2,3] i64[5]={1,1,1,1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,3] i64[4]={1,1,-1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,3] i64[3]={1,1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(affinegrid, "AffineGrid", affinegrid);
