/*
 * Operands that broadcast as numpy's, as kernels walk through them.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "cuda/elementwise/cuda_walk_args.h"

G_BEGIN_DECLS

/* seen[i]: how x[i] lies under z; of an absent one (NULL): as a number. */
void hn_cuda_walk(HnCudaWalk *w, HnCudaSeen *seen, const HnTensor *z, const HnTensor *const *x, int n);
/* Threads that take four elements each. */
HnCudaGrid hn_cuda_quads(const HnStep *s, int64_t total, int threads);

G_END_DECLS
