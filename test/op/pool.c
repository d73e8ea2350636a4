#include "case.h"

static const HnCase averagepool[] = {
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[2]", "f32[1,1,3]={1.5,2.5,3.5}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[3] pads=[1,1]", "f32[1,1,4]={1.5,2,3,3.5}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[3] pads=[1,1] count_include_pad=1", "f32[1,1,4]={1,2,3,2.3333333}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[3] pads=[1,1] count_include_pad=1", "f32[1,1,4]={1.5,2,3,3.5}",
      .opset = 1 },
    /* what ceil_mode adds beyond the padding is never counted */
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[3] strides=[2] ceil_mode=1", "f32[1,1,2]={2,3.5}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[3] strides=[2] ceil_mode=1 count_include_pad=1", "f32[1,1,2]={2,3.5}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[3] strides=[2] ceil_mode=1", "f32[1,1,1]={2}", .opset = 7 },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[2] dilations=[2]", "f32[1,1,2]={2,3}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[2] dilations=[2]", "f32[1,1,3]={1.5,2.5,3.5}", .opset = 11 },
    { "f32[1,1,2,2]={1,2,3,4}", "kernel_shape=[2,2] auto_pad='SAME_LOWER'", "f32[1,1,2,2]={1,1.5,2,2.5}" },
    { "f64[2,3,7,5,4]", "kernel_shape=[3,2,4] strides=[2,1,3] pads=[1,0,2,0,1,1]" },
    { "f32[2,3,31,30]", "kernel_shape=[5,5] strides=[3,3] auto_pad='SAME_UPPER'" },
    { "f32[2,5,70,131]", "kernel_shape=[3,2] strides=[2,3] pads=[1,1,0,0] count_include_pad=1 ceil_mode=1" },
    { "f32[1,3,40,90]", "kernel_shape=[2,2] strides=[2,2]" },
    { "f32[2,3,21,19]", "kernel_shape=[3,3] strides=[2,1] pads=[1,1,1,1]" },
    { "f32[2,3,21,19]", "kernel_shape=[3,3] strides=[2,2] pads=[0,2,1,2] count_include_pad=1 ceil_mode=1" },
    { "f32[1,2,9,12]", "kernel_shape=[3,3] dilations=[2,3]" },
    { "f32[2,3,7,8,9]", "kernel_shape=[3,2,4] strides=[2,1,3] pads=[1,0,2,0,1,1]" },
    { "f32[1,2,5]", "kernel_shape=[3] pads=[3,4]" }, /* windows that hold nothing */
    { "f32[1,1,3]", "kernel_shape=[900] pads=[899,2]" },
    { "f32[0,3,4,4]", "kernel_shape=[2,2]", "f32[0,3,3,3]={}" },
    { "f32[1,1,4,4]", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1,4]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1,2]", "kernel_shape=[9]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "i32[1,1,2]", "kernel_shape=[1]", .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(averagepool, "AveragePool", averagepool);

static const HnCase maxpool[] = {
    { "f32[1,1,3,3]={1,2,3,4,9,6,7,8,5}", "kernel_shape=[2,2]", "f32[1,1,2,2]={9,9,9,9} i64[1,1,2,2]={4,4,4,4}" },
    { "f32[1,1,2,3]={1,2,9,4,5,6}", "kernel_shape=[1,1] storage_order=1",
      "f32[1,1,2,3]={1,2,9,4,5,6} i64[1,1,2,3]={0,2,4,1,3,5}" },
    /* the first of equals; indices count all planes; padding never wins */
    { "f32[1,2,2]={-1,-1,-5,-4}", "kernel_shape=[2] pads=[1,1]",
      "f32[1,2,3]={-1,-1,-1,-5,-4,-4} i64[1,2,3]={0,0,1,2,3,3}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[2] dilations=[3]", "f32[1,1,1]={4}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[2] dilations=[3]", "f32[1,1,3]={2,3,4}", .opset = 8 },
    /* a last window that would start in the end padding is left out */
    { "f32[1,1,3]={1,2,3}", "kernel_shape=[2] strides=[2] pads=[1,1] ceil_mode=1", "f32[1,1,2]={1,3}" },
    { "f32[1,1,4]={1,2,3,4}", "kernel_shape=[3] strides=[2] ceil_mode=1", "f32[1,1,2]={3,4}" },
    { "i8[1,1,3]={-128,-3,-7}", "kernel_shape=[2]", "i8[1,1,2]={-3,-3}" },
    { "u8[1,1,3]={0,200,7}", "kernel_shape=[2] strides=[2] auto_pad='SAME_UPPER'", "u8[1,1,2]={200,7}" },
    { "f32[1,1,2]={-inf,-inf}", "kernel_shape=[2]", "f32[1,1,1]={-inf} i64[1,1,1]={0}" },
    { "f32[2,3,9,8,7]", "kernel_shape=[2,3,4] strides=[2,2,1] pads=[0,1,1,1,2,0]", .n_out = 2 },
    { "f32[1,3,57,57]", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1" },
    { "f32[2,5,23,20]", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]" },
    { "i8[2,3,12,17]", "kernel_shape=[2,2] strides=[2,2] pads=[1,0,0,1]" },
    { "u8[1,3,9,9]", "kernel_shape=[3,3] dilations=[2,2]" },
    { "f32[2,5,70,131]", "kernel_shape=[5,4] strides=[1,3] dilations=[2,1] pads=[4,1,4,2]" },
    { "f32[2,19,9,8,7]", "kernel_shape=[2,3,4] strides=[2,2,1] pads=[0,1,1,1,2,0]" },
    { "f32[1,1,3]", "kernel_shape=[900] pads=[899,2]" },
    { "f32[1,1,5]={nan,1,nan,nan,-inf}", "kernel_shape=[2]",
      "f32[1,1,4]={1,1,-inf,-inf}" }, /* NaN is not the largest */
    { "f32[1,1,4]", "kernel_shape=[2]", .opset = 7, .n_out = 2, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[4]", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,4]", "kernel_shape=[0]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(maxpool, "MaxPool", maxpool);

static const HnCase lppool[] = {
    { "f32[1,1,3]={3,-4,0}", "kernel_shape=[2]", "f32[1,1,2]={5,4}" },
    { "f32[1,1,3]={3,-4,0}", "kernel_shape=[2] p=1", "f32[1,1,2]={7,4}" },
    { "f32[1,1,3]={3,-4,0}", "kernel_shape=[2] p=1.0", "f32[1,1,2]={7,4}", .opset = 1 },
    { "f32[1,1,3]={3,-4,12}", "kernel_shape=[2] dilations=[2] pads=[1,1]", "f32[1,1,3]={4,12.36931688,4}" },
    { "f64[2,3,8,9]", "kernel_shape=[3,2] p=3 strides=[2,2] auto_pad='SAME_LOWER'" },
    { "f32[1,1,3]", "kernel_shape=[2] p=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(lppool, "LpPool", lppool);

static const HnCase poolgrad[] = {
    { "f32[1,1,3]={2,4,6} f32[1,1,4]", "kernel_shape=[2] sum=1", "f32[1,1,4]={2,6,10,6}" },
    { "f32[1,1,2]={2,4} f32[1,1,4]", "kernel_shape=[2] dilations=[2] strides=[2] pads=[1,1] count_include_pad=1",
      "f32[1,1,4]={0,3,0,2}" },
    { "f32[2,3,4,4] f32[2,3,9,13]", "kernel_shape=[3,2] strides=[2,3] pads=[0,1,1,0] dilations=[1,2]" },
    { "f32[1,2,3,4,4] f32[1,2,5,6,4]", "kernel_shape=[2,3,3] strides=[2,2,1] pads=[1,1,1,1,2,1] count_include_pad=1" },
    { "f32[0,1,3] f32[0,1,4]", "kernel_shape=[2]", "f32[0,1,4]={}" },
    { "f32[1,1,4] f32[1,1,4]", "kernel_shape=[2]", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(poolgrad, "PoolGrad", poolgrad);
