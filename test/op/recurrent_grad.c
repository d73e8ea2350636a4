#include "case.h"

/* A derivative that is made of the result. */
#define OF_Y(attrs)                                                                                         \
    {                                                                                                       \
        "f32[5,3,4] f32[1,6,4] f32[1,6,6] - - - - f32[5,1,3,6]@0.1:0.9 - - f32[5,1,3,6]", attrs, .n_out = 5 \
    }

/* X W R lens h c P Y gates cells dY dY_h dY_c */
static const HnCase rnngrad[] = {
    /* y = relu(3 * 2 + 5 * 1) */
    { "f32[1,1,1]={2} f32[1,1,1]={3} f32[1,1,1]={5} - f32[1,1,1]={1} - - f32[1,1,1,1]={11} - - f32[1,1,1,1]={1}",
      "activations=['Relu']",
      "f32[1,1,1]={3} f32[1,1,1]={2} f32[1,1,1]={1} f32[1,2]={1,1} f32[1,1,1]={5} f32[1,1,1] f32[1,3]" },
    /* two steps backwards: y1 = 1 + 10, y0 = 2 + 11 */
    { "f32[2,1,1]={2,1} f32[1,1,1]={1} f32[1,1,1]={1} - f32[1,1,1]={10} - - f32[2,1,1,1]={13,11} - - "
      "f32[2,1,1,1]={1,100} f32[1,1,1]={1000}",
      "activations=['Relu'] direction='reverse'", "f32[2,1,1]={1001,1101} f32[1,1,1]={3103} f32[1,1,1]={22021}",
      .n_out = 3 },
    { "f32[5,3,4] f32[2,6,4] f32[2,6,6] - f32[2,3,6] - - f32[5,2,3,6] - - f32[5,2,3,6] f32[2,3,6]",
      "direction='bidirectional'", .n_out = 5 },
    { "f32[3,5,4] f32[1,6,4] f32[1,6,6] - - - - f32[3,5,1,6] - - f32[3,5,1,6]", "layout=1", .n_out = 5 },
    OF_Y("activations=['ScaledTanh'] activation_alpha=[1.5] activation_beta=[0.7]"),
    OF_Y("activations=['HardSigmoid'] activation_alpha=[0.3] activation_beta=[0.4]"),
    OF_Y("activations=['LeakyRelu'] activation_alpha=[0.1]"),
    OF_Y("activations=['Affine'] activation_alpha=[0.4] activation_beta=[0.1]"),
    OF_Y("activations=['Elu'] activation_alpha=[1.5]"),
    OF_Y("activations=['Softsign']"),
    OF_Y("activations=['Softplus']"),
    OF_Y("activations=['ThresholdedRelu'] activation_alpha=[0.3]"),
    OF_Y("activations=['Sigmoid']"),
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6]", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[5,3,4] f32[1,6,5] f32[1,6,6] - - - - f32[5,1,3,6]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(rnngrad, "RNNGrad", rnngrad);

static const HnCase grugrad[] = {
    { "f32[4,3,2] f32[2,15,2] f32[2,15,5] i32[3]={4,2,1} f32[2,3,5] - - f32[4,2,3,5] f32[4,2,3,15] - f32[4,2,3,5]",
      "direction='bidirectional'", .n_out = 5 },
    { "f32[4,3,2] f32[2,48,2] f32[2,48,16]@-0.3:0.3 i32[3]={4,2,1} f32[2,3,16] - - f32[4,2,3,16] f32[4,2,3,64]@0:1 - "
      "f32[4,2,3,16] f32[2,3,16]",
      "direction='bidirectional' linear_before_reset=1", .n_out = 5 },
    { "f32[20,6,7] f32[1,51,7] f32[1,51,17]@-0.3:0.3 - - - - f32[20,6,1,17] f32[6,1,20,68]@0:1 - f32[20,6,1,17] "
      "f32[20,1,17]",
      "linear_before_reset=1 layout=1", .n_out = 5 },
    { "f32[2,30,3] f32[1,48,3] f32[1,48,16] - - - - f32[2,1,30,16] f32[2,1,30,48] - f32[2,1,30,16]", NULL, .n_out = 5,
      .rtol = 1e-4, .atol = 1e-3 },
    { "f32[5,13,3] f32[2,51,3] f32[2,51,17]@-0.3:0.3 - f32[2,13,17] - - f32[5,2,13,17] f32[5,2,13,68]@0:1 - - "
      "f32[2,13,17]",
      "direction='bidirectional' linear_before_reset=1", .n_out = 5, .rtol = 1e-4, .atol = 1e-3 },
    { "f32[5,13,3] f32[2,51,3] f32[2,51,17]@-0.3:0.3 - f32[2,13,17] - - f32[5,2,13,17] f32[5,2,13,51]@0:1 - "
      "f32[5,2,13,17] "
      "f32[2,13,17]",
      "direction='bidirectional'", .n_out = 5, .rtol = 1e-4, .atol = 1e-3 },
    /* so many samples that a few steps are summed up at a time, the last ones fewer */
    { "f32[3,200,3] f32[1,15,3] f32[1,15,5] - f32[1,200,5] - - f32[3,1,200,5] f32[3,1,200,20] - f32[3,1,200,5]",
      "direction='reverse' linear_before_reset=1", .n_out = 7, .rtol = 1e-4, .atol = 1e-3 },
    { "f32[4,3,2] f32[1,15,2] f32[1,15,5] - - - - f32[4,1,3,5]", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
};
HN_CASES(grugrad, "GRUGrad", grugrad);

static const HnCase lstmgrad[] = {
    { "f32[4,3,2] f32[2,20,2] f32[2,20,5] i32[3]={4,0,3} f32[2,3,5] f32[2,3,5] f32[2,15] f32[4,2,3,5] f32[4,2,3,20] "
      "f32[4,2,3,5] f32[4,2,3,5] f32[2,3,5] f32[2,3,5]",
      "direction='bidirectional'", .n_out = 7 },
    { "f32[2,30,3] f32[1,64,3] f32[1,64,16] - - - - f32[2,1,30,16] f32[2,1,30,64] f32[2,1,30,16] f32[2,1,30,16]", NULL,
      .n_out = 6, .rtol = 1e-4, .atol = 1e-3 },
    { "f32[2,13,3] f32[2,68,3] f32[2,68,17] - f32[2,13,17] f32[2,13,17] - f32[2,2,13,17] f32[2,2,13,68] "
      "f32[2,2,13,17] - f32[2,13,17] f32[2,13,17]",
      "direction='bidirectional'", .n_out = 6, .rtol = 1e-4, .atol = 1e-3 },
    { "f32[33,5,3] f32[1,68,3] f32[1,68,17]@-0.3:0.3 - f32[33,1,17] f32[33,1,17] - f32[33,5,1,17] f32[5,1,33,68]@0:1 "
      "f32[5,1,33,17] - f32[33,1,17]",
      "layout=1 direction='reverse'", .n_out = 6, .rtol = 1e-4, .atol = 1e-4 },
    /* so many samples that a few steps are summed up at a time, the last ones fewer */
    { "f32[3,200,3] f32[2,20,3] f32[2,20,5] - f32[2,200,5] f32[2,200,5] - f32[3,2,200,5] f32[3,2,200,20] "
      "f32[3,2,200,5] f32[3,2,200,5] f32[2,200,5] f32[2,200,5]",
      "direction='bidirectional'", .n_out = 6, .rtol = 1e-4, .atol = 1e-3 },
    { "f32[4,3,2] f32[1,20,2] f32[1,20,5] - - - - f32[4,1,3,5] f32[4,1,3,20]", NULL, .refused = TRUE,
      .code = HN_ERROR_GRAPH },
};
HN_CASES(lstmgrad, "LSTMGrad", lstmgrad);
