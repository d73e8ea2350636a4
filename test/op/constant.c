#include "case.h"

static const HnCase constant[] = {
    { "", "value=f32[2]={1.5,-2}", "f32[2]={1.5,-2}", .opset = 1 },
    { "", "value=bool={1}", "bool={1}" },
    { "", "value_int=-3", "i64={-3}" },
    { "", "value_ints=[1,2,3]", "i64[3]={1,2,3}", .opset = 12 },
    { "", "value_float=0.5", "f32={0.5}" },
    { "", "value_floats=[0.5,1.0]", "f32[2]={0.5,1}" },
    { "", "value_strings=['a','bc']", "string[2]" },
    { "", "value_string='a'", "string" },
    { "", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "", "value_int=1 value_float=1.0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "", "value=3", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "", "value_int=1", .opset = 11, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(constant, "Constant", constant);

static const HnCase constantofshape[] = {
    { "!i64[2]={2,3}", NULL, "f32[2,3]={0,0,0,0,0,0}", .opset = 9 },
    { "i64[1]={3}", "value=i32[1]={7}", "i32[3]={7,7,7}" },
    { "i64[0]={}", "value=bool[1]={1}", "bool={1}" },
    { "i64[2]={4,0}", "value=f16[1]={1}", "f16[4,0]={}" },
    { "!i64[1]={-1}", "value=i32[1]={1}", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64[1]={2}", "value=f32[2]={1,2}", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[3]={4294967296,4294967296,4294967296}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(constantofshape, "ConstantOfShape", constantofshape);

static const HnCase eyelike[] = {
    { "i32[2,3]", NULL, "i32[2,3]={1,0,0,0,1,0}", .opset = 9 },
    { "f32[3,2]", "k=-1 dtype=11", "f64[3,2]={0,0,1,0,0,1}" },
    { "bool[2,3]", "k=2", "bool[2,3]={0,0,1,0,0,0}" },
    { "f32[2,2]", "dtype=16", "bf16[2,2]={1,0,0,1}" },
    { "f32[2,2]", "dtype=10 k=5", "f16[2,2]={0,0,0,0}" },
    { "f32[2,2]", "k=-9223372036854775807", "f32[2,2]={0,0,0,0}" },
    { "f32[0,2]", NULL, "f32[0,2]={}" },
    { "f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2]", "dtype=8", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(eyelike, "EyeLike", eyelike);

static const HnCase range[] = {
    { "!i64={3} !i64={9} !i64={3}", NULL, "i64[2]={3,6}", .opset = 11 },
    { "i32={10} i32={4} i32={-2}", NULL, "i32[3]={10,8,6}" },
    { "f32={1} f32={5} f32={2}", NULL, "f32[2]={1,3}" },
    { "f32={0} f32={1} f32={0.1}", NULL, "f32[10]={0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9}" },
    { "i16={5} i16={1} i16={1}", NULL, "i16[0]={}" },
    { "i64={-9223372036854775807} i64={9223372036854775807} i64={9223372036854775807}", NULL,
      "i64[2]={-9223372036854775807,0}" },
    { "f16={2046} f16={2052} f16={2}", NULL, "f16[3]={2046,2048,2050}" },
    { "f32={0} f32={1} f32={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64={0} i64={1} i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32={0} f32={nan} f32={1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64[2]={0,1} i64={1} i64={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "i8={0} i8={1} i8={1}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(range, "Range", range);
