/*
 * Parameters of Gemm, and matrix products on plain memory for the reference kernels of Gemm, MatMul, Einsum and
 * Attention. Any strides, so transposed operands need no copy. f32 and f64 are summed in double; integers wrap.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "ir/dtype.h"

G_BEGIN_DECLS

/* c[i,j] = alpha * sum over k of a[i,k] * b[k,j] + beta * add[i,j]; strides in elements. */
typedef struct {
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_row, a_col, b_row, b_col;
    void *c; /* columns are adjacent; overlaps neither a nor b */
    int64_t c_row;
    const void *add; /* NULL: none */
    int64_t add_row, add_col;
    double alpha, beta;
} HnGemm;

/* dtype: f32, f64, i32, u32, i64 or u64, of all operands. */
void hn_gemm(HnDtype dtype, const HnGemm *g);

/* Params of the operator Gemm. */
typedef struct {
    float alpha, beta;
    gboolean trans_a, trans_b;
    gboolean exact; /* C has the shape of Y */
} HnGemmParams;

/* Params of FusedMatMul (domain "hone"): MatMul of operands whose last two axes are exchanged first, and of two axes
 * then, plus a vector that is input 2. */
typedef struct {
    gboolean trans_a, trans_b;
} HnFusedMatMul;

G_END_DECLS
