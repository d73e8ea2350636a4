/*
 * Concat, Split and Slice: a strided copy for each input or output.
 */
#include "op/concat.h"

#include "cuda/conv/cuda_last.h"
#include "cuda/move/cuda_copies.h"
#include "op/index.h"
#include "run/move_forms.h"

static const char *concat_reject(const HnStep *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (hn_cuda_in(s, i) == NULL)
            return "nothing to compute";
    return hn_cuda_concat_goes_last(s) ? HN_CUDA_GOES_LAST : hn_copy_reject(hn_cuda_in(s, 0));
}

static gboolean concat_prepare(HnStep *s, GError **error)
{
    const HnConcat *p = s->params;
    const HnTensor *y = hn_cuda_out(s, 0);
    const int axis = hn_axis(p->axis, y->ndim);
    int64_t ys[HN_MAX_RANK], xs[HN_MAX_RANK], at = 0;
    HnCudaCopies *c = hn_cuda_copies_new(s, (guint)s->n_in);
    hn_strides(y->ndim, y->dims, ys);
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cuda_in(s, i);
        hn_strides(x->ndim, x->dims, xs);
        c->part[i].in = i;
        c->part[i].copy =
            hn_cuda_strided_new(s, hn_dtype_size(x->dtype), x->ndim, x->dims, at * ys[axis], ys, 0, xs, error);
        if (c->part[i].copy == NULL)
            return FALSE;
        at += x->dims[axis];
    }
    return hn_cuda_copies_together(s, error);
}

static const HnKernel concat = {
    .name = "cuda.concat",
    .reject = concat_reject,
    .prepare = concat_prepare,
    .run = hn_cuda_copies_run,
    .release = hn_cuda_copies_release,
    .joins = hn_cuda_copies_joins,
};

/* --- Split ------------------------------------------------------------------------------------------------------- */

static const char *split_reject(const HnStep *s)
{
    if (hn_copy_varies(s, 1))
        return "sizes that are known only at run time";
    for (int k = 0; k < s->n_out; k++)
        if (hn_cuda_out(s, k) == NULL)
            return "parts that nobody wants";
    return hn_cuda_goes_last(s, &hn_cuda_split_last) ? HN_CUDA_GOES_LAST : hn_copy_reject(hn_cuda_in(s, 0));
}

static gboolean split_prepare(HnStep *s, GError **error)
{
    const HnSplit *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    const int axis = hn_axis(p->axis, x->ndim);
    int64_t ys[HN_MAX_RANK], xs[HN_MAX_RANK], at = 0;
    HnCudaCopies *c = hn_cuda_copies_new(s, (guint)s->n_out);
    hn_strides(x->ndim, x->dims, xs);
    for (int k = 0; k < s->n_out; k++) {
        const HnTensor *y = hn_cuda_out(s, k);
        hn_strides(y->ndim, y->dims, ys);
        c->part[k].out = k;
        c->part[k].copy =
            hn_cuda_strided_new(s, hn_dtype_size(x->dtype), y->ndim, y->dims, 0, ys, at * xs[axis], xs, error);
        if (c->part[k].copy == NULL)
            return FALSE;
        at += y->dims[axis];
    }
    hn_copy_unread(s);
    return hn_cuda_copies_together(s, error);
}

static const HnKernel split = {
    .name = "cuda.split",
    .reject = split_reject,
    .prepare = split_prepare,
    .run = hn_cuda_copies_run,
    .release = hn_cuda_copies_release,
    .splits = hn_cuda_copies_splits,
};

/* --- Slice ------------------------------------------------------------------------------------------------------- */

static const char *slice_reject(const HnStep *s)
{
    return hn_cuda_goes_last(s, &hn_cuda_slice_last) ? HN_CUDA_GOES_LAST : hn_slice_reject(s);
}

static gboolean slice_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    int64_t first[HN_MAX_RANK], step[HN_MAX_RANK], ys[HN_MAX_RANK], xs[HN_MAX_RANK], at = 0;
    HnCudaCopies *c = hn_cuda_copies_new(s, 1);
    (void)hn_slice_bounds(s, first, step);
    hn_strides(x->ndim, x->dims, xs);
    hn_strides(y->ndim, y->dims, ys);
    for (int a = 0; a < x->ndim && y->n > 0; a++) {
        at += first[a] * xs[a];
        xs[a] *= y->dims[a] > 1 ? step[a] : 1;
    }
    c->part[0].copy = hn_cuda_strided_new(s, hn_dtype_size(x->dtype), y->ndim, y->dims, 0, ys, at, xs, error);
    hn_copy_unread(s);
    return c->part[0].copy != NULL;
}

static const HnKernel slice = {
    .name = "cuda.slice",
    .reject = slice_reject,
    .prepare = slice_prepare,
    .run = hn_cuda_copies_run,
    .release = hn_cuda_copies_release,
    .splits = hn_cuda_copies_splits,
};

const HnKernel *const hn_cuda_concat[] = { &concat, &hn_cuda_concat_last, NULL };
const HnKernel *const hn_cuda_split[] = { &split, &hn_cuda_split_last, NULL };
const HnKernel *const hn_cuda_slice[] = { &slice, &hn_cuda_slice_last, NULL };
