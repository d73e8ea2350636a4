/*
 * Gather, GatherElements, GatherND. Indices become places in scratch memory, once and checked, before anything is
 * copied. Constant indices at even distances (one channel, every other row) are a strided copy, or none where what is
 * picked is one piece.
 */
#include "op/gather.h"

#include <string.h>

#include "cpu/move/channel_copy.h"
#include "cpu/core/strided_copy.h"
#include "cpu/core/indices.h"
#include "op/index.h"
#include "op/types.h"
#include "run/index_forms.h"

typedef struct {
    int64_t outer, n, count; /* y[o,k,:] = x[o,place[k],:] with x [outer,n,run], y [outer,count,run] */
    size_t size, run;        /* bytes of an element, of a run */
    int threads;
} Gather;

/* Rows k of [lo, hi) in the order of the output. */
static void pick(const Gather *g, const int64_t *place, char *y, const char *x, int64_t lo, int64_t hi)
{
    int64_t o = lo / g->count, i = lo % g->count;
#define PICK(T)                                                \
    T *to = (T *)(void *)y;                                    \
    for (int64_t k = lo; k < hi; o++, i = 0) {                 \
        const T *from = (const T *)(const void *)x + o * g->n; \
        const int64_t end = MIN(g->count, i + hi - k);         \
        for (; i < end; i++, k++)                              \
            to[k] = from[place[i]];                            \
    }
    if (g->run == g->size && g->size <= 8) {
        HN_FOR_SIZE(g->size, PICK)
        return;
    }
#undef PICK
    for (int64_t k = lo; k < hi; k++) {
        hn_copy_bytes(y + (size_t)k * g->run, x + (size_t)(o * g->n + place[i]) * g->run, g->run);
        if (++i == g->count) {
            i = 0;
            o++;
        }
    }
}

static void pick_all(const Gather *g, const int64_t *place, char *y, const char *x)
{
    const int64_t all = g->outer * g->count;
    if (g->threads == 1) {
        if (all > 0)
            pick(g, place, y, x, 0, all);
        return;
    }
#pragma omp parallel for num_threads(g->threads)
    for (int t = 0; t < g->threads; t++)
        if (all * t / g->threads < all * (t + 1) / g->threads)
            pick(g, place, y, x, all * t / g->threads, all * (t + 1) / g->threads);
}

/* --- Gather ------------------------------------------------------------------------------------------------------ */

/* Constant indices first, first + step, ... */
static gboolean evenly(const HnStep *s, int64_t n, int64_t *first, int64_t *step)
{
    const HnTensor *at = hn_cpu_in(s, 1);
    *step = 0;
    if (!s->in[1].slot->constant || at->n == 0)
        return FALSE;
    for (int64_t i = 0, before = 0; i < at->n; i++) {
        int64_t k = hn_tensor_get_i64(at, i);
        if (k < -n || k >= n)
            return FALSE;
        k += k < 0 ? n : 0;
        if (i == 0)
            *first = k;
        else if (i == 1)
            *step = k - before;
        else if (k - before != *step)
            return FALSE;
        before = k;
    }
    return TRUE;
}

static const char *pieces_reject(const HnStep *s)
{
    int64_t first, step;
    const char *reason = hn_gather_reject(s);
    return reason != NULL                                                       ? reason
           : evenly(s, hn_cpu_in(s, 0)->dims[hn_gather_axis(s)], &first, &step) ? NULL
                                                                                : "scattered indices";
}

static gboolean pieces_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1);
    const int axis = hn_gather_axis(s);
    int64_t first = 0, step = 0, run = hn_span(x->dims, axis + 1, x->ndim);
    int64_t dims[3] = { hn_span(x->dims, 0, axis), at->n, run }, ys[3], xs[3];
    (void)evenly(s, x->dims[axis], &first, &step);
    hn_strides(3, dims, ys);
    xs[0] = x->dims[axis] * run;
    xs[1] = step * run;
    xs[2] = 1;
    HnCopies *c = hn_copies_new(1);
    c->part[0].copy = hn_copy_new(hn_dtype_size(x->dtype), 3, dims, 0, ys, first * run, xs, hn_cpu_threads_for(s, 0));
    s->state = c;
    hn_copy_unread(s);
    return TRUE;
}

static gboolean rows_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    const int axis = hn_gather_axis(s);
    Gather *g = g_new0(Gather, 1);
    g->outer = y->n > 0 ? hn_span(x->dims, 0, axis) : 0;
    g->n = x->dims[axis];
    g->count = at->n;
    g->size = hn_dtype_size(x->dtype);
    g->run = (size_t)hn_span(x->dims, axis + 1, x->ndim) * g->size;
    g->threads = y->bytes >= (gsize)64 << 10 ? hn_cpu_threads_for(s, 0) : 1;
    s->state = g;
    s->scratch_bytes = (gsize)at->n * sizeof(int64_t);
    return TRUE;
}

static gboolean rows_run(HnStep *s, GError **error)
{
    const Gather *g = s->state;
    int64_t *place = s->scratch;
    if (g->count > 0)
        memset(place, 0, (size_t)g->count * sizeof *place);
    if (!hn_indices_add(s, hn_cpu_in(s, 1), 0, 1, g->count, g->n, 1, place, error))
        return FALSE;
    pick_all(g, place, hn_cpu_data(&s->out[0]), hn_cpu_data(&s->in[0]));
    return TRUE;
}

static const HnKernel gather_pieces = {
    .name = "cpu.gather_even",
    .reject = pieces_reject,
    .prepare = pieces_prepare,
    .run = hn_copies_run,
    .splits = hn_copies_splits,
    .release = hn_copies_release,
};

static const HnKernel gather_rows = {
    .name = "cpu.gather",
    .reject = hn_gather_reject,
    .prepare = rows_prepare,
    .run = rows_run,
    .release = hn_cpu_release,
};

/* Channels at even distances, channels last. */
static const char *channels_reject(const HnStep *s)
{
    const char *reason = pieces_reject(s);
    if (reason != NULL)
        return reason;
    return hn_channel_copy_of(s->in[0].slot, hn_gather_axis(s)) && hn_cpu_in(s, 1)->ndim == 1 ? NULL
                                                                                              : "not channels last";
}

static gboolean channels_prepare(HnStep *s, GError **error)
{
    (void)error;
    HnChannelCopy *c = hn_channel_copy_prepare(s, FALSE, 1);
    int64_t first = 0, step = 0;
    (void)evenly(s, hn_cpu_in(s, 0)->dims[1], &first, &step);
    c->part[0].first = first;
    c->part[0].step = step;
    c->part[0].count = hn_cpu_in(s, 1)->n;
    if (c->part[0].count == 1)
        c->part[0].step = 1;
    hn_copy_unread(s);
    return TRUE;
}

static const HnKernel gather_channels = {
    .name = "cpu.gather_channels",
    .reject = channels_reject,
    .prepare = channels_prepare,
    .run = hn_channel_copy_run,
    .release = hn_cpu_release,
    .splits = hn_channel_copy_splits,
    .pitched = TRUE,
};

const HnKernel *const hn_cpu_gather[] = { &gather_channels, &gather_pieces, &gather_rows, NULL };

/* --- GatherND ---------------------------------------------------------------------------------------------------- */

static const char *tuples_reject(const HnStep *s)
{
    return hn_cpu_in(s, 1)->n == 0 ? "nothing to compute" : hn_gather_tuples_reject(s);
}

static gboolean tuples_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnGather *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    const int b = (int)p->batch_dims, depth = (int)at->dims[at->ndim - 1];
    Gather *g = g_new0(Gather, 1);
    g->outer = y->n > 0 ? 1 : 0;
    g->count = at->n / depth;
    g->size = hn_dtype_size(x->dtype);
    g->run = (size_t)hn_span(x->dims, b + depth, x->ndim) * g->size;
    g->threads = y->bytes >= (gsize)64 << 10 ? hn_cpu_threads_for(s, 0) : 1;
    s->state = g;
    s->scratch_bytes = (gsize)g->count * sizeof(int64_t);
    return TRUE;
}

static gboolean tuples_run(HnStep *s, GError **error)
{
    const HnGather *p = s->params;
    const Gather *g = s->state;
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1);
    const int b = (int)p->batch_dims, depth = (int)at->dims[at->ndim - 1];
    int64_t strides[HN_MAX_RANK], *place = s->scratch;
    hn_strides(depth, x->dims + b, strides); /* in runs */
    if (!hn_indices_tuples(s, at, depth, x->dims + b, strides, place, error))
        return FALSE;
    const int64_t batch = hn_span(x->dims, b, b + depth), each = hn_span(at->dims, b, at->ndim - 1);
    for (int64_t i = each; i < g->count; i++)
        place[i] += i / each * batch;
    pick_all(g, place, hn_cpu_data(&s->out[0]), hn_cpu_data(&s->in[0]));
    return TRUE;
}

static const HnKernel gather_tuples = {
    .name = "cpu.gathernd",
    .reject = tuples_reject,
    .prepare = tuples_prepare,
    .run = tuples_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_gathernd[] = { &gather_tuples, NULL };

/* --- GatherElements ---------------------------------------------------------------------------------------------- */

static const char *elements_reject(const HnStep *s)
{
    const char *reason = hn_gather_elements_reject(s, hn_gather_axis(s));
    return reason == NULL && hn_dtype_size(hn_cpu_in(s, 0)->dtype) > 8 ? "elements of 16 bytes" : reason;
}

static gboolean elements_prepare(HnStep *s, GError **error)
{
    (void)error;
    s->scratch_bytes = (gsize)hn_cpu_in(s, 1)->n * sizeof(int64_t);
    return TRUE;
}

static gboolean elements_run(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1);
    const int axis = hn_gather_axis(s), last = x->ndim - 1;
    int64_t strides[HN_MAX_RANK], idx[HN_MAX_RANK] = { 0 }, off[1] = { 0 }, *place = s->scratch;
    hn_strides(x->ndim, x->dims, strides);
    memset(place, 0, (size_t)at->n * sizeof *place);
    if (!hn_indices_add(s, at, 0, 1, at->n, x->dims[axis], strides[axis], place, error))
        return FALSE;
    const int64_t along = axis == last ? 0 : 1, n = at->dims[last];
    int64_t *const all[1] = { strides };
    strides[axis] = 0;
    char *y = hn_cpu_data(&s->out[0]);
    const size_t size = hn_dtype_size(x->dtype);
    do {
        const char *from = (const char *)x->data + (size_t)off[0] * size;
#define PICK(T)                                 \
    const T *f = (const T *)(const void *)from; \
    T *to = (T *)(void *)y;                     \
    for (int64_t i = 0; i < n; i++)             \
        to[i] = f[place[i] + i * along];
        HN_FOR_SIZE(size, PICK)
#undef PICK
        place += n;
        y += (size_t)n * size;
    } while (hn_index_next(last, at->dims, idx, 1, all, off));
    return TRUE;
}

static const HnKernel gather_elements = {
    .name = "cpu.gatherelements",
    .reject = elements_reject,
    .prepare = elements_prepare,
    .run = elements_run,
};

const HnKernel *const hn_cpu_gatherelements[] = { &gather_elements, NULL };
