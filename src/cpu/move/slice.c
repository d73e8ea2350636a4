/*
 * Slice and Split with bounds that are known ahead: a strided copy for each output. Channels last stays.
 */
#include "op/slice.h"

#include <string.h>

#include "cpu/move/channel_copy.h"
#include "cpu/core/strided_copy.h"
#include "op/concat.h"
#include "op/index.h"
#include "run/move_forms.h"

/* --- Slice ------------------------------------------------------------------------------------------------------- */

static gboolean slice_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const gboolean last = hn_layout_is_last(s->in[0].slot->layout);
    int64_t first[HN_MAX_RANK], step[HN_MAX_RANK], ys[HN_MAX_RANK], xs[HN_MAX_RANK], at = 0;
    HnCopies *c = hn_copies_new(1);
    (void)hn_slice_bounds(s, first, step);
    (last ? hn_last_strides : hn_strides)(x->ndim, x->dims, xs);
    (last ? hn_last_strides : hn_strides)(y->ndim, y->dims, ys);
    for (int a = 0; a < x->ndim && y->n > 0; a++) {
        at += first[a] * xs[a];
        xs[a] *= y->dims[a] > 1 ? step[a] : 1;
    }
    c->part[0].copy = (last ? hn_copy_new_last : hn_copy_new)(hn_dtype_size(x->dtype), y->ndim, y->dims, 0, ys, at, xs,
                                                              hn_cpu_threads_for(s, 0));
    s->state = c;
    s->in[0].any = last;
    s->out[0].slot->layout = last ? hn_layout_last(y) : NULL;
    hn_copy_unread(s);
    return TRUE;
}

static const HnKernel slice_copy = {
    .name = "cpu.slice",
    .reject = hn_slice_reject,
    .prepare = slice_prepare,
    .run = hn_copies_run,
    .splits = hn_copies_splits,
    .release = hn_copies_release,
};

/* Channels alone, channels last. */
static const char *channels_reject(const HnStep *s)
{
    int64_t first[HN_MAX_RANK], step[HN_MAX_RANK];
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const char *reason = hn_slice_reject(s);
    if (reason != NULL)
        return reason;
    if (!hn_channel_copy_of(s->in[0].slot, 1) || y->n == 0)
        return "not channels last";
    (void)hn_slice_bounds(s, first, step);
    for (int a = 0; a < x->ndim; a++)
        if (a != 1 && (x->dims[a] != y->dims[a] || (x->dims[a] > 1 && step[a] != 1)))
            return "other axes than the channels";
    return NULL;
}

static gboolean channels_prepare(HnStep *s, GError **error)
{
    (void)error;
    int64_t first[HN_MAX_RANK], step[HN_MAX_RANK];
    HnChannelCopy *c = hn_channel_copy_prepare(s, FALSE, 1);
    (void)hn_slice_bounds(s, first, step);
    c->part[0].first = first[1];
    c->part[0].step = step[1];
    c->part[0].count = s->out[0].slot->tensor->dims[1];
    hn_copy_unread(s);
    return TRUE;
}

static const HnKernel slice_channels = {
    .name = "cpu.slice_channels",
    .reject = channels_reject,
    .prepare = channels_prepare,
    .run = hn_channel_copy_run,
    .release = hn_cpu_release,
    .splits = hn_channel_copy_splits,
    .pitched = TRUE,
};

const HnKernel *const hn_cpu_slice[] = { &slice_channels, &slice_copy, NULL };

/* --- Split ------------------------------------------------------------------------------------------------------- */

static int split_axis(const HnStep *s)
{
    const HnSplit *p = s->params;
    return hn_axis(p->axis, hn_cpu_in(s, 0)->ndim);
}

static const char *split_reject(const HnStep *s)
{
    if (hn_copy_varies(s, 1))
        return "sizes that are known only at run time";
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot == NULL)
            return "parts that nobody wants";
    return hn_copy_reject(hn_cpu_in(s, 0));
}

static gboolean split_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    const int axis = split_axis(s), threads = hn_cpu_threads_for(s, 0);
    const gboolean last = hn_layout_is_last(s->in[0].slot->layout);
    int64_t ys[HN_MAX_RANK], xs[HN_MAX_RANK], at = 0;
    HnCopies *c = hn_copies_new((guint)s->n_out);
    (last ? hn_last_strides : hn_strides)(x->ndim, x->dims, xs);
    for (int k = 0; k < s->n_out; k++) {
        const HnTensor *y = s->out[k].slot->tensor;
        (last ? hn_last_strides : hn_strides)(y->ndim, y->dims, ys);
        c->part[k].copy =
            (last ? hn_copy_new_last : hn_copy_new)(hn_dtype_size(x->dtype), y->ndim, y->dims, 0, ys, at, xs, threads);
        c->part[k].out = k;
        at += y->dims[axis] * xs[axis];
        s->out[k].slot->layout = last ? hn_layout_last(y) : NULL;
    }
    s->state = c;
    s->in[0].any = last;
    hn_copy_unread(s);
    return TRUE;
}

static const HnKernel split_copy = {
    .name = "cpu.split",
    .reject = split_reject,
    .prepare = split_prepare,
    .run = hn_copies_run,
    .splits = hn_copies_splits,
    .release = hn_copies_release,
};

static const char *split_channels_reject(const HnStep *s)
{
    const char *reason = split_reject(s);
    if (reason != NULL)
        return reason;
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot->tensor->n == 0)
            return "an empty part";
    return hn_channel_copy_of(s->in[0].slot, split_axis(s)) ? NULL : "not of channels that are last";
}

static gboolean split_channels_prepare(HnStep *s, GError **error)
{
    (void)error;
    HnChannelCopy *c = hn_channel_copy_prepare(s, FALSE, (guint)s->n_out);
    int64_t at = 0;
    for (int k = 0; k < s->n_out; k++) {
        const int64_t channels = s->out[k].slot->tensor->dims[1];
        c->part[k].port = k;
        c->part[k].first = at;
        c->part[k].step = 1;
        c->part[k].count = channels;
        at += channels;
    }
    hn_copy_unread(s);
    return TRUE;
}

static const HnKernel split_channels = {
    .name = "cpu.split_channels",
    .reject = split_channels_reject,
    .prepare = split_channels_prepare,
    .run = hn_channel_copy_run,
    .release = hn_cpu_release,
    .splits = hn_channel_copy_splits,
    .pitched = TRUE,
};

const HnKernel *const hn_cpu_split[] = { &split_channels, &split_copy, NULL };
