#include "case.h"

static const HnCase gather[] = {
    { "f32[1,3,2]={1,2,3,4,5,6} i64[3]={2,0,1}", "axis=1", "f32[1,3,2]={5,6,1,2,3,4}" },
    { "f32[2,3,4] i64[2]={1,2}", "axis=1" },
    { "f32[2,3,4] i64={-1}", "axis=2" },
    { "f32[2,3,4] i64[2,2]={0,2,2,1}", "axis=1" },
    { "f32[2,3,4] i64[3]={1,1,0}", "axis=-2" },
    { "f32[3,2]={1.0,1.2,2.3,3.4,4.5,5.7} i64[2,2]={0,1,1,2}", NULL, "f32[2,2,2]={1.0,1.2,2.3,3.4,2.3,3.4,4.5,5.7}" },
    { "f32[3,3]={1.0,1.2,1.9,2.3,3.4,3.9,4.5,5.7,5.9} i32[1,2]={0,2}", "axis=1", "f32[3,1,2]={1.0,1.9,2.3,3.9,4.5,5.9}",
      .opset = 1 },
    { "u8[3]={7,8,9} i64={-1}", NULL, "u8={9}", .opset = 11 },
    { "bool[2,2]={1,0,0,1} i32[3]={1,-2,0}", "axis=-1", "bool[2,3]={0,1,1,1,0,0}" },
    { "f32[3,4,5] i64[2,2]@-4:3", "axis=1" },
    { "i64[0,2] i64[0]={}", NULL, "i64[0,2]" },
    { "i64[3,0] i64[2]={1,2}", NULL, "i64[2,0]" },
    { "f32[3] i64[1]={3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] i64[1]={-4}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] !i64[2]={0,9223372036854775807}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] !i64[2]={0,-9223372036854775808}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[0,3] !i64[0]={}", NULL, "f32[0,3]" },
    { "f32[0] i64[1]={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32={1} i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[3] f32[1]={0}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[5,9,7] !i64[3]={1,4,7}", "axis=1" }, /* even distances */
    { "f16[3,8] !i64[4]={-1,-3,-5,-7}", "axis=1" },
    { "f32[40,33] i32[2,5]={0,-1,39,7,7,3,2,1,-40,12}", "axis=0" },
    { "u8[6,11] i64[3]={10,-11,4}", "axis=1" },
    { "f64[600,500] i64[600]@-600:599", "axis=0" },
    { "f32[3,4] i64[1]={4}", "axis=1", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[7,50,12] i64[90]@-50:49", "axis=1" },
    { "f32[3,0] i64[2]={1,3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE }, /* nothing is gathered from there */
    { "f32[0,3] i64[2]={1,-3}", "axis=1", "f32[0,2]" },
};
HN_CASES(gather, "Gather", gather);

static const HnCase gatherelements[] = {
    { "f32[2,2]={1,2,3,4} i64[2,2]={0,0,1,0}", "axis=1", "f32[2,2]={1,1,4,3}" },
    { "f32[3,3]={1,2,3,4,5,6,7,8,9} i32[2,3]={1,2,0,2,0,0}", NULL, "f32[2,3]={4,8,3,7,2,3}" },
    { "f32[3,3]={1,2,3,4,5,6,7,8,9} i64[2,3]={-1,-2,0,-2,0,0}", "axis=0", "f32[2,3]={7,5,3,4,2,3}", .opset = 11 },
    { "i16[3]={5,6,7} i64[5]={2,2,0,1,-1}", NULL, "i16[5]={7,7,5,6,7}" },
    { "f32[3,4,5] i64[2,3,7]@-5:4", "axis=2" },
    { "f32[3,4,5] i64[2,9,4]@0:3", "axis=1" },
    { "f32[3,4] i64[0,4]={}", NULL, "f32[0,4]" },
    { "f32[3] i64[1]={3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[1,3]={0,0,0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[2]={0,0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[3,1]={0,0,0}", "axis=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64[1]={-9223372036854775808}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[4,5,6] i64[3,5,6]@-4:3", "axis=0" },
    { "u8[4,5,6] i32[4,2,6]@-5:4", "axis=1" },
    { "f64[4,6] i64[2,9]@-6:5", "axis=1" },
};
HN_CASES(gatherelements, "GatherElements", gatherelements);

static const HnCase gathernd[] = {
    { "f32[2,2]={0,1,2,3} i64[2,2]={0,0,1,1}", NULL, "f32[2]={0,3}", .opset = 11 },
    { "i32[2,2]={0,1,2,3} i64[2,1]={1,0}", NULL, "i32[2,2]={2,3,0,1}" },
    { "i8[2,2,2]={0,1,2,3,4,5,6,7} i64[2,2]={0,1,1,0}", NULL, "i8[2,2]={2,3,4,5}" },
    { "f64[2,2,2]={0,1,2,3,4,5,6,7} i64[2,1,2]={0,1,1,0}", NULL, "f64[2,1,2]={2,3,4,5}" },
    { "u16[2,2,2]={0,1,2,3,4,5,6,7} i64[2,1]={1,0}", "batch_dims=1", "u16[2,2]={2,3,4,5}", .opset = 12 },
    { "f32[3]={1,2,3} i64[1]={-1}", NULL, "f32={3}" },
    { "f32[3,4,5] i64[3,2,2]@-4:3", "batch_dims=1", "f32[3,2]" },
    { "f32[2,0] i64[1,1]={1}", NULL, "f32[1,0]" },
    { "f32[2,2] i64[1,2]={0,2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[1,2]={0,-9223372036854775808}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[0,2] i64[1,1]={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,2] i64[3,1]={0,1,0}", "batch_dims=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[1,3]={0,0,0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[3,1]", "batch_dims=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[4,5,6] i64[7,2]@-4:3", NULL },
    { "i16[2,5,6,3] i64[2,4,1]@-5:4", "batch_dims=1" },
    { "f32[2,3,0] i64[2,2]={1,-3,0,3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
};
HN_CASES(gathernd, "GatherND", gathernd);
