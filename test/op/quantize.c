#include "case.h"

static const HnCase quantizelinear_cases[] = {
    { "f32[6]={0,2,3,1000,-254,-1000} f32={2} u8={128}", NULL, "u8[6]={128,129,130,255,1,0}", .opset = 10 },
    { "f32[4]={1,3,5,-1} f32={2}", NULL, "u8[4]={0,2,2,0}" }, /* halves to even; no zero point is u8 */
    { "i32[2]={10,-300} f32={1} i8={0}", NULL, "i8[2]={10,-128}", .opset = 13 },
    { "f32[2,2]={1,2,3,4} f32[2]={1,2} u8[2]={0,1}", "axis=0", "u8[2,2]={1,2,3,3}", .opset = 13 },
    { "f32[2,2]={1,2,3,4} f32[2]={1,2} u8[2]={0,1}", "axis=-1", "u8[2,2]={1,2,3,3}" },
    { "f32[2,3]={1,2,3,4,5,6} f32[2,2]={1,3,2,6}", "axis=1 block_size=2", "u8[2,3]={1,2,1,2,2,1}", .opset = 21 },
    { "f32[3,2]={1,2,3,4,5,6} f32[2,2]={1,2,5,6} i16[2,2]={0,0,1,1}", "axis=0 block_size=2", "i16[3,2]={1,1,3,2,2,2}",
      .opset = 21 },
    { "f32[2]={-1,70000} f32={1} u16={0}", NULL, "u16[2]={0,65535}", .opset = 21 },
    { "f32[5]={0,2,-9,9,3} f32={1} i4={0}", NULL, "i4[5]={0,2,-8,7,3}", .opset = 21 },
    { "f32[4]={0,2,-9,9} f32={1} i4={0}", NULL, "i4[4]={0,2,-8,7}", .opset = 21 },
    { "f32[2]={1000,1} f32={1}", "output_dtype=17", "f8e4m3fn[2]={448,1}", .opset = 21 },
    { "f16[2]={1,3} f16={2} u8={0}", NULL, "u8[2]={0,2}", .opset = 19 },
    { "f32[1]={2049} f32={1} i16={0}", "precision=10", "i16[1]={2048}", .opset = 23 }, /* 2049 is no f16 */
    { "f32[3]={1,2,3} f32[3]={1,2,3} u8[3]={0,0,0}", NULL, "u8[3]={1,1,1}" },          /* one axis: that one */
    { "f32[3]={nan,inf,-inf} f32={1} u8={3}", NULL, "u8[3]={0,255,0}" },
    /* long rows: saturated at either end, nearly and exactly between two numbers */
    { "f32[3,700]@-40:40 f32={0.37} u8={100}" },
    { "f32[2,400]@-300:300 !f32={2} !i8={-3}" },
    { "f32[1,600]@-200:200 f32={1e-4} u8={7}" },
    { "f32[5,333]@-1:1 f32={0.0078125} i8={0}" },
    { "f32[0,4] f32={1} u8={0}", NULL, "u8[0,4]={}" },
    { "f32={7} f32={2} u8={0}", NULL, "u8={4}" },
    { "f32[2,2] f32[2]", NULL, .opset = 10, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] f32[2,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] f32[2]", "axis=2", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,5] f32[2,2]", "block_size=2", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] f32[1] u8[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] f32={1} u8={0}", "output_dtype=3", .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[2] f32={1}", "block_size=-1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(quantizelinear, "QuantizeLinear", quantizelinear_cases);

static const HnCase dequantizelinear_cases[] = {
    { "u8[4]={0,3,128,255} f32={2} u8={128}", NULL, "f32[4]={-256,-250,0,254}", .opset = 10 },
    { "i32[2]={-2147483648,3} f32={0.5}", NULL, "f32[2]={-1073741824,1.5}" },
    { "u8[2,2]={1,2,3,4} f32[2]={2,4} u8[2]={0,1}", "axis=0", "f32[2,2]={2,4,8,12}", .opset = 13 },
    { "i8[1,2,2]={1,2,3,4} f32[2]={2,4}", NULL, "f32[1,2,2]={2,4,12,16}" },
    { "i8[2,2]={1,2,3,4} f32[2]={2,4} i8[2]={0,1}", "axis=-1", "f32[2,2]={2,4,6,12}" },
    { "u8[2,3]={1,2,3,4,5,6} f32[2,2]={1,2,3,4} u8[2,2]={0,1,2,3}", "block_size=2", "f32[2,3]={1,2,4,6,9,12}",
      .opset = 21 },
    { "u16[3,1]={30000,31000,32768} f32={1} u16={32767}", NULL, "f32[3,1]={-2767,-1767,1}", .opset = 21 },
    { "i4[3]={-8,7,1} f32={2} i4={1}", NULL, "f32[3]={-18,12,0}", .opset = 21 },
    { "f8e4m3fn[2]={448,-1} f16={0.5}", NULL, "f16[2]={224,-0.5}", .opset = 19 },
    { "i8[2]={3,-3} f32={0.5}", "output_dtype=16", "bf16[2]={1.5,-1.5}", .opset = 23 },
    { "u8[0] f32={1}", NULL, "f32[0]={}" },
    { "u8[2] f32={1} i8={0}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "u8[2,3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "u8[2,3,4] f32[2,3]", "block_size=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "i8[2,3]={3,-3,7,-8,9,1} f16[3]={0.5,0.25,2} i8[3]={1,0,-1}", NULL, "f16[2,3]={1,-0.75,16,-4.5,2.25,4}" },
    { "u4[5]={15,0,7,1,8} f16={0.5} u4={8}", NULL, "f16[5]={3.5,-4,-0.5,-3.5,0}", .opset = 21 },
};
HN_CASES(dequantizelinear, "DequantizeLinear", dequantizelinear_cases);

static const HnCase dynamicquantizelinear_cases[] = {
    { "f32[6]={0,2,-3,-2.5,1.34,0.5}", NULL, "u8[6]={153,255,0,26,221,179} f32={0.01960784} u8={153}" },
    { "f32[3,4]={1,2.1,1.3,2.5,3.34,4,1.5,2.6,3.9,4,3,2.345}", NULL,
      "u8[3,4]={64,134,83,159,213,255,96,166,249,255,191,149} f32={0.01568628} u8={0}" },
    { "f32[2]={0,0}", NULL, "u8[2]={0,0} f32={1} u8={0}" },
    { "f32[0]", NULL, "u8[0]={} f32={1} u8={0}" },
    { "f64[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(dynamicquantizelinear, "DynamicQuantizeLinear", dynamicquantizelinear_cases);
