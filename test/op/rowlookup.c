#include "case.h"

static const HnCase rowlookup[] = {
    { "f32[3,2]={1,2,3,4,5,6} i64[2,1]={2,0}", NULL, "f32[2,2]={5,6,1,2}" },
    { "f32[3,2]={1,2,3,4,5,6} i32[1,3,1]={-1,1,3}", NULL, "f32[1,3,2]={0,0,3,4,0,0}" }, /* outside: zeros */
    { "f32[9,70] i64[5,33,1]@-2:11" },
    { "f32[9,1] i32[40,1]@0:8" },
    { "f32[1,5] i64[1]={0}" },
    { "f32[0,2] i64[1,1]={0}", NULL, "f32[1,2]={0,0}" },
    { "f32[3,0] i64[2,1]={0,1}", NULL, "f32[2,0]={}" },
    { "f32[3,2] i64[0,1]", NULL, "f32[0,2]={}" },
    { "f32[3,2] i64[2]={1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3,2,1] i64[1]={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3,2] f32[1]={1}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(rowlookup, "RowLookup", rowlookup);
