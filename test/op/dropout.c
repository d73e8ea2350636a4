#include "case.h"

static const HnCase identity_cases[] = {
    { "f32[2,3]", NULL },
    { "f32[2]={1,2}", NULL, "f32[2]={1,2}", .opset = 1 },
    { "bool={1}", NULL, "bool={1}" },
    { "i16[0,3]", NULL, "i16[0,3]={}", .opset = 13 },
    { "f32[2] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
};
HN_CASES(identity, "Identity", identity_cases);

static const HnCase dropout_cases[] = {
    { "f32[3]={1,2,3}", NULL, "f32[3]={1,2,3} bool[3]={1,1,1}" },
    { "f32[3]={1,2,3} f32={0.9}", NULL, "f32[3]={1,2,3}", .opset = 12 }, /* only when training */
    { "f32[3]={1,2,3} f32={0} bool={1}", NULL, "f32[3]={1,2,3} bool[3]={1,1,1}" },
    { "f32[3,4] f32={0.5} bool={1}", "seed=7", "f32[3,4] bool[3,4]" },
    { "f16[3]={1,2,3}", "ratio=0.1", "f16[3]={1,2,3} bool[3]={1,1,1}", .opset = 10 },
    { "f32[3]={1,2,3}", NULL, "f32[3]={1,2,3} f32[3]={1,1,1}", .opset = 7 }, /* a mask of the data's type */
    { "f32[3]={1,2,3}", "is_test=1", "f32[3]={1,2,3}", .opset = 6 },
    { "f32[3]={0,0,0}", NULL, "f32[3]={0,0,0}", .opset = 1 },
    { "f32[3] f32={1} bool={1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] f32={0.5}", NULL, .opset = 10, .refused = TRUE, .code = HN_ERROR_GRAPH },
};
HN_CASES(dropout, "Dropout", dropout_cases);
