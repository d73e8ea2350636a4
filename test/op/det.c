#include "case.h"

static const HnCase det[] = {
    { "f32[2,2]={0,1,2,3}", NULL, "f32={-2}", .opset = 11 },
    { "f64[2,2,2]={1,2,3,4,1,2,2,1}", NULL, "f64[2]={-2,-3}" },
    { "f32[3,3]={2,0,0,0,3,0,0,0,4}", NULL, "f32={24}" },
    { "f32[2,2]={1,2,2,4}", NULL, "f32={0}" },
    { "f64[3,4,4]@-2:2", NULL },
    { "f32[2,0,0]", NULL, "f32[2]={1,1}" },
    { "f32[0,3,3]", NULL, "f32[0]={}" },
    { "f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(det, "Det", det);

/* cofactors; a singular matrix has them, too */
static const HnCase detgrad[] = {
    { "f32[2,2]={0,1,2,3} f32={2}", NULL, "f32[2,2]={6,-4,-2,0}" },
    { "f64[2,2,2]={1,2,2,4,0,0,0,0} f64[2]={1,1}", NULL, "f64[2,2,2]={4,-2,-2,1,0,0,0,0}" },
    { "f32[1,1]={5} f32={3}", NULL, "f32[1,1]={3}" },
    { "f32[3,3]={1,2,3,2,4,6,0,1,1} f32={1}", NULL, "f32[3,3]={-2,-2,2,1,1,-1,0,0,0}" },
    { "f32[2,0,0] f32[2]", NULL, "f32[2,0,0]={}" },
    { "f32[2,3] f32", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(detgrad, "DetGrad", detgrad);
