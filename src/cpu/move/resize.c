/*
 * Resize and Upsample with sizes that are known ahead. Nearest moves elements of any size by tables of indices; means
 * (linear, cubic) of f32 go axis by axis through scratch memory, one piece of the axes in front at a time. Their
 * gradient, and that of nearest, is the same with transposed weights: each element of the source gathers what it gave.
 */
#include "run/resize_forms.h"

#include <string.h>

#include "cpu/core/strided_copy.h"
#include "op/index.h"
#include "op/types.h"

static gboolean is_last(const HnStep *s)
{
    return hn_layout_is_last(s->in[hn_resize_source(s)].slot->layout);
}

static void keep_layout(HnStep *s)
{
    s->in[hn_resize_source(s)].any = is_last(s);
    for (int i = 0; i < s->n_in; i++)
        s->in[i].unread = i != hn_resize_source(s);
    s->out[0].slot->layout = is_last(s) ? hn_layout_last(s->out[0].slot->tensor) : NULL;
}

/* --- nearest ----------------------------------------------------------------------------------------------------- */

typedef struct {
    int ndim;                 /* axes around rows */
    int64_t out[HN_MAX_RANK]; /* of these */
    int64_t xs[HN_MAX_RANK];  /* bytes from index to index in the source */
    const int64_t *table[HN_MAX_RANK];
    int64_t n, times; /* runs of a row; each of the source's this often, 0: by `column` */
    const int64_t *column;
    size_t run, size; /* bytes of a run, of an element */
    int threads;
    int64_t *tables;
} Nearest;

static const char *nearest_reject(const HnStep *s)
{
    const HnResize *p = s->params;
    HnResizeAxis axis[HN_MAX_RANK];
    int n;
    const char *reason = p->mode != HN_RESIZE_NEAREST ? "a mean" : hn_copy_reject(hn_cpu_in(s, 0));
    if (reason == NULL && hn_dtype_size(hn_cpu_in(s, 0)->dtype) > 8)
        reason = "elements of 16 bytes";
    return reason != NULL ? reason : hn_resize_form(s, is_last(s), &n, axis);
}

static gboolean nearest_prepare(HnStep *s, GError **error)
{
    HnResizeAxis axis[HN_MAX_RANK];
    int n;
    int64_t total = 0, at = 0;
    Nearest *p = g_new0(Nearest, 1);
    s->state = p;
    (void)hn_resize_form(s, is_last(s), &n, axis);
    for (int a = 0; a < n; a++)
        total += axis[a].out;
    if ((p->tables = hn_resize_table(s, total, sizeof *p->tables, error)) == NULL)
        return FALSE;
    p->size = p->run = hn_dtype_size(hn_cpu_in(s, 0)->dtype);
    p->n = 1;
    p->threads = hn_cpu_threads_for(s, 0);
    if (hn_resize_stays(s->params, &axis[n - 1]))
        p->run *= (size_t)axis[--n].in;
    int64_t stride = (int64_t)p->run;
    for (int a = n - 1; a >= 0; a--) {
        int64_t *table = p->tables + at;
        at += axis[a].out;
        for (int64_t y = 0; y < axis[a].out; y++)
            table[y] = hn_resize_stays(s->params, &axis[a]) ? y : hn_resize_nearest(s->params, &axis[a], y);
        if (a == n - 1) {
            p->n = axis[a].out;
            p->column = table;
            p->times = axis[a].out % axis[a].in == 0 ? axis[a].out / axis[a].in : 0;
            for (int64_t y = 0; y < axis[a].out && p->times > 0; y++)
                p->times = table[y] == y / p->times ? p->times : 0;
        } else {
            p->out[a] = axis[a].out;
            p->xs[a] = stride;
            p->table[a] = table;
        }
        stride *= axis[a].in;
    }
    p->ndim = MAX(n - 1, 0);
    keep_layout(s);
    return TRUE;
}

#define REPEAT(T, K)                           \
    for (int64_t i = 0; i < p->n / (K); i++) { \
        const T v = from[i];                   \
        for (int k = 0; k < (K); k++)          \
            to[i * (K) + k] = v;               \
    }

static void nearest_row(const Nearest *p, char *y, const char *x)
{
#define ROW(T)                                  \
    T *restrict to = (T *)(void *)y;            \
    const T *from = (const T *)(const void *)x; \
    if (p->times == 2) {                        \
        REPEAT(T, 2)                            \
    } else if (p->times == 4) {                 \
        REPEAT(T, 4)                            \
    } else {                                    \
        for (int64_t i = 0; i < p->n; i++)      \
            to[i] = from[p->column[i]];         \
    }
    if (p->n == 1) {
        hn_copy_bytes(y, x + (p->column != NULL ? (size_t)p->column[0] * p->run : 0), p->run);
    } else if (p->run == p->size) {
        HN_FOR_SIZE(p->size, ROW)
    } else {
        for (int64_t i = 0; i < p->n; i++)
            hn_copy_bytes(y + (size_t)i * p->run, x + (size_t)p->column[i] * p->run, p->run);
    }
#undef ROW
}

/* Rows [lo, hi) of the output. */
static void nearest_rows(const Nearest *p, char *y, const char *x, int64_t lo, int64_t hi)
{
    const size_t bytes = (size_t)p->n * p->run;
    int64_t idx[HN_MAX_RANK], before = -1;
    for (int64_t a = p->ndim - 1, r = lo; a >= 0; a--) {
        idx[a] = r % p->out[a];
        r /= p->out[a];
    }
    for (int64_t r = lo; r < hi; r++) {
        int64_t from = 0;
        for (int a = 0; a < p->ndim; a++)
            from += p->table[a][idx[a]] * p->xs[a];
        char *to = y + (size_t)r * bytes;
        if (from == before) /* the same row again */
            memcpy(to, to - bytes, bytes);
        else
            nearest_row(p, to, x + from);
        before = from;
        for (int a = p->ndim - 1; a >= 0 && ++idx[a] == p->out[a]; a--)
            idx[a] = 0;
    }
}

static gboolean nearest_run(HnStep *s, GError **error)
{
    (void)error;
    const Nearest *p = s->state;
    char *y = hn_cpu_data(&s->out[0]);
    const char *x = hn_cpu_data(&s->in[0]);
    const int64_t rows = hn_span(p->out, 0, p->ndim);
    if (p->threads == 1) {
        nearest_rows(p, y, x, 0, rows);
        return TRUE;
    }
#pragma omp parallel for num_threads(p->threads)
    for (int k = 0; k < p->threads; k++)
        nearest_rows(p, y, x, rows * k / p->threads, rows * (k + 1) / p->threads);
    return TRUE;
}

static void nearest_release(HnStep *s)
{
    Nearest *p = s->state;
    if (p != NULL)
        hn_budget_free(s->budget, p->tables);
    g_clear_pointer(&s->state, g_free);
}

static const HnKernel resize_nearest = {
    .name = "cpu.resize_nearest",
    .reject = nearest_reject,
    .prepare = nearest_prepare,
    .run = nearest_run,
    .release = nearest_release,
};

/* --- means ------------------------------------------------------------------------------------------------------- */

#define STRIP 1024 /* elements of a row that are summed up before the next ones */

typedef struct {
    HnResizeMeans m;
    int threads;
    gboolean by_rows; /* threads share the rows of each pass, for want of pieces */
} Means;

static const char *back_reject(const HnStep *s)
{
    return hn_cpu_in(s, 0)->dtype != HN_F32 ? "only f32" : hn_resize_means_reject(s, is_last(s));
}

static const char *means_reject(const HnStep *s)
{
    const HnResize *p = s->params;
    return p->mode == HN_RESIZE_NEAREST ? "no mean" : back_reject(s);
}

static gboolean means_prepare(HnStep *s, GError **error)
{
    Means *m = g_new0(Means, 1);
    s->state = m;
    if (!hn_resize_means_init(&m->m, s, is_last(s), error))
        return FALSE;
    m->threads = hn_cpu_threads_for(s, 8.0 * (double)MAX(m->m.from, m->m.to) * (double)m->m.pieces);
    m->by_rows = m->threads > m->m.pieces;
    keep_layout(s);
    s->scratch_bytes = (gsize)(m->by_rows ? 1 : m->threads) * 2 * (gsize)m->m.between * sizeof(float);
    return TRUE;
}

#define FEW_TAPS 4
#define ROWS 4 /* side by side along the last axis, so that places and weights are read once */

/* Along the last axis, `rows` of them: elements one by one. */
static inline void along_rows(const HnResizePass *p, float *restrict y, const float *restrict x, int rows)
{
    const int64_t in = p->in, out = p->out;
    for (int64_t i = 0; i < out; i++) {
        const int64_t k = p->first[i], end = p->first[i + 1];
        float sum[ROWS] = { 0 };
        if (end - k == 2) {
            const float *a = x + p->at[k], *b = x + p->at[k + 1], wa = p->weight[k], wb = p->weight[k + 1];
            for (int r = 0; r < rows; r++)
                y[r * out + i] = a[r * in] * wa + b[r * in] * wb;
            continue;
        }
        for (int64_t t = k; t < end; t++)
            for (int r = 0; r < rows; r++)
                sum[r] += x[r * in + p->at[t]] * p->weight[t];
        for (int r = 0; r < rows; r++)
            y[r * out + i] = sum[r];
    }
}

static void pass_along(const HnResizePass *p, float *restrict y, const float *restrict x, int64_t lo, int64_t hi)
{
    int64_t o = lo;
    for (; o + ROWS <= hi; o += ROWS)
        along_rows(p, y + o * p->out, x + o * p->in, ROWS);
    for (; o < hi; o++)
        along_rows(p, y + o * p->out, x + o * p->in, 1);
}

/* A row of few taps from k on, all of them at once. */
static inline void mix_row(const HnResizePass *p, float *restrict y, const float *restrict x, int64_t k, int taps)
{
    const float *from[FEW_TAPS], *w = p->weight + k;
    for (int t = 0; t < taps; t++)
        from[t] = x + p->at[k + t] * p->inner;
    for (int64_t j = 0; j < p->inner; j++) {
        float sum = from[0][j] * w[0];
        for (int t = 1; t < taps; t++)
            sum += from[t][j] * w[t];
        y[j] = sum;
    }
}

#define DEFINE_MIX(taps)                                                                                \
    static void mix##taps(const HnResizePass *p, float *restrict y, const float *restrict x, int64_t k) \
    {                                                                                                   \
        mix_row(p, y, x, k, taps);                                                                      \
    }
DEFINE_MIX(2)
DEFINE_MIX(3)
DEFINE_MIX(4)

/* Along another one: whole rows, [lo, hi) of outer * out. */
static void pass_across(const HnResizePass *p, float *restrict to, const float *restrict from, int64_t lo, int64_t hi)
{
    for (int64_t r = lo; r < hi; r++) {
        const int64_t o = r / p->out, i = r % p->out, k = p->first[i], end = p->first[i + 1];
        const float *restrict x = from + o * p->in * p->inner;
        float *restrict y = to + r * p->inner;
        if (end - k >= 2 && end - k <= FEW_TAPS) {
            (end - k == 2 ? mix2 : end - k == 3 ? mix3 : mix4)(p, y, x, k);
            continue;
        }
        if (end == k)
            memset(y, 0, (size_t)p->inner * sizeof *y);
        for (int64_t j = 0; j < p->inner; j += STRIP) {
            const int64_t e = MIN(j + STRIP, p->inner);
            for (int64_t t = k; t < end; t++) {
                const float *restrict a = x + p->at[t] * p->inner, w = p->weight[t];
                for (int64_t q = j; q < e; q++)
                    y[q] = t == k ? a[q] * w : y[q] + a[q] * w;
            }
        }
    }
}

/* Part k of n of a pass. */
static void pass_part(const HnResizePass *p, float *y, const float *x, int k, int n)
{
    const int64_t rows = p->inner == 1 ? p->outer : p->outer * p->out;
    (p->inner == 1 ? pass_along : pass_across)(p, y, x, rows * k / n, rows * (k + 1) / n);
}

static void pass_run(const Means *m, const HnResizePass *p, float *y, const float *x)
{
    if (!m->by_rows) {
        pass_part(p, y, x, 0, 1);
        return;
    }
#pragma omp parallel for num_threads(m->threads)
    for (int k = 0; k < m->threads; k++)
        pass_part(p, y, x, k, m->threads);
}

static void means_piece(const Means *m, float *y, const float *x, float *scratch)
{
    for (int i = 0; i < m->m.n; i++) {
        float *to = i == m->m.n - 1 ? y : scratch + (i % 2) * m->m.between;
        pass_run(m, &m->m.pass[i], to, x);
        x = to;
    }
    if (m->m.n == 0)
        memcpy(y, x, (size_t)m->m.to * sizeof *y);
}

static gboolean means_run(HnStep *s, GError **error)
{
    (void)error;
    const Means *m = s->state;
    float *y = hn_cpu_data(&s->out[0]), *scratch = s->scratch;
    const float *x = hn_cpu_data(&s->in[hn_resize_source(s)]);
    if (m->threads == 1 || m->by_rows) {
        for (int64_t i = 0; i < m->m.pieces; i++)
            means_piece(m, y + i * m->m.to, x + i * m->m.from, scratch);
        return TRUE;
    }
#pragma omp parallel for num_threads(m->threads)
    for (int k = 0; k < m->threads; k++)
        for (int64_t i = m->m.pieces * k / m->threads; i < m->m.pieces * (k + 1) / m->threads; i++)
            means_piece(m, y + i * m->m.to, x + i * m->m.from, scratch + 2 * k * m->m.between);
    return TRUE;
}

static void means_release(HnStep *s)
{
    Means *m = s->state;
    if (m != NULL)
        hn_resize_means_clear(&m->m, s);
    g_clear_pointer(&s->state, g_free);
}

static const HnKernel resize_means = {
    .name = "cpu.resize",
    .reject = means_reject,
    .prepare = means_prepare,
    .run = means_run,
    .release = means_release,
};

static const HnKernel resize_back = {
    .name = "cpu.resize_back",
    .reject = back_reject,
    .prepare = means_prepare,
    .run = means_run,
    .release = means_release,
};

const HnKernel *const hn_cpu_resize[] = { &resize_nearest, &resize_means, NULL };
const HnKernel *const hn_cpu_upsample[] = { &resize_nearest, &resize_means, NULL };
const HnKernel *const hn_cpu_resizegrad[] = { &resize_back, NULL };
