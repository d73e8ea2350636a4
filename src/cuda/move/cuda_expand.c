/*
 * Expand and Tile: a strided copy whose source stands still along repeated axes.
 */
#include "cuda/move/cuda_copies.h"
#include "op/index.h"

static const char *expand_reject(const HnStep *s)
{
    for (int i = 1; i < s->n_in; i++) /* where they are constant, infer has judged them */
        if (hn_copy_varies(s, i))
            return "a shape that is known only at run time";
    return hn_copy_reject(hn_cuda_in(s, 0)); /* shape or repeats are in the output's dimensions */
}

static gboolean prepare_repeats(HnStep *s, int n, const int64_t *dims, const int64_t *xs, GError **error)
{
    int64_t ys[2 * HN_MAX_RANK];
    HnCudaCopies *c = hn_cuda_copies_new(s, 1);
    hn_strides(n, dims, ys);
    c->part[0].copy = hn_cuda_strided_new(s, hn_dtype_size(hn_cuda_in(s, 0)->dtype), n, dims, 0, ys, 0, xs, error);
    hn_copy_unread(s);
    return c->part[0].copy != NULL;
}

static gboolean expand_prepare(HnStep *s, GError **error)
{
    const HnTensor *y = hn_cuda_out(s, 0);
    int64_t xs[HN_MAX_RANK];
    hn_broadcast_strides(hn_cuda_in(s, 0), y->ndim, xs);
    return prepare_repeats(s, y->ndim, y->dims, xs, error);
}

static gboolean tile_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    int64_t dims[2 * HN_MAX_RANK], xs[2 * HN_MAX_RANK];
    hn_tile_axes(x, y, dims, xs);
    return prepare_repeats(s, 2 * x->ndim, dims, xs, error);
}

#define KERNEL(op)                         \
    static const HnKernel op##_copy = {    \
        .name = "cuda." #op,               \
        .reject = expand_reject,           \
        .prepare = op##_prepare,           \
        .run = hn_cuda_copies_run,         \
        .release = hn_cuda_copies_release, \
    };                                     \
    const HnKernel *const hn_cuda_##op[] = { &op##_copy, NULL };
KERNEL(expand)
KERNEL(tile)
