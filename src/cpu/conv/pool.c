/*
 * MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool.
 *
 *   cpu.pool_last   channels last: vectors are channels
 *   cpu.pool        plain sources of 1 or 2 spatial axes: vectors are columns. All of them for the global ones
 *
 * Where windows overlap, the rows that they see are joined into one first, and then its columns.
 */
#include "op/pool.h"

#include <math.h>

#include "cpu/int8/int8_conv.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/core/cpu_level.h"
#include "cpu/conv/pool.h"
#include "op/index.h"

#define HN_LOOPS "cpu/conv/pool_loops.h"
#include "base/every_level.h"

typedef struct {
    const HnPoolFns *fns;
    gboolean mean, count_pad;
    HnWindowAxis axis[3];            /* depth, height, width */
    gboolean joined;                 /* rows are joined before columns */
    int64_t most_rows, most_columns; /* of a window inside the source */
    struct {
        int64_t first, n; /* taps inside the source: position of the first, how many */
        int64_t alike;    /* columns from here on with the same taps of their windows */
    } * column;           /* for each output column */
    float *share;         /* the column's part in the factor of a mean */
    int64_t spans;        /* cpu.pool_last, global: parts of the channels that are computed one by one */
    int64_t width;        /* cpu.pool: of the joined row, padding included */
    int threads;
    gsize part_bytes; /* scratch of a thread */
} Pool;

static gboolean is_global(const HnStep *s)
{
    return s->op != &hn_op_maxpool && s->op != &hn_op_averagepool;
}

static gboolean is_mean(const HnStep *s)
{
    return s->op == &hn_op_averagepool || s->op == &hn_op_globalaveragepool;
}

static const HnPoolFns *fns_for(const HnStep *s, int64_t channels)
{
    static const HnPoolFns *const levels[HN_LEVELS] = HN_TABLE_OF_LEVELS(pool_fns);
    int level = hn_cpu_level();
    while (level > 0 && channels < 4 << level)
        level--;
    return &levels[level][is_mean(s) ? 1 : 0];
}

/* The windows, with axes that are not there of size 1. Not for global pools. */
static gboolean place(const HnStep *s, HnWindowAxis *axis)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    HnWindowAxis all[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK];
    if (!hn_pool_place(s->params, x->ndim, x->dims, all, dims, NULL))
        return FALSE;
    hn_window_axes(x->ndim - 2, all, 3, axis);
    return TRUE;
}

/* The taps of the window at output o that lie in [lo, hi): the position of the first, and how many. */
static int64_t taps_within(const HnWindowAxis *a, int64_t o, int64_t lo, int64_t hi, int64_t *first)
{
    const int64_t begin = o * a->stride - a->pad;
    const int64_t from = begin >= lo ? 0 : (lo - begin + a->dilation - 1) / a->dilation;
    const int64_t end = hi <= begin ? 0 : MIN(a->kernel, (hi - begin + a->dilation - 1) / a->dilation);
    *first = begin + from * a->dilation;
    return MAX(0, end - from);
}

/* Those in the source. */
static int64_t taps_of(const HnWindowAxis *a, int64_t o, int64_t *first)
{
    return taps_within(a, o, 0, a->in, first);
}

/* What the window divides by along an axis. */
static int64_t divisor(const Pool *p, const HnWindowAxis *a, int64_t o)
{
    int64_t first;
    return p->count_pad ? taps_within(a, o, -a->pad, a->in + a->pad_end, &first) : taps_of(a, o, &first);
}

/* 1 / n; 0 for windows that hold nothing */
static float share(int64_t n)
{
    return n > 0 ? 1 / (float)n : 0;
}

/* cpu.pool: a row of the source with the padding that windows see. */
static int64_t width_of(const HnWindowAxis *w)
{
    const int64_t seen = (w->out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    return MAX(MAX(w->pad, 0) + w->in, seen + MAX(-w->pad, 0));
}

#define MAX_WIDTH(in) (4 * (in) + 256)

static const char *reject_any(const HnStep *s)
{
    if (!hn_cpu_wants_only(s, 1))
        return "indices are wanted";
    return hn_cpu_reject_f32(s);
}

/* Does the window of column o + 1 hold the same taps as that of column o, one stride further on? */
static gboolean follows(const Pool *p, int64_t o)
{
    return p->column[o + 1].n == p->column[o].n && p->share[o + 1] == p->share[o] &&
           p->column[o + 1].first == p->column[o].first + p->axis[2].stride;
}

/* s->state for vectors along `channels` elements. */
static gboolean pool_new(HnStep *s, int64_t channels, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    Pool *p = g_new0(Pool, 1);
    s->state = p;
    p->fns = fns_for(s, channels);
    double flops = (double)x->n;
    if (!is_global(s)) {
        const HnWindowAxis *w = &p->axis[2];
        place(s, p->axis);
        p->mean = is_mean(s);
        p->count_pad = ((const HnPool *)s->params)->count_pad;
        p->most_rows = MIN(p->axis[0].kernel, p->axis[0].in) * MIN(p->axis[1].kernel, p->axis[1].in);
        p->most_columns = MIN(w->kernel, w->in);
        flops = (double)y->n * (double)(p->most_rows + p->most_columns);
        /* as many as padding makes of them */
        p->column = hn_budget_alloc_n(s->budget, (gsize)w->out, sizeof *p->column, error);
        p->share = p->column != NULL ? hn_budget_alloc_n(s->budget, (gsize)w->out, sizeof *p->share, error) : NULL;
        if (p->share == NULL) {
            g_prefix_error(error, "node '%s': ", hn_node_label(s->node));
            return FALSE;
        }
        for (int64_t o = 0; o < w->out; o++) {
            p->column[o].n = taps_of(w, o, &p->column[o].first);
            p->share[o] = p->mean ? share(divisor(p, w, o)) : 1;
        }
        for (int64_t o = w->out - 1; o >= 0; o--)
            p->column[o].alike = o + 1 < w->out && follows(p, o) ? p->column[o + 1].alike + 1 : 1;
    }
    p->threads = hn_cpu_threads_for(s, 4 * flops);
    return TRUE;
}

static void pool_release(HnStep *s)
{
    Pool *p = s->state;
    if (p == NULL)
        return;
    hn_budget_free(s->budget, p->column);
    hn_budget_free(s->budget, p->share);
    g_free(p);
    s->state = NULL;
}

static void *scratch_of(const HnStep *s, int thread)
{
    const Pool *p = s->state;
    return (char *)s->scratch + (gsize)thread * p->part_bytes;
}

/* --- channels last ----------------------------------------------------------------------------------------------- */

static const char *last_reject(const HnStep *s)
{
    const char *reason = reject_any(s);
    HnWindowAxis axis[3];
    if (reason != NULL)
        return reason;
    const HnTensor *x = hn_cpu_in(s, 0);
    if (x->ndim < 3 || x->ndim > 5)
        return "only 1 to 3 spatial axes";
    const gboolean plain = s->in[0].slot->layout == NULL;
    if (is_global(s))
        return plain ? "a plain source" : NULL;
    if (!place(s, axis))
        return "the window does not fit";
    return plain && x->ndim < 5 && width_of(&axis[2]) <= MAX_WIDTH(axis[2].in) ? "a plain source" : NULL;
}

static gboolean last_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    if (!pool_new(s, x->dims[1], error))
        return FALSE;
    Pool *p = s->state;
    const HnWindowAxis *w = &p->axis[2];
    p->joined = p->most_rows > 1 && w->kernel > w->stride;
    p->spans = MAX((x->dims[1] + HN_POOL_SPAN - 1) / HN_POOL_SPAN, MIN(p->threads, x->dims[1] / 16));
    if (!is_global(s)) {
        const int64_t taps = (p->joined ? 1 : p->most_rows) * p->most_columns;
        p->part_bytes = (gsize)(p->most_rows + taps) * sizeof(void *);
        if (p->joined)
            p->part_bytes += (gsize)(w->in * x->dims[1]) * sizeof(float);
        p->part_bytes = (p->part_bytes + 63) / 64 * 64;
    }
    s->scratch_bytes = p->part_bytes * (gsize)p->threads;
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    return TRUE;
}

/* Rows of the source in windows of output row (depth, height). */
static int64_t find_rows(const Pool *p, const float **row, const float *x, int64_t pitch, int64_t depth, int64_t height)
{
    int64_t z, y, rows = 0;
    const int64_t deep = taps_of(&p->axis[0], depth, &z), high = taps_of(&p->axis[1], height, &y);
    for (int64_t i = 0; i < deep; i++)
        for (int64_t j = 0; j < high; j++)
            row[rows++] = x + ((z + i * p->axis[0].dilation) * p->axis[1].in + y + j * p->axis[1].dilation) *
                                  p->axis[2].in * pitch;
    return rows;
}

/* Rows [lo, hi) of the result. */
static void last_part(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Pool *p = s->state;
    const HnWindowAxis *a = &p->axis[0], *h = &p->axis[1], *w = &p->axis[2];
    const int64_t channels = hn_cpu_in(s, 0)->dims[1], plane = a->in * h->in * w->in;
    const int64_t xp = hn_slot_pitch(s->in[0].slot), yp = hn_slot_pitch(s->out[0].slot);
    const float **row = scratch_of(s, thread), **tap = row + p->most_rows;
    float *join = (float *)(void *)(tap + p->most_columns); /* where there is one */
    for (int64_t i = lo; i < hi; i++) {
        const int64_t n = i / (a->out * h->out), depth = i / h->out % a->out, height = i % h->out;
        const float *x = (const float *)hn_cpu_data(&s->in[0]) + n * plane * xp;
        float *y = (float *)hn_cpu_data(&s->out[0]) + i * w->out * yp;
        int64_t rows = find_rows(p, row, x, xp, depth, height), pitch = xp;
        const float outer = p->mean ? share(divisor(p, a, depth) * divisor(p, h, height)) : 1;
        if (p->joined) {
            if (xp == channels)
                p->fns->of(join, 0, row, rows, 0, w->in * channels, 1, 1);
            else
                p->fns->of(join, channels, row, rows, xp, channels, w->in, 1);
            row[0] = join;
            rows = 1;
            pitch = channels;
        }
        for (int64_t o = 0, some; o < w->out; o += some, y += some * yp) {
            int64_t taps = 0;
            some = p->column[o].alike;
            for (int64_t k = 0; k < rows; k++)
                for (int64_t j = 0; j < p->column[o].n; j++)
                    tap[taps++] = row[k] + (p->column[o].first + j * w->dilation) * pitch;
            p->fns->of(y, yp, tap, taps, w->stride * pitch, channels, some, outer * p->share[o]);
        }
    }
}

/* Spans [lo, hi) of channels, those of the first sample first. */
static void last_global(gpointer step, G_GNUC_UNUSED int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Pool *p = s->state;
    const HnTensor *x = hn_cpu_in(s, 0);
    const int64_t channels = x->dims[1], pixels = x->n / (x->dims[0] * channels);
    const int64_t xp = hn_slot_pitch(s->in[0].slot), yp = hn_slot_pitch(s->out[0].slot);
    for (int64_t i = lo; i < hi; i++) {
        const int64_t n = i / p->spans, span = i % p->spans, c = channels * span / p->spans;
        const int64_t end = channels * (span + 1) / p->spans;
        p->fns->pixels((float *)hn_cpu_data(&s->out[0]) + n * yp + c,
                       (const float *)hn_cpu_data(&s->in[0]) + n * pixels * xp + c, xp, pixels, end - c, share(pixels));
    }
}

static gboolean last_run(HnStep *s, GError **error)
{
    (void)error;
    const Pool *p = s->state;
    const HnTensor *x = hn_cpu_in(s, 0);
    if (is_global(s))
        hn_parallel_for(x->dims[0] * p->spans, p->threads, last_global, s);
    else
        hn_parallel_for(x->dims[0] * p->axis[0].out * p->axis[1].out, p->threads, last_part, s);
    return TRUE;
}

static const HnKernel pool_last = {
    .name = "cpu.pool_last",
    .reject = last_reject,
    .prepare = last_prepare,
    .run = last_run,
    .release = pool_release,
    .pitched = TRUE,
};

/* --- plain ------------------------------------------------------------------------------------------------------- */

static const char *plain_reject(const HnStep *s)
{
    const char *reason = reject_any(s);
    HnWindowAxis axis[3];
    if (reason != NULL)
        return reason;
    const int rank = hn_cpu_in(s, 0)->ndim;
    if (is_global(s))
        return rank < 2 ? "no channels" : NULL;
    if (rank != 3 && rank != 4)
        return "only 1 or 2 spatial axes";
    if (!place(s, axis))
        return "the window does not fit";
    return width_of(&axis[2]) <= MAX_WIDTH(axis[2].in) ? NULL : "padding that is much wider than the source";
}

static gboolean plain_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    if (!pool_new(s, is_global(s) ? G_MAXINT : x->dims[x->ndim - 1], error))
        return FALSE;
    Pool *p = s->state;
    const HnWindowAxis *w = &p->axis[2];
    if (!is_global(s)) {
        p->width = width_of(w);
        p->part_bytes = (gsize)p->most_rows * sizeof(void *) + (gsize)p->width * sizeof(float);
        p->part_bytes = (p->part_bytes + 63) / 64 * 64;
    }
    s->scratch_bytes = p->part_bytes * (gsize)p->threads;
    return TRUE;
}

/* Planes [lo, hi). */
static void plain_part(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Pool *p = s->state;
    const HnWindowAxis *h = &p->axis[1], *w = &p->axis[2];
    const int64_t lead = MAX(w->pad, 0), skip = MAX(-w->pad, 0);
    const float **row = scratch_of(s, thread);
    float *join = (float *)(void *)(row + p->most_rows);
    for (int64_t i = 0; i < p->width; i++)
        join[i] = p->mean ? 0 : -INFINITY;
    for (int64_t c = lo; c < hi; c++)
        for (int64_t o = 0; o < h->out; o++) {
            const float *x = (const float *)hn_cpu_data(&s->in[0]) + c * h->in * w->in;
            float *y = (float *)hn_cpu_data(&s->out[0]) + (c * h->out + o) * w->out;
            p->fns->of(join + lead, 0, row, find_rows(p, row, x, 1, 0, o), 0, w->in, 1, 1);
            p->fns->columns(y, join + skip, w->out, w->stride, w->kernel, w->dilation);
            if (!p->mean)
                continue;
            const float outer = share(divisor(p, h, o));
            for (int64_t k = 0; k < w->out; k++)
                y[k] *= outer * p->share[k];
        }
}

static void plain_global(gpointer step, G_GNUC_UNUSED int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Pool *p = s->state;
    const HnTensor *x = hn_cpu_in(s, 0);
    const int64_t pixels = x->n / (x->dims[0] * x->dims[1]);
    for (int64_t i = lo; i < hi; i++)
        ((float *)hn_cpu_data(&s->out[0]))[i] =
            p->fns->row((const float *)hn_cpu_data(&s->in[0]) + i * pixels, pixels, share(pixels));
}

static gboolean plain_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    hn_parallel_for(x->dims[0] * x->dims[1], ((const Pool *)s->state)->threads,
                    is_global(s) ? plain_global : plain_part, s);
    return TRUE;
}

static const HnKernel pool_plain = {
    .name = "cpu.pool",
    .reject = plain_reject,
    .prepare = plain_prepare,
    .run = plain_run,
    .release = pool_release,
};

const HnKernel *const hn_cpu_maxpool[] = { &hn_cpu_int8_maxpool, &pool_last, &pool_plain, NULL };
const HnKernel *const hn_cpu_averagepool[] = { &pool_last, &pool_plain, NULL };
const HnKernel *const hn_cpu_globalmaxpool[] = { &pool_last, &pool_plain, NULL };
const HnKernel *const hn_cpu_globalaveragepool[] = { &pool_last, &pool_plain, NULL };
