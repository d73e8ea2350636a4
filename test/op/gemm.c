#include "case.h"

#define AB "f32[2,2]={1,2,3,4} f32[2,2]={5,6,7,8}" /* 19 22 43 50 */

static const HnCase gemm[] = {
    { AB, NULL, "f32[2,2]={19,22,43,50}" },
    { AB " f32[2,2]={1,2,3,4}", "alpha=2.0 beta=10.0", "f32[2,2]={48,64,116,140}" },
    { AB " f32[2]={1,2}", "transA=1", "f32[2,2]={27,32,39,46}", .opset = 7 },
    { AB " f32[2,1]={1,2}", "transB=1", "f32[2,2]={18,24,41,55}", .opset = 9 },
    { AB " f32={100}", "transA=1 transB=1 beta=0.5", "f32[2,2]={73,81,84,96}" },
    { AB " f32[1,2]={nan,nan}", "beta=0.0", "f32[2,2]={19,22,43,50}" },
    { AB " f32[2]={1,2}", "broadcast=1", "f32[2,2]={20,24,44,52}", .opset = 6 },
    { AB " f32[2,2]={1,2,3,4}", NULL, "f32[2,2]={20,24,46,54}", .opset = 1 },
    { AB " f32[2]={1,2}", NULL, .opset = 6, .refused = TRUE, .code = HN_ERROR_SHAPE }, /* broadcast is not set */
    { AB, NULL, .opset = 7, .refused = TRUE, .code = HN_ERROR_GRAPH },                 /* C is needed before 11 */
    { "i32[1,1]={3} i32[1,1]={5} i32={1}", "alpha=0.5", "i32[1,1]={8}" },              /* 8.5, cut */
    { "u32[1,1]={4294967295} u32[1,1]={2} u32={1}", NULL, "u32[1,1]={4294967295}" },
    { "f32[2,0] f32[0,1] f32[1]={7}", NULL, "f32[2,1]={7,7}" },
    { "f32[65,270] f32[33,270] f32[33]", "transB=1" },
    { "f32[6,5] f32[6,7]", "transA=1" },
    { "f32[41,19] f32[41,37] f32[37]", "transA=1" },
    { "f32[41,5] f32[70,41] f32[70]", "transA=1 transB=1 alpha=0.5" },
    { "f32[1,700] f32[33,700] f32[33]", "transB=1" },
    { "f32[30,700] !f32[33,700] !f32[33]", "transB=1" },
    { "f32[3,30] f32[30,34] f32[3,34]", "beta=2.0" },
    { "f32[130,200] f32[200,264] f32[264]", "alpha=0.5 beta=2.0", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[72,136] f32[72,136] f32[136,1]", "transA=1" },
    { "f32[72,136] f32[72,136]", "transA=1 alpha=-1.0" },
    { "f32[2,3] f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,3] f32[3,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[3,2] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(gemm, "Gemm", gemm);
