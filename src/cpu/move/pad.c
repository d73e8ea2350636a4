/*
 * Pad with amounts that are known ahead: what is kept is copied, then the borders follow as copies of the value or,
 * axis by axis from the last, of what the output holds already.
 */
#include "op/pad.h"

#include <string.h>

#include "cpu/core/strided_copy.h"
#include "op/index.h"

typedef enum { SOURCE, VALUE, OUTPUT } Origin;

typedef struct {
    uint64_t value[2]; /* one element of any type */
    int n;
    struct {
        HnCopy *copy;
        Origin origin;
    } part[1 + 2 * HN_MAX_RANK];
} Pad;

/* Elements [from, from + n) of axis a: all of the axes behind, what is kept of those before. */
static void slab(const HnBorder *border, int ndim, const int64_t *y, int a, int64_t n, int64_t *dims)
{
    for (int i = 0; i < ndim; i++)
        dims[i] = i < a ? border[i].kept : i == a ? n : y[i];
}

static void add(Pad *p, HnCopy *c, Origin origin)
{
    p->part[p->n].copy = c;
    p->part[p->n++].origin = origin;
}

static gboolean pad_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnPad *op = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const int ndim = x->ndim, threads = hn_cpu_threads_for(s, 0);
    const size_t size = hn_dtype_size(x->dtype);
    int64_t dims[HN_MAX_RANK], ys[HN_MAX_RANK], xs[HN_MAX_RANK], before[HN_MAX_RANK], from = 0, to = 0;
    HnBorder border[HN_MAX_RANK];
    Pad *p = g_new0(Pad, 1);
    s->state = p;
    (void)hn_pad_borders(s, border);
    const gboolean channels_last = hn_layout_is_last(s->in[0].slot->layout);
    HnCopy *(*const copy_new)(size_t, int, const int64_t *, int64_t, const int64_t *, int64_t, const int64_t *, int) =
        channels_last ? hn_copy_new_last : hn_copy_new;
    (channels_last ? hn_last_strides : hn_strides)(ndim, x->dims, xs);
    (channels_last ? hn_last_strides : hn_strides)(ndim, y->dims, ys);
    s->in[0].any = channels_last;
    s->out[0].slot->layout = channels_last ? hn_layout_last(y) : NULL;
    for (int a = 0; a < ndim; a++) {
        dims[a] = border[a].kept;
        before[a] = to; /* where the kept part of the axes before begins */
        from += border[a].first * xs[a];
        to += border[a].lead * ys[a];
    }
    add(p, copy_new(size, ndim, dims, to, ys, from, xs, threads), SOURCE);
    for (int a = ndim - 1; a >= 0; a--)
        for (int end = 0; end < 2; end++) {
            const HnBorder *b = &border[a];
            const int64_t n = end == 0 ? b->lead : b->tail, start = end == 0 ? 0 : b->lead + b->kept;
            int64_t strides[HN_MAX_RANK] = { 0 }, origin = 0;
            if (n == 0)
                continue;
            slab(border, ndim, y->dims, a, n, dims);
            if (op->mode != HN_PAD_CONSTANT) {
                memcpy(strides, ys, (size_t)ndim * sizeof *strides);
                const int64_t last = b->lead + b->kept - 1;
                strides[a] = op->mode == HN_PAD_EDGE ? 0 : op->mode == HN_PAD_REFLECT ? -ys[a] : ys[a];
                origin = op->mode == HN_PAD_EDGE      ? (end == 0 ? b->lead : last)
                         : op->mode == HN_PAD_REFLECT ? (end == 0 ? 2 * b->lead : last - 1)
                                                      : (end == 0 ? b->kept : b->lead);
            }
            const int64_t at = before[a] + start * ys[a];
            HnCopy *c = op->mode == HN_PAD_CONSTANT
                            ? copy_new(size, ndim, dims, at, ys, 0, strides, threads)
                            : copy_new(size, ndim, dims, at, ys, before[a] + origin * ys[a], strides, threads);
            add(p, c, op->mode == HN_PAD_CONSTANT ? VALUE : OUTPUT);
        }
    if (!op->inputs) {
        HnTensor *t = hn_tensor_new_borrowed(x->dtype, 0, NULL, p->value);
        hn_tensor_set_f64(t, 0, (double)op->value);
        hn_tensor_unref(t);
    }
    for (int i = 1; i < s->n_in; i += 2)
        s->in[i].unread = TRUE;
    return TRUE;
}

static gboolean pad_run(HnStep *s, GError **error)
{
    (void)error;
    const HnPad *op = s->params;
    const Pad *p = s->state;
    const HnTensor *given = op->inputs ? hn_cpu_in(s, 2) : NULL;
    void *y = hn_cpu_data(&s->out[0]);
    for (int i = 0; i < p->n; i++) {
        const Origin o = p->part[i].origin;
        const void *value = given != NULL ? given->data : p->value;
        hn_copy_run(p->part[i].copy, y, o == SOURCE ? hn_cpu_data(&s->in[0]) : o == VALUE ? value : y);
    }
    return TRUE;
}

static void pad_release(HnStep *s)
{
    Pad *p = s->state;
    for (int i = 0; p != NULL && i < p->n; i++)
        hn_copy_free(p->part[i].copy);
    g_free(p);
    s->state = NULL;
}

static const HnKernel pad_copies = {
    .name = "cpu.pad",
    .reject = hn_pad_reject,
    .prepare = pad_prepare,
    .run = pad_run,
    .release = pad_release,
};

const HnKernel *const hn_cpu_pad[] = { &pad_copies, NULL };
