#include "case.h"

static const HnCase scatteradd[] = {
    { "f32[3]={1,2,3} i64[3]={2,0,2} f32[2,2]", NULL, "f32[2,2]={0,4,0,0}" },
    { "f32[2,2]={1,2,3,4} i64[4]={4,3,2,1} f32[4]", NULL, "f32[4]={4,3,2,1}" },
    { "f32[5,7] i64[5,7]@0:12 f32[3,4]", NULL, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[0] i64[0] f32[2]", NULL, "f32[2]={0,0}" },
    { "f32[2] i64[2]={1,3} f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2] i64[2]={-1,1} f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2] i64[3]={1,1,1} f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64[2]={0,0} f32[0]", NULL, "f32[0]" },
    { "f32[2] i64[2]={0,1} f32[0]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2300]@0:1 i64[2300]@0:70 f32[70]", NULL, .rtol = 1e-4, .atol = 1e-4 },
};
HN_CASES(scatteradd, "ScatterAdd", scatteradd);
