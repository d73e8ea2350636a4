/*
 * Parameters of RNN, GRU and LSTM, and of the internal records of their training (domain "hone").
 *
 * GRUTraining and LSTMTraining are GRU and LSTM with further results: `gates` f[T,D,B,S*H], what the functions of the
 * gates made of their sums, and LSTM's `cells` f[T,D,B,H], the cell states, both 0 behind a sequence's end. S is the
 * number of gates; a GRU with linear_before_reset has a fourth: h R' + Rb of the hidden gate, which is reset then.
 *
 * RNNGrad, GRUGrad and LSTMGrad: gradients of X, W, R, B, initial_h, initial_c, P (0 ... 6) from inputs X, W, R,
 * sequence_lens, initial_h, initial_c, P, Y, gates, cells (0 ... 9) and the gradients of Y, Y_h, Y_c (10 ... 12).
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef enum { HN_RNN, HN_GRU, HN_LSTM } HnRecurrentKind;
typedef enum { HN_FORWARD, HN_REVERSE, HN_BIDIRECTIONAL } HnDirection;

/* Functions of gates. */
typedef enum {
    HN_GATE_RELU,
    HN_GATE_TANH,
    HN_GATE_SIGMOID,
    HN_GATE_AFFINE,
    HN_GATE_LEAKY_RELU,
    HN_GATE_THRESHOLDED_RELU,
    HN_GATE_SCALED_TANH,
    HN_GATE_HARD_SIGMOID,
    HN_GATE_ELU,
    HN_GATE_SOFTSIGN,
    HN_GATE_SOFTPLUS
} HnGateFunction;

typedef struct {
    HnGateFunction f;
    double alpha, beta;
} HnGate;

typedef struct {
    HnRecurrentKind kind;
    HnDirection direction;
    int gates, per_direction; /* functions of one direction */
    HnGate act[6];            /* per direction: f, g, h */
    int64_t hidden;           /* 0: not given */
    double clip;              /* of what goes into the gates; infinite: none */
    gboolean input_forget, linear_before_reset, batch_first;
    gboolean dynamic; /* DynamicQuantizeLSTM */
} HnRecurrent;

/*
 * com.microsoft's DynamicQuantizeLSTM: LSTM whose products are of integers. W [D,I,4*H] and R [D,H,4*H] are bytes with
 * a scale and a zero point for each direction, or for each column of each; X as a whole, and the state of a direction
 * before each step as a whole, are rounded as DynamicQuantizeLinear does.
 */
enum { HN_DYNAMIC_W_SCALE = 8, HN_DYNAMIC_W_ZERO, HN_DYNAMIC_R_SCALE, HN_DYNAMIC_R_ZERO, HN_DYNAMIC_INPUTS };

enum {
    HN_RECURRENT_X,
    HN_RECURRENT_W,
    HN_RECURRENT_R,
    HN_RECURRENT_LENS,
    HN_RECURRENT_H,
    HN_RECURRENT_C,
    HN_RECURRENT_P,
    HN_RECURRENT_Y,
    HN_RECURRENT_GATES,
    HN_RECURRENT_CELLS,
    HN_RECURRENT_DY,
    HN_RECURRENT_DY_H,
    HN_RECURRENT_DY_C,
};
enum {
    HN_RECURRENT_DX,
    HN_RECURRENT_DW,
    HN_RECURRENT_DR,
    HN_RECURRENT_DB,
    HN_RECURRENT_DH,
    HN_RECURRENT_DC,
    HN_RECURRENT_DP
};

struct HnTape;

/* S from above. */
static inline int hn_recurrent_slots(const HnRecurrent *p)
{
    return p->gates + (p->kind == HN_GRU && p->linear_before_reset);
}
double hn_gate_value(const HnGate *a, double x);
void hn_recurrent_grad(struct HnTape *t);
void hn_rnn_bind(HnBind *b, void *params);
void hn_gru_bind(HnBind *b, void *params);
void hn_lstm_bind(HnBind *b, void *params);
void hn_recurrent_ref(HnEval *e);
/* Steps of each sequence of a batch, of that input or all of them, in scratch memory; e->error where they do not fit.
 */
int64_t *hn_recurrent_lens(HnEval *e, int input, int64_t batch, int64_t steps);

G_END_DECLS
