#include "case.h"

static const HnCase col2im[] = {
    /* rows of a 3 x 3 image, overlapping in the middle one */
    { "f32[1,6,2]={1,4,2,5,3,6,10,40,20,50,30,60} !i64[2]={3,3} !i64[2]={2,3}", NULL,
      "f32[1,1,3,3]={1,2,3,14,25,36,40,50,60}" },
    { "i32[1,2,2]={1,2,3,4} i64[1]={4} i64[1]={2}", "strides=[2]", "i32[1,1,4]={1,3,2,4}" },
    { "f32[1,2,1]={1,2} i64[1]={3} i64[1]={2}", "dilations=[2]", "f32[1,1,3]={1,0,2}" },
    { "u8[1,2,3]={1,2,255,4,5,6} i64[1]={2} i64[1]={2}", "pads=[1,1]", "u8[1,1,2]={6,4}" },
    { "f32[2,12,20] i64[2]={5,6} i64[2]={2,2}", NULL, "f32[2,3,5,6]" },
    { "f32[0,2,1] i64[1]={2} i64[1]={2}", NULL, "f32[0,1,2]={}" },
    { "f32[1,3,2] i64[1]={3} i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,2] i64[1]={4} i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,2] i64[1]={3} i64[1]={2}", "strides=[0]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,2] i64[1]={3} i64[1]={2}", "pads=[1]", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(col2im, "Col2Im", col2im);
