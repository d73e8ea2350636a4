/*
 * ArgMax and ArgMin of f32. Of equal values the first counts, or the last; a NaN is more extreme than everything.
 *
 * Columns are taken many at a time. A row of adjacent elements is cut into as many columns, whose extremes are compared
 * then: of these an equal one counts by its place.
 */
#include "op/argmax.h"

#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "op/index.h"

#define HN_LOOPS "cpu/reduce/argmax_loops.h"
#include "base/every_level.h"

#define WIDTH 128      /* columns at a time */
#define ROW_WIDTH 64   /* of a row */
#define LEAST_ROWS 4   /* of a row's columns */
#define MOST INT32_MAX /* rows */

typedef struct {
    int64_t outer, n, inner, blocks; /* blocks of columns */
    gboolean min, last;
    int threads;
} Arg;

static const char *arg_reject(const HnStep *s)
{
    const HnArg *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    if (x->dtype != HN_F32)
        return "only f32";
    if (x->ndim > 0 && x->dims[hn_axis(p->axis, x->ndim)] > MOST)
        return "places of more than 31 bits";
    return x->n == 0 ? "nothing to compute" : NULL;
}

static gboolean arg_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnArg *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    int axis = hn_axis(p->axis, x->ndim);
    Arg *a = g_new0(Arg, 1);
    s->state = a;
    a->outer = hn_span(x->dims, 0, axis);
    a->n = x->ndim > 0 ? x->dims[axis] : 1;
    a->inner = hn_span(x->dims, axis + 1, x->ndim);
    a->blocks = (a->inner + WIDTH - 1) / WIDTH;
    a->min = s->op == &hn_op_argmin;
    a->last = p->last;
    a->threads = hn_cpu_threads_for(s, (double)x->n);
    return TRUE;
}

static gboolean beats(const Arg *a, float v, float best)
{
    if (v == best || (v != v && best != best))
        return a->last;
    return best == best && (v != v || (a->min ? v < best : v > best));
}

typedef void (*ColumnsFn)(const float *restrict x, int64_t rows, int64_t pitch, int64_t n, float *restrict best,
                          int32_t *restrict at);

static ColumnsFn columns_of(const Arg *a)
{
    static const ColumnsFn fns[2][2][HN_LEVELS] = {
        { HN_TABLE_OF_LEVELS(first_most), HN_TABLE_OF_LEVELS(last_most) },
        { HN_TABLE_OF_LEVELS(first_least), HN_TABLE_OF_LEVELS(last_least) },
    };
    return fns[a->min ? 1 : 0][a->last ? 1 : 0][hn_cpu_level()];
}

static void find_columns(const Arg *a, const float *x, int64_t n, int64_t *y)
{
    float best[WIDTH];
    int32_t at[WIDTH] = { 0 };
    memcpy(best, x, (gsize)n * sizeof(float));
    columns_of(a)(x, a->n, a->inner, n, best, at);
    for (int64_t i = 0; i < n; i++)
        y[i] = at[i];
}

static int64_t find_in_row(const Arg *a, const float *x)
{
    const int64_t rows = a->n / ROW_WIDTH;
    int64_t place = 0, done = 1;
    if (rows >= LEAST_ROWS) {
        float best[ROW_WIDTH];
        int32_t at[ROW_WIDTH] = { 0 };
        memcpy(best, x, sizeof best);
        columns_of(a)(x, rows, ROW_WIDTH, ROW_WIDTH, best, at);
        place = (int64_t)at[0] * ROW_WIDTH;
        for (int64_t i = 1; i < ROW_WIDTH; i++) {
            const int64_t other = (int64_t)at[i] * ROW_WIDTH + i;
            const gboolean equal = best[i] == x[place] || (best[i] != best[i] && x[place] != x[place]);
            if (equal ? (other > place) == a->last : beats(a, best[i], x[place]))
                place = other;
        }
        done = rows * ROW_WIDTH;
    }
    for (int64_t i = done; i < a->n; i++)
        if (beats(a, x[i], x[place]))
            place = i;
    return place;
}

/* Blocks of columns [lo, hi), or rows. */
static void find(gpointer step, G_GNUC_UNUSED int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Arg *a = s->state;
    const float *x = hn_cpu_data(&s->in[0]);
    int64_t *y = hn_cpu_data(&s->out[0]);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t o = u / a->blocks, first = u % a->blocks * WIDTH;
        if (a->inner == 1)
            y[u] = find_in_row(a, x + u * a->n);
        else
            find_columns(a, x + o * a->n * a->inner + first, MIN(WIDTH, a->inner - first), y + o * a->inner + first);
    }
}

static gboolean arg_run(HnStep *s, GError **error)
{
    (void)error;
    const Arg *a = s->state;
    hn_parallel_for(a->outer * a->blocks, a->threads, find, s);
    return TRUE;
}

static const HnKernel arg = {
    .name = "cpu.argmax",
    .reject = arg_reject,
    .prepare = arg_prepare,
    .run = arg_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_argmax[] = { &arg, NULL };
const HnKernel *const hn_cpu_argmin[] = { &arg, NULL };
