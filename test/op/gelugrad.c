#include "case.h"

#define Z16 "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
#define Z64 Z16 Z16 Z16 Z16

static const HnCase gelugrad[] = {
    { "f32[5]={1,2,1,1,3} f32[5]={0,1,-1,20,-20}", NULL, "f32[5]={0.5,2.16663,-0.083315,1,0}", .atol = 1e-5 },
    { "f32[3,700] f32[3,700]@-6:6", NULL, .rtol = 1e-5, .atol = 1e-6 },
    { "f32[4]={1,1,1,1} f32[4]={inf,-inf,nan,1e20}", NULL, "f32[4]={1,0,nan,1}", .atol = 1e-6 },
    { "f32[3,700] f32[3,700]@-6:6", "approximate='tanh'", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[4]={1,1,1,1} f32[4]={inf,-inf,nan,1e20}", "approximate='tanh'", "f32[4]={1,0,nan,1}", .atol = 1e-6 },
    { "f32[3,700] f32[3,700]@-60:60", "approximate='tanh'", .rtol = 1e-5, .atol = 1e-6 },
    { "f16[3,70] f16[3,70]@-6:6", "approximate='tanh'", .rtol = 1e-3, .atol = 1e-3 },
    /* gradients that are 0 for many elements side by side */
    { "f32[146]={" Z64 "1," Z64 Z16 "-2} f32[146]@-6:6", NULL, .rtol = 1e-5, .atol = 1e-6 },
    { "f32[146]={" Z64 "1," Z64 Z16 "-2} f32[146]@-6:6", "approximate='tanh'", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[0] f32[0]", NULL, "f32[0]={}" },
    { "f32[2] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(gelugrad, "GeluGrad", gelugrad);
