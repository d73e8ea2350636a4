/*
 * Products of a matrix with constant weights that are mostly 0: a way of HnSgemm (cpu/gemm/sgemm.h).
 */
#pragma once

#include "cpu/gemm/sgemm.h"

G_BEGIN_DECLS

/* NULL, or why not. */
const char *hn_sparse_product_reject(const HnStep *s, const HnMatrices *m);
/* Fills p->sparse, p->end and p->packed; p->epilogue is there. */
gboolean hn_sparse_product_prepare(HnSgemm *p, HnStep *s, GError **error);
void hn_sparse_product_run(const HnSgemm *p, const HnStep *s, const float *bias);
void hn_sparse_product_free(HnSparseProduct *q);

G_END_DECLS
