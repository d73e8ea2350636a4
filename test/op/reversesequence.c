#include "case.h"

static const HnCase reversesequence[] = {
    { "f32[4,4]={0,4,8,12,1,5,9,13,2,6,10,14,3,7,11,15} i64[4]={4,3,2,1}", "time_axis=0 batch_axis=1",
      "f32[4,4]={3,6,9,12,2,5,8,13,1,4,10,14,0,7,11,15}" },
    { "f32[4,4]={0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15} i64[4]={1,2,3,4}", "time_axis=1 batch_axis=0",
      "f32[4,4]={0,1,2,3,5,4,6,7,10,9,8,11,15,14,13,12}" },
    { "i8[2,1,2]={1,2,3,4} i64[1]={2}", NULL, "i8[2,1,2]={3,4,1,2}" },
    { "f32[3,2] i64[2]={0,1}" },
    { "f32[0,2] i64[2]={0,0}", NULL, "f32[0,2]={}" },
    { "f32[3,2] i64[2]={4,1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3,2] i64[3]={1,1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3,3] i64[3]={1,1,1}", "batch_axis=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(reversesequence, "ReverseSequence", reversesequence);
