/*
 * What the loops of optimizers read and write.
 */
#pragma once

#include <stdint.h>

/* What a step multiplies by: the attributes, and the elements of `hyper`. */
typedef struct {
    float scale, rate, decay, momentum, epsilon;
    float new1, new2, keep2; /* 1 - beta1, 1 - beta2, beta2 */
    float keep;              /* 1 - rate * weight_decay */
    float rate1, root2;      /* rate / (1 - beta1^t), 1 / sqrt(1 - beta2^t) */
} HnUpdateNumbers;

#define HN_UPDATE_STATES 3

/* A part of a tensor: weights and state, what becomes of them, and the gradient. */
typedef struct {
    const float *in[HN_UPDATE_STATES], *dw;
    float *out[HN_UPDATE_STATES];
} HnUpdatePart;
