#include "case.h"

static const HnCase scatter[] = {
    { "f32[3,3]={0,0,0,0,0,0,0,0,0} i64[2,3]={1,0,2,0,2,1} f32[2,3]={1.0,1.1,1.2,2.0,2.1,2.2}", NULL,
      "f32[3,3]={2.0,1.1,0,1.0,0,2.2,0,2.1,1.2}", .opset = 9 },
    { "i32[1,5]={1,2,3,4,5} i32[1,2]={1,3} i32[1,2]={11,21}", "axis=1", "i32[1,5]={1,11,3,21,5}", .opset = 10 },
    { "f32[3] i64[1]={0} f32[1]", NULL, .opset = 11, .refused = TRUE, .code = HN_ERROR_UNSUPPORTED },
};
HN_CASES(scatter, "Scatter", scatter);

static const HnCase scatterelements[] = {
    { "f32[1,5]={1,2,3,4,5} i64[1,2]={1,3} f32[1,2]={1.1,2.1}", "axis=1", "f32[1,5]={1,1.1,3,2.1,5}", .opset = 11 },
    { "f32[1,5]={1,2,3,4,5} i64[1,2]={1,-3} f32[1,2]={1.1,2.1}", "axis=1", "f32[1,5]={1,1.1,2.1,4,5}" },
    { "f32[1,5]={1,2,3,4,5} i64[1,2]={1,1} f32[1,2]={1.5,2}", "axis=1 reduction='add'", "f32[1,5]={1,5.5,3,4,5}",
      .opset = 16 },
    { "u8[3]={200,2,3} i64[2]={0,2} u8[2]={100,90}", "reduction='mul'", "u8[3]={32,2,14}" }, /* modulo 256 */
    { "i8[3]={-3,2,3} i64[3]={0,0,1} i8[3]={-9,-1,1}", "reduction='max'", "i8[3]={-1,2,3}" },
    { "u64[2]={18446744073709551615,1} i64[2]={0,1} u64[2]={5,18446744073709551615}", "reduction='min'",
      "u64[2]={5,1}" },
    { "f16[2]={1,2} i64[2]={0,0} f16[2]={0.5,0.25}", "reduction='add'", "f16[2]={1.75,2}" },
    { "bf16[2]={1,2} i64[1]={0} bf16[1]={4}", "reduction='mul'", "bf16[2]={4,2}" },
    { "bool[2]={1,0} i64[2]={0,1} bool[2]={0,1}", "reduction='add'", "bool[2]={1,1}" },
    { "f32[4,3,2] i64[2,3,2]={0,1,2,3,0,1,1,2,3,0,1,2} f32[2,3,2]", "axis=0" },
    { "f32[2,2] i64[0,2]={} f32[0,2]={}", NULL, "f32[2,2]" },
    { "f32[2] i64[1]={0} f32[1]", "reduction='max'", .opset = 16, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2] i64[1]={2} f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2] !i64[1]={-9223372036854775808} f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[3,1]={0,0,0} f32[3,1]", "axis=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[1,3]={0,0,0} f32[1,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64[2]={0,0} f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[4,6] i64[4,3]@-6:5 f32[4,3]", "axis=1 reduction='add'" },
    { "f64[4,6] i64[2,6]={0,1,2,3,0,1,-1,-2,-3,-4,3,2} f64[2,6]", "axis=0" },
    { "f32[4,6] i64[4,3]@-6:5 f32[4,3]", "axis=1 reduction='max'" },
    /* several updates of one place, few and many */
    { "f16[7,5] i64[40,5]@-7:6 f16[40,5]", NULL },
    { "f32[50] i64[2500]@-50:49 f32[2500]@0:1", "reduction='add'", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[300,3] i32[700,3]@0:299 f32[700,3]", "reduction='max'" },
};
HN_CASES(scatterelements, "ScatterElements", scatterelements);

static const HnCase scatternd[] = {
    { "f32[8]={1,2,3,4,5,6,7,8} i64[4,1]={4,3,1,7} f32[4]={9,10,11,12}", NULL, "f32[8]={1,11,3,10,9,6,7,12}",
      .opset = 11 },
    { "i32[2,2,2]={1,2,3,4,5,6,7,8} i64[1,1]={1} i32[1,2,2]={9,9,8,8}", NULL, "i32[2,2,2]={1,2,3,4,9,9,8,8}" },
    { "f32[4]={1,2,3,4} i64[2,1]={1,1} f32[2]={5,6}", "reduction='add'", "f32[4]={1,13,3,4}", .opset = 16 },
    { "f32[4]={1,2,3,4} i64[2,1]={1,-1} f32[2]={5,6}", "reduction='mul'", "f32[4]={1,10,3,24}" },
    { "f32[2]={1,2} i64[2,1]={0,1} f32[2]={nan,1}", "reduction='min'", "f32[2]={nan,1}" },
    { "f32[3]={1,nan,3} i64[4,1]={0,1,2,2} f32[4]={nan,5,7,-2}", "reduction='max'", "f32[3]={nan,nan,7}" },
    { "f64[3,4,5] i64[2,2]={0,1,2,3} f64[2,5]", "reduction='max'", "f64[3,4,5]" },
    { "f32[4] i64[0,1]={} f32[0]={}", NULL, "f32[4]" },
    { "f32[4] i64[1,1]={4} f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[4] !i64[1,1]={-9223372036854775808} f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[4] !i64[1,1]={9223372036854775807} f32[1]", "reduction='add'", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[4] i64[1,2]={0,0} f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    /* constant indices: pieces that lie side by side, or again in one place */
    { "f32[5,3] !i64[4,1]={1,2,-5,4} f32[4,3]", NULL },
    { "i32[2,3,4] !i64[1,4,2]={0,0,0,1,1,-1,0,1} i32[1,4,4]", NULL },
    { "f32[5]={1,2,3,4,5} !i64[4,1]={3,4,3,4} f32[4]={6,7,8,9}", NULL, "f32[5]={1,2,3,8,9}" },
    { "f32[4,2] i64[1,1]={0} f32[1,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[6,5] i64[2,1]={-1,2} f32[2,5]", NULL },
    { "f32[6,5] i64[3,2]={0,0,5,-1,0,0} f32[3]", "reduction='add'" },
    { "u8[6,5] i64[2,1]={5,0} u8[2,5]", NULL },
    { "f32[9,33] i64[60,1]@-9:8 f32[60,33]", NULL },
    { "f32[9,33] i64[60,1]@-9:8 f32[60,33]@0:1", "reduction='add'", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[200,4] i64[2100,1]@0:199 f32[2100,4]", "reduction='min'" },
    { "u8[4,48] i64[6,1]@0:3 u8[6,48]", NULL },
};
HN_CASES(scatternd, "ScatterND", scatternd);

static const HnCase tensorscatter[] = {
    { "f32[2,1,3,1]={1,2,3,4,5,6} f32[2,1,1,1]={8,9} i64[2]={1,2}", NULL, "f32[2,1,3,1]={1,8,3,4,5,9}" },
    { "f32[2,3,1]={1,2,3,4,5,6} f32[2,2,1]={7,8,9,10} i64[2]={2,4}", "mode='circular' axis=1",
      "f32[2,3,1]={8,2,7,4,9,10}" },
    { "bf16[1,2,2]={1,2,3,4} bf16[1,1,2]={5,6}", NULL, "bf16[1,2,2]={5,6,3,4}" },
    { "f32[1,3,1] f32[1,2,1] i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,3,1] f32[1,2,1] i64[1]={-1}", "mode='circular'", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,3,1] f32[1,4,1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3,2] f32[3,2]", "axis=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3,40,8] f32[2,3,5,8] i64[2]={3,35}", NULL },
    { "u8[2,30,7] u8[2,11,7] i64[2]={25,4}", "mode='circular' axis=1" },
};
HN_CASES(tensorscatter, "TensorScatter", tensorscatter);
