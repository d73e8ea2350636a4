/*
 * Linear layers: operators that multiply data by weights and sum, as the record of each describes them (HnOp.linear).
 * Whoever asks which axis of a weight holds the output channels, whether a matrix is transposed, or what factor stands
 * before the bias, asks here.
 *
 *                  x              w                                  y               channels of y
 *     Conv         [n, g*i, ...]  [g*o, i, kernel...]                [n, g*o, ...]   axis 1
 *     ConvTranspose[n, g*i, ...]  [g*i, o, kernel...]                [n, g*o, ...]   axis 1
 *     Gemm         [m, i]         [i, o], transB: [o, i]             [m, o]          axis 1
 *     MatMul       [..., m, i]    [..., i, o]                        [..., m, o]     last axis
 *     MatMul       (weights first) x [..., i, m], w [..., o, i]      [..., o, m]     last but one
 */
#pragma once

#include "op/op.h"
#include "op/window.h"

G_BEGIN_DECLS

struct HnLinearView {
    HnValue *x, *w, *b; /* data, weights, bias; b is NULL where there is none */
    int x_in, w_in;     /* inputs of the node that x and w are */
    int b_in;           /* the one that a bias would be; -1: the operator takes none */
    int out, in;        /* axes of w that hold the output channels and what is summed over */
    int x_axis, y_axis; /* axes of x and y that hold channels */
    int64_t groups;     /* >= 1; axis 0 of w holds the channels of all of them, the other of `in`, `out` those of one */
    gboolean x_turned;  /* x is transposed first (transA) */
    gboolean w_turned;  /* w is stored [o, i] where the operator's plain form is [i, o] (transB) */
    double alpha, beta; /* y = alpha * x * w + beta * b */
    const HnWindow *window; /* of a convolution; NULL: a product of matrices */
    gboolean adjoint;       /* of a convolution: the transposed one */
};

/* The linear layer that n, which is bound, is. Axes of w are counted from the front where w's rank is known, else a
 * MatMul's are negative, as those of x and y are. FALSE: it is none, or its weight is absent or of too few axes. */
gboolean hn_op_linear(const HnNode *n, HnLinearView *v);
/* The same with the weights as input 0, which a MatMul may have. */
gboolean hn_op_linear_first(const HnNode *n, HnLinearView *v);

/* n adds a constant vector along the columns of a product of matrices without a bias, and is all that reads it. */
gboolean hn_op_is_bias(const HnNode *n);

/* Output channels of weights of these dims; 0 where groups do not divide them. */
int64_t hn_linear_channels(const HnLinearView *v, const HnTensor *w);

static inline gboolean hn_op_is_linear(const HnOp *op)
{
    return op != NULL && op->linear.weight != 0;
}

G_END_DECLS
