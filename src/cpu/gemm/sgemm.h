/*
 * Matrix products for Gemm and MatMul: input 0 times input 1 of a step, in plain layouts. Tiny ones by plain loops, all
 * others by tiles (cpu/gemm/gemm_kernel.h), oneDNN where these reject; with weights that are mostly 0 without these.
 */
#pragma once

#include "cpu/core/epilogue.h"
#include "cpu/core/cpu_kernel.h"

G_BEGIN_DECLS

/* y[s..., m, n] = sum over k of a[s..., m, k] * b[s..., k, n], plus bias[n]; the stacks s of a and b broadcast. */
typedef struct {
    int ndim; /* at least 2 */
    int64_t a[DNNL_MAX_NDIMS], b[DNNL_MAX_NDIMS], y[DNNL_MAX_NDIMS];
    int64_t a_strides[DNNL_MAX_NDIMS], b_strides[DNNL_MAX_NDIMS]; /* y is row-major */
    gboolean bias;
} HnMatrices;

typedef enum { HN_SGEMM_SPARSE, HN_SGEMM_SMALL, HN_SGEMM_KERNEL, HN_SGEMM_ONEDNN } HnSgemmWay;

typedef struct HnSparseProduct HnSparseProduct; /* cpu/sparse/sparse_product.h */

typedef struct {
    HnSgemmWay way;
    HnMatrices matrices;
    gboolean bias;
    HnEpilogue epilogue;
    HnPack *packed;
    HnPrim prim; /* oneDNN's */
    HnSparseProduct *sparse;
    /* tiles */
    int threads;
    int64_t stacks;       /* matrices of y */
    int64_t *a_at, *b_at; /* [stacks]: where in a and b its operands begin */
    int64_t rights;       /* matrices of b */
    gboolean pairs;       /* products of bf16 (cpu/gemm/gemm_pairs.h) */
    int64_t depth;        /* of packed matrices: elements of a sum, or words of two */
    int64_t packed_right; /* floats of one in panels */
    gboolean whole;       /* threads share each product, not the stacks */
    gboolean loose;       /* b is read as it is */
    gboolean once;        /* each matrix of b is packed on the way */
    int64_t room;         /* floats of a thread for blocks of a transposed a; 0: a is none */
    int64_t right;        /* floats for what is packed of b in each run, of a thread unless threads share it */
    const float *shift;   /* a bias out of along; NULL: none */
    HnEpilogueEnd end;
    HnPost post[HN_FUSED_MAX + 1], late[HN_FUSED_MAX];
    int posts, lates;
} HnSgemm;

/* Can s->fused be computed along with the product? */
gboolean hn_sgemm_fuses(const HnStep *s, const HnMatrices *m);
/* NULL, or why not in this way. */
const char *hn_sgemm_reject(const HnStep *s, const HnMatrices *m, HnSgemmWay way);
/* On failure p is to be cleared all the same. */
gboolean hn_sgemm_prepare(HnSgemm *p, HnStep *s, const HnMatrices *m, HnSgemmWay way, GError **error);
gboolean hn_sgemm_run(HnSgemm *p, const HnStep *s, void *bias, GError **error);
void hn_sgemm_clear(HnSgemm *p);

/* A sum with constants per column that follows at once becomes p->shift, a bias: how many of p->epilogue that was. */
int hn_sgemm_take_shift(HnSgemm *p);

G_END_DECLS
