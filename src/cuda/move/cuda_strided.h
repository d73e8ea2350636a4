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

/* --- kernels that consist of copies ------------------------------------------------------------------------------ */

typedef struct {
    guint n;
    struct {
        HnCudaStrided *copy;
        int in, out;
    } part[];
} HnCudaCopies;

/* Becomes the step's state, with n parts to be filled in. */
HnCudaCopies *hn_cuda_copies_new(HnStep *s, guint n);
gboolean hn_cuda_copies_run(HnStep *s, GError **error);
void hn_cuda_copies_release(HnStep *s);
/* HnKernel.joins and .splits, for steps whose parts make all of output 0, or read nothing but input 0. Pieces begin
 * where any kernel may use wide accesses. */
HnPlace hn_cuda_copies_joins(const HnStep *s, int i, gsize *offset);
HnPlace hn_cuda_copies_splits(const HnStep *s, int k, gsize *offset);

/* The name of the kernel <prefix>_<bytes of an element>. */
HnCuFunction hn_cuda_sized(const HnStep *s, const char *module, const char *prefix, size_t size, GError **error);

G_END_DECLS
