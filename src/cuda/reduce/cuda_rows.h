/*
 * Kernels for rows whose elements lie side by side, by who takes a row: the threads of a warp or of a block hold it, or
 * a block reads it several times.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"

G_BEGIN_DECLS

/* For rows of n elements the one of <prefix>_warp_<pieces>_<type>, <prefix>_block_<pieces>_<type> and
 * <prefix>_long_<type> that suits them; pieces of four elements for a thread: 1, 2, 4, 8. In prepare. */
HnCuFunction hn_cuda_rows(const HnStep *s, const char *module, const char *prefix, int64_t rows, int64_t n,
                          HnCudaGrid *grid, GError **error);

G_END_DECLS
