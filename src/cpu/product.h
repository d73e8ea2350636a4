/*
 * Matrix products for Gemm and MatMul: own loops for small ones, oneDNN for the rest: input 0 times input 1 of a step,
 * in plain layouts.
 *
 * A constant right operand is packed: oneDNN's inner product in its own layout is near the peak on AVX2 and AVX-512
 * alike, while plain matrices with long rows reach half of it on AVX2.
 */
#pragma once

#include "cpu/along.h"
#include "cpu/cpu.h"

G_BEGIN_DECLS

/* y[s..., m, n] = sum over k of a[s..., m, k] * b[s..., k, n], plus bias[n]; the stacks s of a and b broadcast. */
typedef struct {
    int ndim; /* at least 2 */
    int64_t a[DNNL_MAX_NDIMS], b[DNNL_MAX_NDIMS], y[DNNL_MAX_NDIMS];
    int64_t a_strides[DNNL_MAX_NDIMS], b_strides[DNNL_MAX_NDIMS]; /* y is row-major */
    gboolean bias;
} HnMatrices;

typedef struct {
    HnPrim prim;
    HnPack *packed;
    gboolean bias;
    gboolean small; /* own loops over plain memory, nothing packed */
    HnMatrices matrices;
    HnAlong along;
} HnProduct;

/* Can s->fused be computed along with the product? */
gboolean hn_product_fuses(const HnStep *s, const HnMatrices *m);
/* NULL, or why not; `small`: by own loops. */
const char *hn_product_reject(const HnStep *s, const HnMatrices *m, gboolean small);
/* On failure p is to be cleared all the same. */
gboolean hn_product_prepare(HnProduct *p, HnStep *s, const HnMatrices *m, gboolean small, GError **error);
gboolean hn_product_run(HnProduct *p, const HnStep *s, void *bias, GError **error);
void hn_product_clear(HnProduct *p);

G_END_DECLS
