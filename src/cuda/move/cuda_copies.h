/*
 * Kernels that consist of strided copies; several of them that move runs are one launch.
 */
#pragma once

#include "cuda/move/cuda_strided.h"

G_BEGIN_DECLS

#define HN_CUDA_WIDTHS 5 /* 1, 2, 4, 8, 16 bytes */

typedef struct {
    guint n;
    HnCuFunction together[HN_CUDA_WIDTHS]; /* several copies at once, by the width of elements; NULL: one by one */
    struct {
        HnCudaStrided *copy;
        int in, out;
    } part[];
} HnCudaCopies;

/* Becomes the step's state, with n parts to be filled in. */
HnCudaCopies *hn_cuda_copies_new(HnStep *s, guint n);
/* In prepare, once all parts are there: those that move runs are to be one launch. */
gboolean hn_cuda_copies_together(HnStep *s, GError **error);
gboolean hn_cuda_copies_run(HnStep *s, GError **error);
void hn_cuda_copies_release(HnStep *s);
/* HnKernel.joins and .splits, for steps whose parts make all of output 0, or read nothing but input 0. */
HnPlace hn_cuda_copies_joins(const HnStep *s, int i, gsize *offset);
HnPlace hn_cuda_copies_splits(const HnStep *s, int k, gsize *offset);

G_END_DECLS
