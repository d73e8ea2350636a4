/*
 * Kernels named cuda.lt: products of halves by cuBLASLt, with sums in f32, where HONE_CUDA_LIBRARIES asks for it.
 *
 * cuBLASLt knows matrices by columns: what lies there by rows is its transpose, so that it is asked for y' = b' a',
 * whose rows are the columns of y. A bias of these, a residual, Relu, or the Gelu by tanh behind are computed along.
 * Which algorithm it takes is its own first answer by sizes and device, without timing; none adds up in an order that
 * changes from run to run (cublasLt.h on reduction schemes), and none rounds sums of parts of k to halves.
 */
#pragma once

#include "cuda/gemm/cuda_product.h"

G_BEGIN_DECLS

/* HnKernel.fuses */
gboolean hn_cuda_lt_fuses(const HnStep *s);
/* What `a` says of the product of inputs 0 and 1, with input 2 as the addend where beta is not 0; addresses, and how
 * own kernels compute it, are not read. */
const char *hn_cuda_lt_reject(const HnStep *s, const HnCudaProductArgs *a);
gboolean hn_cuda_lt_prepare(HnStep *s, const HnCudaProductArgs *a, GError **error);
gboolean hn_cuda_lt_run(HnStep *s, GError **error);
void hn_cuda_lt_release(HnStep *s);

G_END_DECLS
