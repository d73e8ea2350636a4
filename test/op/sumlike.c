#include "case.h"

static const HnCase sumlike[] = {
    { "f32[2,3]={1,2,3,4,5,6} f32[3]", NULL, "f32[3]={5,7,9}" },
    { "f32[2,3]={1,2,3,4,5,6} f32[2,1]", NULL, "f32[2,1]={6,15}" },
    { "f32[2,3]={1,2,3,4,5,6} f32={0}", NULL, "f32={21}" },
    { "f32[2,3]={1,2,3,4,5,6} f32[2,3]", NULL, "f32[2,3]={1,2,3,4,5,6}" },
    { "f32[4,5,6,7] f32[5,1,7]", NULL },
    { "f32[4,5,6,7] f32[1,5,1,1]", NULL },
    { "f32[3,1,5] f32[1,1,5]", NULL },
    { "f32[0,3] f32[1,3]", NULL, "f32[1,3]={0,0,0}" },
    { "f32[2,3] f32[1,2,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(sumlike, "SumLike", sumlike);
