/*
 * hone.WeightMatMul and hone.WeightGather: f32 products with, and rows of, constant weights that stay in few bits.
 * lower/weight_only.c makes them of DequantizeLinear and MatMul, Gemm, Conv or Gather; no file has them.
 *
 * A weight is (w - w_zero) * w_scale. w is [K,N], or [N,K] where `turned`, with any number of ones behind; scales and
 * zero points are one for all of it, [N], or (with a block) of w's shape with ceil(K / block) instead of K.
 *
 *     WeightMatMul(x [..., K], w, w_scale, w_zero, bias [N]) = x * weight + bias: [..., N]
 *
 * w_zero and bias may be absent. K and N are the last axis, or `axis` with only ones behind it.
 *
 *     WeightGather(w [V,D], w_scale, w_zero, at [...]) = weight[at[...]]: [..., D]
 *
 * turned: scales are [V], or [V, ceil(D / block)]; else [D] or [ceil(V / block), D].
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

enum { HN_WEIGHT_X, HN_WEIGHT_W, HN_WEIGHT_SCALE, HN_WEIGHT_ZERO, HN_WEIGHT_BIAS, HN_WEIGHT_INPUTS };
enum { HN_ROWS_W, HN_ROWS_SCALE, HN_ROWS_ZERO, HN_ROWS_AT, HN_ROWS_INPUTS };

typedef struct {
    gboolean turned;
    int64_t block; /* 0: none */
    int64_t axis;  /* of x and y, that K and N are */
} HnWeights;

/* Where the scale of w[row, col] is: at row / block * row_step + col / col_block * col_step. */
typedef struct {
    int64_t row_block, row_step, col_block, col_step;
} HnScaleGrid;

/* FALSE: scale and w (2 dims) do not fit. */
gboolean hn_scale_grid(const HnWeights *p, const HnTensor *w, const HnTensor *scale, HnScaleGrid *g);
/* The same, and zero points and a bias, where they are there (not NULL), fit. */
gboolean hn_weights_fit(const HnWeights *p, const HnTensor *w, const HnTensor *scale, const HnTensor *zero,
                        const HnTensor *bias);
static inline int64_t hn_scale_at(const HnScaleGrid *g, int64_t row, int64_t col)
{
    return row / g->row_block * g->row_step + col / g->col_block * g->col_step;
}

G_END_DECLS
