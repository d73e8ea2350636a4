/*
 * Memory full of one element.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "cuda/elementwise/cuda_fill_args.h"

G_BEGIN_DECLS

/* Arguments for n elements of `size` bytes, of 1, 2, 4, 8 or 16; elem NULL: of zeros. z is to be filled in. */
HnCudaFillArgs hn_cuda_fill_of(const void *elem, gsize size, int64_t n);
gboolean hn_cuda_fill(const HnStep *s, HnCuFunction f, HnCudaFillArgs a, uint64_t z, GError **error);
/* The kernel for it, in prepare. */
HnCuFunction hn_cuda_fill_function(const HnStep *s, GError **error);

G_END_DECLS
