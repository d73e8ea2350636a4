#include "case.h"

static const HnCase acos_cases[] = {
    { "f32[3]={-0.5,0,1}", NULL, "f32[3]={2.0943952,1.5707964,0}" },
    { "f32[2,5]@-1:1", NULL },
    { "f64={2}", NULL, "f64={nan}" },
    { "f32[0]", NULL, "f32[0]={}" },
    { "f32[3]", NULL, .opset = 6, .refused = TRUE, .code = HN_ERROR_UNSUPPORTED },
};
HN_CASES(acos, "Acos", acos_cases);

static const HnCase acosh_cases[] = {
    { "f32[3]={1,2,10}", NULL, "f32[3]={0,1.3169579,2.9932228}" },
    { "f32[7]@1:9", NULL },
    { "f32[1]={0}", NULL, "f32[1]={nan}" },
};
HN_CASES(acosh, "Acosh", acosh_cases);

static const HnCase asin_cases[] = {
    { "f32[3]={-0.5,0,1}", NULL, "f32[3]={-0.5235988,0,1.5707964}" },
    { "f32[2,5]@-1:1", NULL },
    { "i32[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(asin, "Asin", asin_cases);

static const HnCase asinh_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-0.8813736,0,0.8813736}" },
    { "f32[3,3]", NULL },
    { "f64[1]={1e-20}", NULL, "f64[1]={1e-20}", .rtol = 1e-12 },
};
HN_CASES(asinh, "Asinh", asinh_cases);

static const HnCase atan_cases[] = {
    { "f32[4]={-1,0,1,inf}", NULL, "f32[4]={-0.7853982,0,0.7853982,1.5707964}" },
    { "f32[3,3]", NULL, .opset = 7 },
    { "f16[2]={-1,0}", NULL, "f16[2]={-0.7853982,0}", .rtol = 1e-3 },
};
HN_CASES(atan, "Atan", atan_cases);

static const HnCase atanh_cases[] = {
    { "f32[4]={-0.5,0,0.5,1}", NULL, "f32[4]={-0.5493061,0,0.5493061,inf}" },
    { "f32[9]@-0.9:0.9", NULL },
    { "f32={0}", NULL, "f32={0}" },
};
HN_CASES(atanh, "Atanh", atanh_cases);

static const HnCase ceil_cases[] = {
    { "f32[3,5]@-3:3", NULL },
    { "f32[5]={-1.5,-0.2,0,1.2,inf}", NULL, "f32[5]={-1,0,0,2,inf}" },
    { "f64={1e17}", NULL, "f64={1e17}", .opset = 6 },
    { "f32[2,3]", NULL, .opset = 1 },
    { "i32[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(ceil, "Ceil", ceil_cases);

static const HnCase cos_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={0.54030231,1,0.54030231}" },
    { "f32[1]={1000000}", NULL, "f32[1]={0.93675213}" },
    { "f32[3,2]", NULL },
};
HN_CASES(cos, "Cos", cos_cases);

static const HnCase cosh_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={1.5430806,1,1.5430806}" },
    { "f32[1]={100}", NULL, "f32[1]={inf}" },
    { "f32[3,2]", NULL },
};
HN_CASES(cosh, "Cosh", cosh_cases);

static const HnCase exp_cases[] = {
    { "f32[2,3,4]", NULL },
    { "f32[1003]@-87:88", NULL, .rtol = 3e-7, .atol = 1e-44 },
    { "f32[17]={-inf,-110,-95,-87.5,88.5,88.8,1000,nan,inf,0,1,-1,2,-2,-20,20,-0.5}", NULL,
      "f32[17]={0,0,5.52111595e-42,9.9823514e-39,2.72308792e+38,inf,inf,nan,inf,1,2.71828175,0.36787945,7.38905621,0."
      "135335281,2.06115369e-09,485165184,0.606530666}" },
    { "f32[5]={-1,0,1,-inf,1000}", NULL, "f32[5]={0.36787945,1,2.7182817,0,inf}" },
    { "f32[2,3,4]", NULL, .opset = 6 },
    { "f32[2]={0,0}", "consumed_inputs=[0]", "f32[2]={1,1}", .opset = 1 },
    { "bf16={1}", NULL, "bf16={2.71875}" },
};
HN_CASES(exp, "Exp", exp_cases);

static const HnCase floor_cases[] = {
    { "f32[3,5]@-3:3", NULL },
    { "f32[5]={-1.5,-0.2,0,1.2,-inf}", NULL, "f32[5]={-2,-1,0,1,-inf}" },
    { "f32[2,3]", NULL, .opset = 1 },
    { "f32[0,3]", NULL, "f32[0,3]={}" },
};
HN_CASES(floor, "Floor", floor_cases);

static const HnCase log_cases[] = {
    { "f32[4]={1,10,0,-1}", NULL, "f32[4]={0,2.3025851,-inf,nan}" },
    { "f32[2,3,4]@0.1:9", NULL, .opset = 6 },
    { "f64={2.718281828459045}", NULL, "f64={1}", .rtol = 1e-15 },
};
HN_CASES(log, "Log", log_cases);

static const HnCase reciprocal_cases[] = {
    { "f32[4]={-4,2,0,inf}", NULL, "f32[4]={-0.25,0.5,inf,0}" },
    { "f32[2,3]@1:2", NULL, .opset = 1 },
    { "u8[2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(reciprocal, "Reciprocal", reciprocal_cases);

static const HnCase round_cases[] = {
    /* halves to even */
    { "f32[10]={0.1,0.5,0.9,1.2,1.5,1.8,2.3,2.5,2.7,-1.1}", NULL, "f32[10]={0,0,1,1,2,2,2,2,3,-1}" },
    { "f64[5]={-1.9,-2.2,-2.5,-2.8,4503599627370497.5}", NULL, "f64[5]={-2,-2,-2,-3,4503599627370498}", .rtol = 1e-17 },
    { "f16[2]={0.5,-1.5}", NULL, "f16[2]={0,-2}", .opset = 11 },
};
HN_CASES(round, "Round", round_cases);

static const HnCase sin_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-0.84147096,0,0.84147096}" },
    { "f32[1]={inf}", NULL, "f32[1]={nan}" },
    { "f32[3,2]", NULL },
};
HN_CASES(sin, "Sin", sin_cases);

static const HnCase sinh_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-1.1752012,0,1.1752012}" },
    { "f32[3,2]", NULL, .opset = 9 },
    { "f32[3]", NULL, .opset = 8, .refused = TRUE, .code = HN_ERROR_UNSUPPORTED },
};
HN_CASES(sinh, "Sinh", sinh_cases);

static const HnCase sqrt_cases[] = {
    { "f32[3,4]@0.5:9", NULL },
    { "f32[4]={1,4,9,-1}", NULL, "f32[4]={1,2,3,nan}" },
    { "f32[3,4]@0:9", NULL, .opset = 6 },
    { "f16={2}", NULL, "f16={1.4140625}" },
};
HN_CASES(sqrt, "Sqrt", sqrt_cases);

static const HnCase tan_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-1.5574077,0,1.5574077}" },
    { "f32[3,2]@-1:1", NULL },
    { "f32[0]", NULL, "f32[0]={}" },
};
HN_CASES(tan, "Tan", tan_cases);

static const HnCase tanh_cases[] = {
    { "f32[5]={-1,0,1,100,-inf}", NULL, "f32[5]={-0.76159418,0,0.76159418,1,-1}" },
    { "f32[2,3,4]", NULL, .opset = 6 },
    { "f64={nan}", NULL, "f64={nan}" },
};
HN_CASES(tanh, "Tanh", tanh_cases);
