/*
 * Products by warpgroups of devices of compute capability 9.0: large ones, whose operands can be copied by tensor maps.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "cuda/gemm/cuda_warpgroup_args.h"

G_BEGIN_DECLS

typedef struct {
    HnCuFunction f; /* NULL: they do not compute it */
    HnCudaGrid grid;
    HnCudaProductArgs product; /* but for addresses */
    int size, rows, columns;   /* bytes of an element; tile of a block */
    HnCuFunction split;        /* NULL: b is multiplied as it is */
    HnCudaGrid split_grid;
    HnCudaSplitArgs split_args;
    gsize split_at, scratch_bytes; /* where in scratch memory; all that is wanted of it, sums of parts first */
    uint64_t counts;               /* of parts that are there, zeros between runs; 0: there is one part only */
} HnCudaWarpgroup;

/* In prepare: whether they are to compute what `product` says, in f; FALSE: an error. */
gboolean hn_cuda_warpgroup_prepare(HnCudaWarpgroup *w, const HnStep *s, const HnCudaProductArgs *product, HnDtype dtype,
                                   GError **error);
/* In release. */
void hn_cuda_warpgroup_clear(const HnStep *s, HnCudaWarpgroup *w);
/* `product` has addresses. */
gboolean hn_cuda_warpgroup_fits(const HnCudaWarpgroup *w, const HnCudaProductArgs *product);
gboolean hn_cuda_warpgroup_run(const HnCudaWarpgroup *w, const HnStep *s, const HnCudaProductArgs *product,
                               GError **error);

G_END_DECLS
