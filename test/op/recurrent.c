#include "case.h"

static const HnCase rnn[] = {
    /* h = relu(x + h): sums from the front, from the back, of two samples of different length */
    { "f32[3,1,1]={1,2,3} f32[1,1,1]={1} f32[1,1,1]={1}", "activations=['Relu'] hidden_size=1",
      "f32[3,1,1,1]={1,3,6} f32[1,1,1]={6}" },
    { "f32[3,2,1]={1,10,2,20,3,30} f32[1,1,1]={1} f32[1,1,1]={1} - i32[2]={3,2}",
      "activations=['Relu'] direction='reverse'", "f32[3,1,2,1]={6,30,5,20,3,0} f32[1,2,1]={6,30}" },
    { "f32[2,1,1]={1,2} f32[2,1,1]={1,1} f32[2,1,1]={1,1} - - f32[2,1,1]={10,20}",
      "activations=['Relu'] direction='bidirectional'", "f32[2,2,1,1]={11,23,13,22} f32[2,1,1]={13,23}" },
    { "f32[1,2,1]={1,2} f32[1,1,1]={1} f32[1,1,1]={1} f32[1,2]={0.5,0.25}",
      "activations=['Affine'] layout=1 "
      "activation_alpha=[2.0] activation_beta=[1.0]",
      "f32[1,2,1,1]={4.5,15.5} f32[1,1,1]={15.5}" },
    { "f32[1,1,1]={7} f32[1,1,1]={1} f32[1,1,1]={1}", "activations=['Relu'] clip=3.0", "f32[1,1,1,1]={3}" },
    { "f32[1,2,1]={1,1} f32[1,1,1]={1} f32[1,1,1]={1} - i32[2]={0,1} f32[1,2,1]={5,5}", "activations=['Relu']",
      "f32[1,1,2,1]={0,6} f32[1,2,1]={0,6}" },
    { "f32[5,3,4] f32[2,6,4] f32[2,6,6] f32[2,12]", "direction='bidirectional' hidden_size=6", .n_out = 2 },
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6] f32[1,12]", "hidden_size=6", .opset = 7 },
    { "f32[5,1,4] !f32[1,6,4] !f32[1,6,6] f32[1,12]", NULL, .n_out = 2 },
    { "f32[5,3,4] !f32[2,17,4] !f32[2,17,17] f32[2,34] i32[3]={5,0,2} f32[2,3,17]",
      "direction='bidirectional' clip=0.5", .n_out = 2 },
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6]", "hidden_size=7", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6]", "direction='bidirectional'", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6] f32[1,12]", "activations=['Softsign'] direction='reverse'", .n_out = 1 },
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6] f32[1,12]", "activations=['Elu']", .n_out = 2 },
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6] f32[1,12]", "activations=['Softplus'] layout=1", .n_out = 2 },
    { "f32[5,3,4] f32[1,6,4] f32[1,6,6] f32[1,12]",
      "activations=['ScaledTanh'] activation_alpha=[0.7] activation_beta=[0.6]", .n_out = 2 },
    { "f32[2,1,1] f32[1,1,1] f32[1,1,1] - i32[1]={3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,1,1] f32[1,1,1] f32[1,1,1]", "activations=['Swish']", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    /* more units than a block of a GPU takes at once, more samples than it does */
    { "f32[3,9,5] !f32[1,70,5] !f32[1,70,70]@-0.1:0.1 f32[1,140] i32[9]={3,2,1,0,3,3,2,1,3}", NULL, .n_out = 2 },
};
HN_CASES(rnn, "RNN", rnn);

static const HnCase gru[] = {
    /* z = 1/2 and r = 1/2 (no weights): h = (tanh-free affine gate + h) / 2 */
    { "f32[1,1,1]={4} f32[1,3,1]={0,0,1} f32[1,3,1]={0,0,1} f32[1,6]={0,0,0,0,0,2} - f32[1,1,1]={6}",
      "activations=['Sigmoid','Relu']", "f32[1,1,1,1]={7.5} f32[1,1,1]={7.5}" },
    { "f32[1,1,1]={4} f32[1,3,1]={0,0,1} f32[1,3,1]={0,0,1} f32[1,6]={0,0,0,0,0,2} - f32[1,1,1]={6}",
      "activations=['Sigmoid','Relu'] linear_before_reset=1", "f32[1,1,1,1]={7}" },
    { "f32[4,3,2] f32[2,15,2] f32[2,15,5] f32[2,30] i32[3]={4,2,1} f32[2,3,5]", "direction='bidirectional'",
      .n_out = 2 },
    { "f32[3,4,2] f32[1,15,2] f32[1,15,5] - - f32[3,1,5]", "layout=1 direction='reverse'", .n_out = 2 },
    { "f32[4,3,2] f32[1,15,2] f32[1,15,5]", NULL, .opset = 3 },
    { "f32[4,1,3] !f32[1,48,3] !f32[1,48,16] f32[1,96]", NULL, .n_out = 2 },
    { "f32[4,1,3] !f32[1,51,3] !f32[1,51,17] f32[1,102]", "linear_before_reset=1", .n_out = 2 },
    { "f32[7,13,3] !f32[2,51,3] !f32[2,51,17] f32[2,102] i64[13]={7,1,0,3,7,7,6,2,3,4,5,6,7} f32[2,13,17]",
      "direction='bidirectional'", .n_out = 2 },
    { "f32[13,7,3] !f32[2,51,3] !f32[2,51,17] f32[2,102] - f32[13,2,17]",
      "direction='bidirectional' linear_before_reset=1 clip=0.4 layout=1", .n_out = 2 },
    { "f32[3,70,5] !f32[1,15,5] !f32[1,15,5]", "direction='reverse'", .n_out = 2 },
    { "f32[4,3,2] f32[1,14,2] f32[1,14,5]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3,9,5] !f32[2,210,5] !f32[2,210,70]@-0.1:0.1 f32[2,420] i32[9]={3,2,1,0,3,3,2,1,3}",
      "direction='bidirectional'", .n_out = 2 },
    { "f32[3,1,5] !f32[1,210,5] !f32[1,210,70]@-0.1:0.1 f32[1,420]", "linear_before_reset=1", .n_out = 2 },
};
HN_CASES(gru, "GRU", gru);

static const HnCase lstm[] = {
    /* gates i, o, f, c of the biases alone: C = f 5 + i g(c), H = o h(C) */
    { "f32[1,1,1]={1} f32[1,4,1]={0,0,0,0} f32[1,4,1]={0,0,0,0} f32[1,8]={2,3,0.5,1,0,0,0,0} - - f32[1,1,1]={5}", NULL,
      "f32[1,1,1,1]={0.9515884389} f32[1,1,1]={0.9515884389} f32[1,1,1]={3.7831065632}" },
    { "f32[1,1,1]={1} f32[1,4,1]={0,0,0,0} f32[1,4,1]={0,0,0,0} f32[1,8]={2,3,0.5,1,0,0,0,0} - - f32[1,1,1]={5}",
      "clip=1.0", "f32[1,1,1,1]={0.7301084353} f32[1,1,1] f32[1,1,1]={3.6690665972}" },
    { "f32[1,1,1]={1} f32[1,4,1]={0,0,0,0} f32[1,4,1]={0,0,0,0} f32[1,8]={2,3,0.5,1,0,0,0,0} - - f32[1,1,1]={5}",
      "input_forget=1", "f32[1,1,1,1]={0.8124834951} f32[1,1,1] f32[1,1,1]={1.2668245173}" },
    { "f32[1,1,1]={1} f32[1,4,1]={0,0,0,0} f32[1,4,1]={0,0,0,0} f32[1,8]={2,3,0.5,1,0,0,0,0} - - f32[1,1,1]={5} "
      "f32[1,3]={0.1,0.2,0.3}",
      NULL, "f32[1,1,1,1]={0.98231876} f32[1,1,1] f32[1,1,1]={5.1078067}" },
    { "f32[1,1,1]={0.7} f32[1,4,1]={1,1,1,1} f32[1,4,1]={0,0,0,0}",
      "activations=['HardSigmoid','LeakyRelu','Affine'] "
      "activation_alpha=[0.3,0.05,0.5] activation_beta=[0.4,0.6]",
      "f32[1,1,1,1]={0.49623504}" },
    { "f32[4,3,2] f32[2,20,2] f32[2,20,5] f32[2,40] i32[3]={4,0,3} f32[2,3,5] f32[2,3,5] f32[2,15]",
      "direction='bidirectional'", .n_out = 3 },
    { "f32[3,4,2] f32[1,20,2] f32[1,20,5]", "layout=1", .n_out = 3 },
    { "f32[0,3,2] f32[1,20,2] f32[1,20,5]", NULL, "f32[0,1,3,5]={} f32[1,3,5] f32[1,3,5]" },
    { "f32[1,1,9] !f32[1,68,9] !f32[1,68,17] f32[1,136] - f32[1,1,17] f32[1,1,17]", NULL, .n_out = 3 },
    { "f32[70,1,9] !f32[2,68,9] !f32[2,68,17] f32[2,136]", "direction='bidirectional'", .n_out = 3 },
    { "f32[4,13,2] !f32[2,68,2] !f32[2,68,17] f32[2,136] i32[13]={4,0,3,1,2,3,4,4,4,3,2,1,0} f32[2,13,17] "
      "f32[2,13,17] f32[2,51]",
      "direction='bidirectional'", .n_out = 3 },
    { "f32[67,3,2] !f32[1,20,2] !f32[1,20,5] - - - f32[67,1,5]", "layout=1 direction='reverse' clip=0.3", .n_out = 3 },
    { "f32[4,3,2] f32[1,20,2] f32[1,20,5] f32[1,39]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[4,3,2] f32[1,20,2] f32[1,20,5]", "activations=['Tanh','Tanh']", .refused = TRUE,
      .code = HN_ERROR_ATTRIBUTE },
    { "f32[3,9,5] !f32[1,280,5] !f32[1,280,70]@-0.1:0.1 f32[1,560] i32[9]={3,2,1,0,3,3,2,1,3} - - f32[1,210]",
      "direction='reverse'", .n_out = 3 },
    { "f32[3,1,5] !f32[1,280,5] !f32[1,280,70]@-0.1:0.1", NULL, .n_out = 3 },
};
HN_CASES(lstm, "LSTM", lstm);

static const HnCase grutraining[] = {
    { "f32[1,1,1]={4} f32[1,3,1]={0,0,1} f32[1,3,1]={0,0,1} f32[1,6]={0,0,0,0,0,2} - f32[1,1,1]={6}",
      "activations=['Sigmoid','Relu'] linear_before_reset=1",
      "f32[1,1,1,1]={7} f32[1,1,1]={7} f32[1,1,1,4]={0.5,0.5,8,8}" },
    { "f32[4,3,2] f32[2,15,2] f32[2,15,5] f32[2,30] i32[3]={4,2,1} f32[2,3,5]", "direction='bidirectional'",
      .n_out = 3 },
    { "f32[9,13,3] f32[2,48,3] f32[2,48,16] f32[2,96] i64[13]={9,1,0,3,7,7,6,2,3,4,5,6,7} f32[2,13,16]",
      "direction='bidirectional' linear_before_reset=1", .n_out = 3 },
    { "f32[13,7,3] f32[1,51,3] f32[1,51,17] f32[1,102]", "linear_before_reset=1 layout=1", .n_out = 3 },
    { "f32[4,9,5] f32[2,51,5] f32[2,51,17] f32[2,102] - f32[2,9,17]", "direction='bidirectional'", .n_out = 3,
      .rtol = 1e-4, .atol = 1e-5 },
    { "f32[4,9,5] f32[2,51,5] f32[2,51,17] f32[2,102]", "direction='bidirectional' linear_before_reset=1", .n_out = 3,
      .rtol = 1e-4, .atol = 1e-5 },
    { "f32[6,30,40] f32[1,96,40]@-0.3:0.3 f32[1,96,32]@-0.3:0.3 f32[1,192] - f32[1,30,32]",
      "direction='reverse' linear_before_reset=1", .n_out = 3, .rtol = 1e-4, .atol = 1e-5 },
};
HN_CASES(grutraining, "GRUTraining", grutraining);

static const HnCase lstmtraining[] = {
    { "f32[1,1,1]={1} f32[1,4,1]={0,0,0,0} f32[1,4,1]={0,0,0,0} f32[1,8]={2,3,0.5,1,0,0,0,0} - - f32[1,1,1]={5}", NULL,
      "f32[1,1,1,1]={0.9515884389} f32[1,1,1]={0.9515884389} f32[1,1,1]={3.7831065632} "
      "f32[1,1,1,4]={0.8807970780,0.9525741268,0.6224593312,0.7615941560} f32[1,1,1,1]={3.7831065632}" },
    { "f32[4,13,2] f32[2,68,2] f32[2,68,17] f32[2,136] i32[13]={4,0,3,1,2,3,4,4,4,3,2,1,0} f32[2,13,17] "
      "f32[2,13,17] f32[2,51]",
      "direction='bidirectional'", .n_out = 5 },
    { "f32[7,33,5] f32[2,64,5] f32[2,64,16] f32[2,128] - f32[2,33,16] f32[2,33,16]", "direction='bidirectional'",
      .n_out = 5 },
    { "f32[37,3,2] f32[1,20,2] f32[1,20,5] - - - f32[37,1,5]", "layout=1 direction='reverse'", .n_out = 5 },
};
HN_CASES(lstmtraining, "LSTMTraining", lstmtraining);
