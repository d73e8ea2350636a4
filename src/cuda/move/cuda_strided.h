/*
 * Strided copies on the device: what most operators that move elements are made of. One copy is, as it turns out when
 * it is made: a piece, which the driver copies; tiles through shared memory, where source and destination have
 * different axes side by side; or elements, each of 16 bytes where they can be.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "run/move_forms.h"

G_BEGIN_DECLS

typedef struct HnCudaStrided HnCudaStrided;

/* dims in the order of the destination; strides and first places (y0, x0) in elements of `size` bytes (1, 2, 4, 8, 16).
 * Source strides may be 0 or negative. At most 2 * HN_MAX_RANK axes. NULL: error. */
HnCudaStrided *hn_cuda_strided_new(const HnStep *s, size_t size, int ndim, const int64_t *dims, int64_t y0,
                                   const int64_t *ys, int64_t x0, const int64_t *xs, GError **error);
void hn_cuda_strided_free(HnCudaStrided *c);
gboolean hn_cuda_strided_run(const HnStep *s, const HnCudaStrided *c, uint64_t y, uint64_t x, GError **error);

/* What a copy may amount to: `rows` runs of `run` bytes, from y0 and x0 on, a distance apart on both sides. */
typedef struct {
    int64_t rows, run, y0, x0, y_row, x_row;
} HnCudaRunBytes;

gboolean hn_cuda_strided_runs(const HnCudaStrided *c, HnCudaRunBytes *r);
/* Where its source is in the destination (in), or its destination in the source, as a HnKernel.joins has to say. Pieces
 * begin where any kernel may use wide accesses. */
HnPlace hn_cuda_strided_place(const HnCudaStrided *c, gboolean in, gsize *offset);

/* The name of the kernel <prefix>_<bytes of an element>. */
HnCuFunction hn_cuda_sized(const HnStep *s, const char *module, const char *prefix, size_t size, GError **error);

G_END_DECLS
