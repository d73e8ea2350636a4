/*
 * Parameters of RNN, GRU and LSTM.
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
} HnRecurrent;

G_END_DECLS
