/*
 * Products of bytes: what a step's inputs are, for the kernels of all backends.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

/* Inputs of a step by their meaning; -1: it has none. */
typedef struct {
    int x, x_scale, x_zero, w, w_scale, w_zero, bias, y_scale, y_zero;
    gboolean matrix;   /* a product of matrices, not a convolution */
    gboolean internal; /* its parameters are an HnQuantProduct */
} HnInt8Inputs;

/* Of QuantConv, QuantMatMul, QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger. */
const HnInt8Inputs *hn_int8_inputs(const HnStep *s);
const HnTensor *hn_int8_input(const HnStep *s, int i); /* NULL: absent */

G_END_DECLS
