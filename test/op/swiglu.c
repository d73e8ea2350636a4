#include "case.h"

static const HnCase swiglu[] = {
    { "f32[3]={0,1,-1} f32[3]={5,2,2}", NULL, "f32[3]={0,1.4621171572600098,-0.5378828427399902}" },
    { "f32[2]={1,1} f32[2]={1,-1}", "alpha=0.0", "f32[2]={0.5,-0.5}" },
    { "f32[2]={-1000,1000} f32[2]={1,1}", NULL, "f32[2]={0,1000}" }, /* exp overflows, the result does not */
    { "f32[2,3,5] f32[2,3,5]", NULL },
    { "f32[0,4] f32[0,4]", NULL },
    { "f32[2,3] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE }, /* no broadcasting */
    { "f32[1,3] f32[3,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] f64[3]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[3] f32[3]", NULL, .opset = 27, .refused = TRUE, .code = HN_ERROR_UNSUPPORTED },
};
HN_CASES(swiglu, "SwiGLU", swiglu);
