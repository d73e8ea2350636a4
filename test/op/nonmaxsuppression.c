#include "case.h"

#define BOXES "f32[1,6,4]={0,0,1,1,0,0.1,1,1.1,0,-0.1,1,0.9,0,10,1,11,0,10.1,1,11.1,0,100,1,101} "
#define SCORES "f32[1,1,6]={0.9,0.75,0.6,0.95,0.5,0.3} "

static const HnCase nonmaxsuppression[] = {
    { BOXES SCORES "i64[1]={3} f32[1]={0.5} f32[1]={0}", NULL, "i64[3,3]={0,0,3,0,0,0,0,0,5}", .opset = 10 },
    { BOXES SCORES "i64={3} f32={0.5} f32={0.4}", NULL, "i64[2,3]={0,0,3,0,0,0}" },
    { "f32[1,3,4]={0.5,0.5,1,1,0.5,0.6,1,1,0.5,10.5,1,1} f32[1,1,3]={0.9,0.75,0.6} i64={3} f32={0.5}",
      "center_point_box=1", "i64[2,3]={0,0,0,0,0,2}" },
    { "f32[1,2,4]={1,1,0,0,0,0,1,1} f32[1,1,2]={0.5,0.5} i64={2} f32={0.5}", NULL, "i64[1,3]={0,0,0}" },
    { "f32[1,2,4]={0,0,1,2,0,0,1,1} f32[1,1,2]={0.5,0.4} i64={2} f32={0.5}", NULL,
      "i64[2,3]={0,0,0,0,0,1}" }, /* exactly the threshold stays */
    { BOXES SCORES, NULL, "i64[0,3]={}" },
    { "f32[1,0,4] f32[1,2,0] i64={2}", NULL, "i64[0,3]={}" },
    { "f32[1,2,4] f32[1,1,3] i64={2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,4] f32[1,1,2] i64={2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,4] f32[1,1,2]", "center_point_box=2", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(nonmaxsuppression, "NonMaxSuppression", nonmaxsuppression);
