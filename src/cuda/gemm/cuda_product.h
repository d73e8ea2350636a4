/*
 * Products of matrices for MatMul and Gemm.
 *
 * Tensor cores compute what is large enough, f32 by three products of each pair (cuda_product_f32.cu); plain
 * multiply-adds the rest, and all with HnStep.strict_math. Where a result has too few tiles for the device, k is cut
 * into parts whose sums meet in order: in a kernel of their own, or, of few rows, in the block that comes last.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "cuda/gemm/cuda_product_args.h"
#include "cuda/gemm/cuda_warpgroup.h"

G_BEGIN_DECLS

typedef struct {
    HnCuFunction f, parts; /* parts: NULL where there is one only */
    HnCudaGrid grid, parts_grid;
    HnCudaProductArgs args;
    HnCudaWarpgroup wide; /* computes it where the operands' addresses allow that */
    uint64_t counts;      /* of few rows; zeros between runs */
    gboolean swapped;     /* it is b'a' that is computed, and y is turned */
} HnCudaProduct;

/* Cuts k of a into parts so that `tiles` of results become enough blocks. */
void hn_cuda_product_cut(HnCudaProductArgs *a, const HnStep *s, int64_t tiles);
/* Of few rows: cuts for `each` blocks of a multiprocessor into parts of at most `most` terms, a multiple of 64, and
 * books what parts need: scratch memory, and counts of `tiles`, to be freed in release. */
gboolean hn_cuda_product_cut_rows(HnCudaProductArgs *a, HnStep *s, int64_t tiles, int each, int64_t most,
                                  uint64_t *counts, GError **error);
static inline int64_t hn_cuda_parts(int64_t n, int64_t each) /* that n has */
{
    return n / each + (n % each != 0);
}

/* Tiles on tensor cores: whether they are large, and the grid. Of f32, or of halves. */
gboolean hn_cuda_product_tiles(HnCudaProductArgs *a, const HnStep *s, gboolean half, HnCudaGrid *grid);

/* HnKernel.fuses. */
gboolean hn_cuda_product_fuses(const HnStep *s);
/* What it computes is p->args but for addresses, y's strides, and how; operands of elements of `dtype`. In prepare,
 * books scratch memory. */
gboolean hn_cuda_product_prepare(HnCudaProduct *p, HnStep *s, HnDtype dtype, GError **error);
/* In release, of a step whose state it is. */
void hn_cuda_product_release(HnStep *s);
/* Inputs 0, 1 and, if args.c_row or args.c_col say where, 2. */
gboolean hn_cuda_product_run(const HnCudaProduct *p, const HnStep *s, uint64_t c, GError **error);

G_END_DECLS
