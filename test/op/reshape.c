#include "case.h"

static const HnCase reshape[] = {
    { "f32[2,3]={1,2,3,4,5,6} !i64[2]={3,-1}", NULL, "f32[3,2]={1,2,3,4,5,6}" },
    { "f32[2,3]={1,2,3,4,5,6} i64[3]={0,-1,1}", NULL, "f32[2,3,1]={1,2,3,4,5,6}", .opset = 5 },
    { "f32[2,3]={1,2,3,4,5,6}", "shape=[6] consumed_inputs=[0]", "f32[6]={1,2,3,4,5,6}", .opset = 1 },
    { "i64[1]={7} !i64[0]={}", NULL, "i64={7}" },
    { "bool={1} !i64[2]={1,1}", NULL, "bool[1,1]={1}" },
    { "f32[0,3,4] !i64[3]={3,4,0}", "allowzero=1", "f32[3,4,0]" },
    { "f32[0,3,4] !i64[2]={0,-1}", NULL, "f32[0,12]" }, /* the copied size says nothing of the rest */
    { "f32[2,3,4] !i64[3]={0,0,-1}" },
    { "f32[2,3] !i64[1]={5}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] i64[2]={4,-1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] i64[2]={-1,-1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] i64[1]={-6}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64[2]={2,0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[0] i64[2]={0,-1}", "allowzero=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[3]={4611686018427387904,4611686018427387904,16}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(reshape, "Reshape", reshape);

static const HnCase squeeze[] = {
    { "f32[1,2,1]={1,2} !i64[1]={0}", NULL, "f32[2,1]={1,2}" },
    { "f32[1,2,1]={1,2} i64[2]={-1,0}", NULL, "f32[2]={1,2}" },
    { "i32[1,2,1]={1,2}", NULL, "i32[2]={1,2}" },
    { "f32[1,1]={3}", "axes=[0,1]", "f32={3}", .opset = 1 },
    { "f32[1,2,1]={1,2}", "axes=[-1]", "f32[1,2]={1,2}", .opset = 11 },
    { "f32[1,0] !i64[1]={0}", NULL, "f32[0]" },
    { "f32[1,2] !i64[1]={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2] i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1] i64[2]={0,-2}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(squeeze, "Squeeze", squeeze);

static const HnCase unsqueeze[] = {
    { "f32[2]={1,2} !i64[2]={0,-1}", NULL, "f32[1,2,1]={1,2}" },
    { "f32[2]={1,2} i64[2]={2,1}", NULL, "f32[2,1,1]={1,2}" },
    { "i8={5} !i64[1]={0}", NULL, "i8[1]={5}" },
    { "f32[2]={1,2}", "axes=[1]", "f32[2,1]={1,2}", .opset = 1 },
    { "f32[3,4]", "axes=[-2]", "f32[3,1,4]", .opset = 11 },
    { "f32[2]", NULL, .opset = 11, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2] i64[2]={0,0}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2] i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(unsqueeze, "Unsqueeze", unsqueeze);

static const HnCase flatten[] = {
    { "f32[2,3,2]={1,2,3,4,5,6,7,8,9,10,11,12}", NULL, "f32[2,6]={1,2,3,4,5,6,7,8,9,10,11,12}", .opset = 1 },
    { "f32[2,3,4]", "axis=0", "f32[1,24]" },
    { "f32[2,3,4]", "axis=3", "f32[24,1]" },
    { "f32[2,3,4]", "axis=-1", "f32[6,4]", .opset = 11 },
    { "u8={1}", "axis=0", "u8[1,1]={1}" },
    { "f32[0,3]", NULL, "f32[0,3]" },
    { "f32[2,3]", "axis=3", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3]", "axis=-1", .opset = 9, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(flatten, "Flatten", flatten);
