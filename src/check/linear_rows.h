/*
 * A node with constant weights as what it is to the arithmetic: rows of `k` numbers of its input, each multiplied by
 * every row of the weights.
 *
 *     y[r, g * outs + o] = sum over i of x[r, g, i] * w[g * outs + o, i]
 *
 * Conv, Gemm, and MatMul of a weight with two axes. A convolution's row is a window, and each of its groups has an x.
 */
#pragma once

#include "op/conv.h"

G_BEGIN_DECLS

typedef struct {
    const HnNode *node;
    const HnTensor *w, *x;
    int64_t groups, outs, k;
    int64_t taps;      /* of a window, k = channels * taps; 1 for others */
    int64_t row, col;  /* steps in w: from row to row, from element to element of a row */
    int axis;          /* of w along which its elements are summed over, and of a channel of x; Conv: 1 */
    gboolean conv;     /* a convolution */
    gboolean x_turned; /* x is [k, rows] */
    HnConvPlan plan;   /* of x, convolutions only */
} HnLinearRows;

/* FALSE: none of these operators, or the weights are not constant f32. */
gboolean hn_linear_rows_of(const HnNode *n, HnLinearRows *p);

/* From now on rows are those of x: how many there are; 0: none, or x does not fit. */
int64_t hn_linear_rows_feed(HnLinearRows *p, const HnTensor *x);
/* Row r of all groups: groups * k numbers; 0 where a window lies outside. */
void hn_linear_rows_get(const HnLinearRows *p, int64_t r, float *row);

G_END_DECLS
