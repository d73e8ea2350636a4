/*
 * Concat: of channels without leaving channels last, and along any axis, plain or channels last.
 */
#include "op/concat.h"

#include "cpu/move/channel_copy.h"
#include "cpu/core/strided_copy.h"
#include "op/index.h"

static int axis_of(const HnStep *s)
{
    const HnConcat *p = s->params;
    return hn_axis(p->axis, s->out[0].slot->tensor->ndim);
}

/* Most of what is joined lies channels last, or in another layout that is not plain. */
static gboolean mostly_last(const HnStep *s)
{
    int64_t laid = 0, rank = s->out[0].slot->tensor->ndim;
    for (int i = 0; i < s->n_in; i++)
        laid += s->in[i].slot->layout != NULL ? hn_cpu_in(s, i)->n : 0;
    return rank >= 3 && rank <= 5 && 2 * laid >= s->out[0].slot->tensor->n && laid > 0;
}

static const char *channels_reject(const HnStep *s)
{
    const char *reason = hn_dtype_size(s->out[0].slot->tensor->dtype) == 1 ? NULL : hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    for (int i = 0; i < s->n_in; i++)
        if (hn_cpu_in(s, i) == NULL || hn_cpu_in(s, i)->n == 0)
            return "nothing to compute";
    if (!mostly_last(s))
        return "plain sources";
    return axis_of(s) == 1 ? NULL : "another axis than the channels";
}

static gboolean channels_prepare(HnStep *s, GError **error)
{
    (void)error;
    HnChannelCopy *c = hn_channel_copy_prepare(s, TRUE, (guint)s->n_in);
    int64_t at = 0;
    for (int i = 0; i < s->n_in; i++) {
        const int64_t channels = hn_cpu_in(s, i)->dims[1];
        c->part[i].port = i;
        c->part[i].first = at;
        c->part[i].step = 1;
        c->part[i].count = channels;
        at += channels;
    }
    return TRUE;
}

static const HnKernel concat_channels = {
    .name = "cpu.concat",
    .reject = channels_reject,
    .prepare = channels_prepare,
    .run = hn_channel_copy_run,
    .release = hn_cpu_release,
    .joins = hn_channel_copy_joins,
    .pitched = TRUE,
};

/* --- any axis ---------------------------------------------------------------------------------------------------- */

static const char *join_reject(const HnStep *s)
{
    return hn_copy_reject(hn_cpu_in(s, 0));
}

static gboolean join_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *y = s->out[0].slot->tensor;
    const int axis = axis_of(s), threads = hn_cpu_threads_for(s, 0);
    const gboolean last = mostly_last(s);
    int64_t ys[HN_MAX_RANK], xs[HN_MAX_RANK], at = 0;
    HnCopies *c = hn_copies_new((guint)s->n_in);
    (last ? hn_last_strides : hn_strides)(y->ndim, y->dims, ys);
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cpu_in(s, i);
        (last ? hn_last_strides : hn_strides)(x->ndim, x->dims, xs);
        c->part[i].copy =
            (last ? hn_copy_new_last : hn_copy_new)(hn_dtype_size(x->dtype), x->ndim, x->dims, at, ys, 0, xs, threads);
        c->part[i].in = i;
        at += x->dims[axis] * ys[axis];
        s->in[i].want = last ? hn_layout_last(x) : NULL;
    }
    s->out[0].slot->layout = last ? hn_layout_last(y) : NULL;
    s->state = c;
    return TRUE;
}

static const HnKernel concat_any = {
    .name = "cpu.join",
    .reject = join_reject,
    .prepare = join_prepare,
    .run = hn_copies_run,
    .joins = hn_copies_joins,
    .release = hn_copies_release,
};

const HnKernel *const hn_cpu_concat[] = { &concat_channels, &concat_any, NULL };
