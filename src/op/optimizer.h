/*
 * Optimizers (domain "hone"): parameters of their records, for backends.
 */
#pragma once

#include "op/hyper.h"
#include "op/op.h"

/* Of all of them; each reads what it has. */
typedef struct {
    double beta1, beta2, epsilon, weight_decay, momentum, decay;
    double limit; /* infinite: none */
    gboolean nesterov;
} HnOptimizer;

/* The decimal fraction that an attribute was written as: of 0.999f, 0.999. */
double hn_decimal(float v);
/* hyper' of ClipByNorm: from the sum of squares of all gradients, as they are. Returns their norm, scaled. */
float hn_clip(const HnOptimizer *p, double squares, const float *hyper, float *to);
