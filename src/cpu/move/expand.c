/*
 * Expand and Tile: a strided copy whose source stands still along repeated axes.
 */
#include "cpu/core/strided_copy.h"
#include "op/index.h"

static const char *expand_reject(const HnStep *s)
{
    for (int i = 1; i < s->n_in; i++) /* where they are constant, infer has judged them */
        if (hn_copy_varies(s, i))
            return "a shape that is known only at run time";
    return hn_copy_reject(hn_cpu_in(s, 0)); /* shape or repeats are in the output's dimensions */
}

static gboolean expand_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    int64_t ys[HN_MAX_RANK], xs[HN_MAX_RANK];
    HnCopies *c = hn_copies_new(1);
    hn_strides(y->ndim, y->dims, ys);
    hn_broadcast_strides(x, y->ndim, xs);
    c->part[0].copy = hn_copy_new(hn_dtype_size(x->dtype), y->ndim, y->dims, 0, ys, 0, xs, hn_cpu_threads_for(s, 0));
    s->state = c;
    hn_copy_unread(s);
    return TRUE;
}

static gboolean tile_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    int64_t dims[2 * HN_MAX_RANK], ys[2 * HN_MAX_RANK], xs[2 * HN_MAX_RANK];
    HnCopies *c = hn_copies_new(1);
    hn_tile_axes(x, y, dims, xs);
    hn_strides(2 * x->ndim, dims, ys);
    c->part[0].copy = hn_copy_new(hn_dtype_size(x->dtype), 2 * x->ndim, dims, 0, ys, 0, xs, hn_cpu_threads_for(s, 0));
    s->state = c;
    hn_copy_unread(s);
    return TRUE;
}

#define KERNEL(op)                      \
    static const HnKernel op##_copy = { \
        .name = "cpu." #op,             \
        .reject = expand_reject,        \
        .prepare = op##_prepare,        \
        .run = hn_copies_run,           \
        .release = hn_copies_release,   \
    };                                  \
    const HnKernel *const hn_cpu_##op[] = { &op##_copy, NULL };
KERNEL(expand)
KERNEL(tile)
