#include "case.h"

static const HnCase celu_cases[] = {
    { "f32[3]={-1,0,1}", "alpha=2.0", "f32[3]={-0.78693867,0,1}" },
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-0.63212055,0,1}", .opset = 12 },
    { "f32[3,3,3,1]", "alpha=2.0" },
};
HN_CASES(celu, "Celu", celu_cases);

static const HnCase elu_cases[] = {
    { "f32[3]={-1,0,1}", "alpha=2.0", "f32[3]={-1.2642411,0,1}" },
    { "f32[3]={-1,-inf,nan}", NULL, "f32[3]={-0.63212055,-1,nan}" },
    { "f32[3,4,5]", "consumed_inputs=[0]", .opset = 1 },
    { "f32[1]", "alpha=2", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(elu, "Elu", elu_cases);

static const HnCase gelu_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-0.15865526,0,0.8413447}" },
    { "f32[4]={-inf,inf,nan,-20}", NULL, "f32[4]={nan,inf,nan,0}" },
    { "f32[3]={-1,0,1}", "approximate='tanh'", "f32[3]={-0.15880801,0,0.841192}" },
    { "f32[4]={-10000,-100,-10,10000}", "approximate='tanh'", "f32[4]={0,0,0,10000}" },
    { "f32[3]={-10,-100,100}", NULL, "f32[3]={-7.619853e-23,0,100}", .rtol = 1e-5 },
    { "f32[2,3,4]", "approximate='none'" },
    { "f32[1]", "approximate='sigmoid'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[263]@-8:8", NULL },
    { "f32[263]@-8:8", "approximate='tanh'" },
};
HN_CASES(gelu, "Gelu", gelu_cases);

static const HnCase hardsigmoid_cases[] = {
    { "f32[3]={-1,0,1}", "alpha=0.5 beta=0.6", "f32[3]={0.1,0.6,1}" },
    { "f32[3]={-10,0,10}", NULL, "f32[3]={0,0.5,1}", .opset = 6 },
    { "f32[3,4,5]", NULL },
};
HN_CASES(hardsigmoid, "HardSigmoid", hardsigmoid_cases);

static const HnCase hardswish_cases[] = {
    { "f32[5]={-4,-3,0,1.5,4}", NULL, "f32[5]={0,0,0,1.125,4}" },
    { "f32[2,3,4]", NULL, .opset = 14 },
    { "f16[2]={3,-3}", NULL, "f16[2]={3,0}" },
};
HN_CASES(hardswish, "HardSwish", hardswish_cases);

static const HnCase leakyrelu_cases[] = {
    { "f32[3]={-1,0,1}", "alpha=0.1", "f32[3]={-0.1,0,1}" },
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-0.01,0,1}", .opset = 6 },
    { "f32[2,0]", NULL, "f32[2,0]={}" },
    { "f32[3,4,5]", NULL, .opset = 1 },
};
HN_CASES(leakyrelu, "LeakyRelu", leakyrelu_cases);

static const HnCase mish_cases[] = {
    { "f32[4]={-1,0,1,100}", NULL, "f32[4]={-0.30340147,0,0.86509837,100}" },
    { "f32[3,4]", NULL, .opset = 18 },
    { "f64={nan}", NULL, "f64={nan}" },
};
HN_CASES(mish, "Mish", mish_cases);

static const HnCase selu_cases[] = {
    { "f32[3]={-1,0,1}", "alpha=2.0 gamma=3.0", "f32[3]={-3.7927234,0,3}" },
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-1.1113307,0,1.050701}" },
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-1.1112890,0,1.0507}", .opset = 1 }, /* rounder constants */
};
HN_CASES(selu, "Selu", selu_cases);

static const HnCase sigmoid_cases[] = {
    { "f32[5]={-1,0,1,-1000,1000}", NULL, "f32[5]={0.26894143,0.5,0.7310586,0,1}" },
    { "f32[3,4,5]", NULL, .opset = 6 },
    { "f32={0}", NULL, "f32={0.5}" },
};
HN_CASES(sigmoid, "Sigmoid", sigmoid_cases);

static const HnCase softplus_cases[] = {
    { "f32[5]={-1,0,1,1000,-1000}", NULL, "f32[5]={0.31326166,0.6931472,1.3132616,1000,0}" },
    { "f32[3,4,5]", NULL, .opset = 1 },
    { "f32[1]={nan}", NULL, "f32[1]={nan}" },
    { "f32[263]@-40:40", NULL },
};
HN_CASES(softplus, "Softplus", softplus_cases);

static const HnCase softsign_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-0.5,0,0.5}" },
    { "f32[3,4,5]", NULL, .opset = 1 },
    { "i64[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(softsign, "Softsign", softsign_cases);

static const HnCase swish_cases[] = {
    { "f32[3]={-1,0,1}", NULL, "f32[3]={-0.26894143,0,0.7310586}" },
    { "f32[3]={3,4,5}", "alpha=0.5", "f32[3]={2.4527233,3.5231884,4.6207094}" },
    { "f32[3]", NULL, .opset = 23, .refused = TRUE, .code = HN_ERROR_UNSUPPORTED },
};
HN_CASES(swish, "Swish", swish_cases);

static const HnCase thresholdedrelu_cases[] = {
    { "f32[5]={-1.5,0,1.2,2,2.2}", "alpha=2.0", "f32[5]={0,0,0,0,2.2}" },
    { "f32[3]={0.9,1,1.1}", NULL, "f32[3]={0,0,1.1}", .opset = 10 },
    { "f32[3,4]", NULL },
};
HN_CASES(thresholdedrelu, "ThresholdedRelu", thresholdedrelu_cases);
