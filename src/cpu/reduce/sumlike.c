/*
 * SumLike of f32: the gradients of biases and of all else that was broadcast.
 *
 * Axes side by side that are both kept, or both summed, are one. What is left is one of a few forms; others go to the
 * kernel of reductions over any axes. A sum over leading axes is cut into parts, as many as its shape says, whose sums
 * are added in double, in order.
 */
#include <string.h>

#include "cpu/reduce/norm.h"
#include "cpu/reduce/reduce_axes.h"

#define HN_LOOPS "cpu/reduce/sumlike_loops.h"
#include "base/every_level.h"

#define LANES 128          /* elements of a row that are added to sums of their own, at least */
#define PARTS 64           /* at most */
#define PART_ELEMENTS 8192 /* at least */
#define PART_ROWS 32

typedef enum {
    WHOLE,   /* kept: a copy */
    COLUMNS, /* [n, inner]: n are summed */
    ROWS,    /* [outer, n]: n are summed */
    BETWEEN, /* [outer, n, inner]: n are summed */
    AROUND,  /* [n, outer, inner]: n and inner are summed */
    OTHER,
} Form;

typedef struct {
    Form form;
    int64_t n, outer, inner;
} Sums;

typedef struct {
    void (*columns)(float *restrict sum, const float *restrict x, int64_t n, int64_t width);
    const HnRowFns *rows;
    Sums sums;
    int64_t width, parts, each; /* lanes; elements of a part */
    int threads;
} SumLike;

/* Axis i of x is kept: `like` is as long there. */
static gboolean is_kept(const HnTensor *x, const HnTensor *like, int i)
{
    const int k = i - (x->ndim - like->ndim);
    return k >= 0 && like->dims[k] == x->dims[i];
}

static Sums form_of(int groups, const gboolean *kept, const int64_t *n)
{
    if (groups == 0 || (groups == 1 && kept[0]))
        return (Sums){ .form = WHOLE };
    if (groups <= 2 && !kept[0])
        return (Sums){ COLUMNS, .n = n[0], .outer = 1, .inner = groups == 2 ? n[1] : 1 };
    if (groups == 2)
        return (Sums){ ROWS, .outer = n[0], .n = n[1], .inner = 1 };
    if (groups == 3 && kept[0])
        return (Sums){ BETWEEN, .outer = n[0], .n = n[1], .inner = n[2] };
    if (groups == 3)
        return (Sums){ AROUND, .n = n[0], .outer = n[1], .inner = n[2] };
    return (Sums){ .form = OTHER };
}

/* Of elements as they lie: plain, or channels last. */
static Sums find_sums(const HnTensor *x, const HnTensor *like, gboolean last)
{
    gboolean kept[HN_MAX_RANK];
    int64_t n[HN_MAX_RANK];
    int groups = 0;
    for (int k = 0; k < x->ndim; k++) {
        const int i = !last || k == 0 ? k : k < x->ndim - 1 ? k + 1 : 1;
        if (x->dims[i] == 1)
            continue;
        const gboolean keep = is_kept(x, like, i);
        if (last && i > 1 && keep)
            return (Sums){ .form = OTHER }; /* the result would lie in another order */
        if (groups > 0 && kept[groups - 1] == keep) {
            n[groups - 1] *= x->dims[i];
            continue;
        }
        kept[groups] = keep;
        n[groups++] = x->dims[i];
    }
    return form_of(groups, kept, n);
}

static const char *sumlike_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0), *like = hn_cpu_in(s, 1);
    if (x->dtype != HN_F32)
        return "only f32";
    if (x->n == 0)
        return "nothing to compute";
    return find_sums(x, like, FALSE).form == OTHER &&
                   (!hn_layout_is_last(s->in[0].slot->layout) || find_sums(x, like, TRUE).form == OTHER)
               ? "summed axes that lie apart"
               : NULL;
}

static gboolean sumlike_prepare(HnStep *s, GError **error)
{
    static void (*const columns[])(float *restrict, const float *restrict, int64_t, int64_t) =
        HN_TABLE_OF_LEVELS(column_sums);
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *like = hn_cpu_in(s, 1);
    SumLike *m = g_new0(SumLike, 1);
    s->state = m;
    m->columns = columns[hn_cpu_level()];
    m->rows = hn_cpu_rows();
    s->in[0].any = hn_layout_is_last(s->in[0].slot->layout) && find_sums(x, like, TRUE).form != OTHER;
    s->in[1].unread = TRUE; /* its shape is known */
    m->sums = find_sums(x, like, s->in[0].any);
    m->threads = hn_cpu_threads_for(s, (double)x->n);
    const Sums *f = &m->sums;
    if (f->form != COLUMNS && f->form != BETWEEN)
        return TRUE;
    const int64_t all = f->n * f->inner;
    m->width = f->inner * MAX(1, LANES / f->inner);
    m->each = all;
    if (f->form == COLUMNS) {
        const int64_t rows = (all + m->width - 1) / m->width, least = MAX(PART_ROWS, PART_ELEMENTS / m->width);
        m->each = MAX(least, (rows + PARTS - 1) / PARTS) * m->width;
    }
    m->parts = (all + m->each - 1) / m->each;
    s->scratch_bytes = (gsize)(m->parts * f->inner + m->threads * m->width) * sizeof(float);
    return TRUE;
}

/* The columns of n elements from x on. */
static void sum_columns(const HnStep *s, int thread, float *y, const float *x, int64_t n)
{
    const SumLike *m = s->state;
    const int64_t inner = m->sums.inner;
    float *lanes = (float *)s->scratch + m->parts * inner + thread * m->width;
    memset(lanes, 0, (gsize)m->width * sizeof *lanes);
    m->columns(lanes, x, n, m->width);
    memcpy(y, lanes, (gsize)inner * sizeof *y);
    for (int64_t i = inner; i < m->width; i += inner)
        for (int64_t c = 0; c < inner; c++)
            y[c] += lanes[i + c];
}

/* Piece i: a part of columns, or a row or column of the result. */
static void sum_piece(const HnStep *s, int thread, int64_t i)
{
    const SumLike *m = s->state;
    const Sums *f = &m->sums;
    const float *x = hn_cpu_data(&s->in[0]);
    float *y = hn_cpu_data(&s->out[0]);
    if (f->form == COLUMNS) {
        const int64_t from = i * m->each;
        sum_columns(s, thread, (float *)s->scratch + i * f->inner, x + from, MIN(m->each, f->n * f->inner - from));
    } else if (f->form == BETWEEN) {
        sum_columns(s, thread, y + i * f->inner, x + i * f->n * f->inner, f->n * f->inner);
    } else if (f->form == ROWS) {
        y[i] = m->rows->sum(x + i * f->n, f->n);
    } else {
        double sum = 0;
        for (int64_t k = 0; k < f->n; k++)
            sum += (double)m->rows->sum(x + (k * f->outer + i) * f->inner, f->inner);
        y[i] = (float)sum;
    }
}

static void join_parts(const HnStep *s)
{
    const SumLike *m = s->state;
    const float *part = s->scratch;
    float *y = hn_cpu_data(&s->out[0]);
    for (int64_t c = 0; c < m->sums.inner; c++) {
        double sum = 0;
        for (int64_t p = 0; p < m->parts; p++)
            sum += (double)part[p * m->sums.inner + c];
        y[c] = (float)sum;
    }
}

static gboolean sumlike_run(HnStep *s, GError **error)
{
    (void)error;
    const SumLike *m = s->state;
    const int64_t pieces = m->sums.form == COLUMNS ? m->parts : m->sums.outer;
    if (m->sums.form == WHOLE) {
        memcpy(hn_cpu_data(&s->out[0]), hn_cpu_data(&s->in[0]), s->out[0].slot->tensor->bytes);
        return TRUE;
    }
#pragma omp parallel for num_threads(m->threads) if (m->threads > 1)
    for (int t = 0; t < m->threads; t++)
        for (int64_t i = pieces * t / m->threads; i < pieces * (t + 1) / m->threads; i++)
            sum_piece(s, t, i);
    if (m->sums.form == COLUMNS)
        join_parts(s);
    return TRUE;
}

static const HnKernel sumlike = {
    .name = "cpu.sumlike",
    .reject = sumlike_reject,
    .prepare = sumlike_prepare,
    .run = sumlike_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_sumlike[] = { &sumlike, &hn_cpu_reduce, NULL };
