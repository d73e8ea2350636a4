#include "case.h"

static const HnCase concat[] = {
    { "f32[2]={1,2} f32[1]={3} f32[0]={}", "axis=0", "f32[3]={1,2,3}" },
    { "i64[2,1]={1,2} i64[2,2]={3,4,5,6}", "axis=1", "i64[2,3]={1,3,4,2,5,6}" },
    { "u8[1,2]={1,2} u8[2,2]={3,4,5,6}", "axis=-2", "u8[3,2]={1,2,3,4,5,6}" },
    { "f32[2,1]={1,2} f32[2,1]={3,4}", NULL, "f32[2,2]={1,3,2,4}", .opset = 1 }, /* axis 1 was the default */
    { "f32[2,3,4] f32[2,5,4] f32[2,1,4]", "axis=1" },
    { "bool[2]={1,0}", "axis=0", "bool[2]={1,0}" },
    { "f32[2,0,3] f32[2,0,1]", "axis=2", "f32[2,0,4]" },
    { "f32[2,3] f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3] f32[3,3]", "axis=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[3]", "axis=0", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i32[2]", "axis=0", .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32={1} f32={2}", "axis=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3] - f32[1,3]", "axis=0", .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[3,5,1] f32[3,5,1] f32[3,5,2]", "axis=-1" },
    { "i8[3,0,7] i8[3,2,7] i8[3,11,7]", "axis=1" },
    { "f64[700,3,200] f64[700,1,200]", "axis=1" },
    { "u16[9,17] u16[1,17]", "axis=0" },
};
HN_CASES(concat, "Concat", concat);

static const HnCase split[] = {
    { "f32[6]={1,2,3,4,5,6}", "num_outputs=3", "f32[2]={1,2} f32[2]={3,4} f32[2]={5,6}" },
    { "i32[7]={1,2,3,4,5,6,7}", "num_outputs=4", "i32[2]={1,2} i32[2]={3,4} i32[2]={5,6} i32[1]={7}" },
    { "f32[6]={1,2,3,4,5,6} !i64[2]={2,4}", NULL, "f32[2]={1,2} f32[4]={3,4,5,6}", .opset = 13 },
    { "f32[2,4]={1,2,3,4,5,6,7,8} !i64[2]={1,3}", "axis=-1", "f32[2,1]={1,5} f32[2,3]={2,3,4,6,7,8}" },
    { "f32[6]={1,2,3,4,5,6}", "split=[2,0,4]", "f32[2]={1,2} f32[0]={} f32[4]={3,4,5,6}", .opset = 11 },
    { "f32[4]={1,2,3,4}", "axis=0 split=[3,1]", "f32[3]={1,2,3} f32[1]={4}", .opset = 2 },
    { "f32[4]={1,2,3,4} !f32[2]={1,3}", "axis=0", "f32[1]={1} f32[3]={2,3,4}", .opset = 1 },
    { "f32[0]={} !i64[2]={0,0}", NULL, "f32[0]={} f32[0]={}" },
    { "f32[5]={1,2,3,4,5}", NULL, .opset = 13, .n_out = 2, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[5] !i64[2]={2,2}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[5] i64[2]={-1,6}", NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[5]", "num_outputs=3", .n_out = 2, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[5]", "num_outputs=4", .n_out = 4, .refused = TRUE, .code = HN_ERROR_SHAPE }, /* 2, 2, 2 and -1 */
};
HN_CASES(split, "Split", split);
