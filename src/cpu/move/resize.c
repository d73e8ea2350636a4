/*
 * Resize and Upsample with sizes that are known ahead. Nearest moves elements of any size by tables of indices; means
 * (linear, cubic) of f32 go axis by axis through scratch memory, one piece of the axes in front at a time. Their
 * gradient, and that of nearest, is the same with transposed weights: each element of the source gathers what it gave.
 */
#include "op/resize.h"

#include <string.h>

#include "cpu/core/strided_copy.h"
#include "op/index.h"
#include "op/types.h"

#define SIZES 4 /* inputs of Resize; of ResizeGrad, too, whose next one is the gradient */

/* The input that is read: of n_in, Resize's first, ResizeGrad's last. */
static int source_of(const HnStep *s)
{
    return s->n_in > SIZES ? SIZES : 0;
}

static gboolean is_last(const HnStep *s)
{
    return hn_layout_is_last(s->in[source_of(s)].slot->layout);
}

/* Every element is its own result. By nearest_mode the nearest one may be the one beside it, as the ends tell. */
static gboolean stays(const HnResize *p, const HnResizeAxis *a)
{
    return a->in == a->out && a->scale == 1 &&
           (p->mode != HN_RESIZE_NEAREST ||
            (hn_resize_nearest(p, a, 0) == 0 && hn_resize_nearest(p, a, a->in - 1) == a->in - 1));
}

/* The step's numbers, axes in the order of memory. Those that stay as they are next to each other count as one. */
static const char *axes_of(const HnStep *s, int *n, HnResizeAxis *axis)
{
    const HnResize *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *y = source_of(s) == 0 ? s->out[0].slot->tensor : hn_cpu_in(s, SIZES);
    HnTensor *in[SIZES] = { NULL };
    HnResizeAxis all[HN_MAX_RANK];
    const int n_in = MIN(s->n_in, SIZES);
    if (y->n == 0 || x->n == 0 || x->ndim == 0 || y->ndim != x->ndim)
        return "nothing to compute";
    if (p->place == HN_RESIZE_CROP)
        return "cropped inputs";
    for (int i = 1; i < n_in; i++)
        if (hn_copy_varies(s, i))
            return "sizes that are known only at run time";
    for (int i = 0; i < n_in; i++)
        in[i] = s->in[i].slot != NULL ? s->in[i].slot->tensor : NULL;
    HnEval e = { .node = s->node, .params = p, .n_in = n_in, .in = in };
    gboolean known = hn_resize_axes(&e, all);
    g_clear_error(&e.error);
    for (int a = 0; known && a < x->ndim; a++)
        known = all[a].in == x->dims[a] && all[a].out == y->dims[a];
    if (!known)
        return "sizes that do not fit";
    if (is_last(s)) {
        const HnResizeAxis channels = all[1];
        memmove(all + 1, all + 2, (gsize)(x->ndim - 2) * sizeof *all);
        all[x->ndim - 1] = channels;
    }
    gboolean before = FALSE; /* the axis before stays */
    *n = 0;
    for (int a = 0; a < x->ndim; a++) {
        const gboolean same = stays(p, &all[a]);
        if (same && before) {
            axis[*n - 1].in *= all[a].in;
            axis[*n - 1].out *= all[a].in;
            axis[*n - 1].length = (double)axis[*n - 1].out;
        } else {
            axis[(*n)++] = all[a];
        }
        before = same;
    }
    return NULL;
}

/* Tables grow with the output, which a file may make as large as it likes. */
static gpointer table_of(const HnStep *s, int64_t n, gsize size, GError **error)
{
    gpointer table = hn_budget_alloc_n(s->budget, (gsize)n, size, error);
    if (table == NULL)
        g_prefix_error(error, "node '%s': ", hn_node_label(s->node));
    return table;
}

static void keep_layout(HnStep *s)
{
    s->in[source_of(s)].any = is_last(s);
    for (int i = 0; i < s->n_in; i++)
        s->in[i].unread = i != source_of(s);
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
    return reason != NULL ? reason : axes_of(s, &n, axis);
}

static gboolean nearest_prepare(HnStep *s, GError **error)
{
    HnResizeAxis axis[HN_MAX_RANK];
    int n;
    int64_t total = 0, at = 0;
    Nearest *p = g_new0(Nearest, 1);
    s->state = p;
    (void)axes_of(s, &n, axis);
    for (int a = 0; a < n; a++)
        total += axis[a].out;
    if ((p->tables = table_of(s, total, sizeof *p->tables, error)) == NULL)
        return FALSE;
    p->size = p->run = hn_dtype_size(hn_cpu_in(s, 0)->dtype);
    p->n = 1;
    p->threads = hn_cpu_threads_for(s, 0);
    if (stays(s->params, &axis[n - 1]))
        p->run *= (size_t)axis[--n].in;
    int64_t stride = (int64_t)p->run;
    for (int a = n - 1; a >= 0; a--) {
        int64_t *table = p->tables + at;
        at += axis[a].out;
        for (int64_t y = 0; y < axis[a].out; y++)
            table[y] = stays(s->params, &axis[a]) ? y : hn_resize_nearest(s->params, &axis[a], y);
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

#define MAX_TAPS 64
#define MOST_BETWEEN ((int64_t)1 << 40) /* elements when each axis has the larger of its two sizes */
#define STRIP 1024                      /* elements of a row that are summed up before the next ones */

/* One axis: output y is the sum over its taps of weight[first[y]...] * element at[first[y]...]; weights of 0 are left
 * out. */
typedef struct {
    int64_t in, out, outer, inner;
    int64_t *first; /* [out + 1] */
    int64_t *at;
    float *weight;
} Pass;

typedef struct {
    int64_t pieces, from, to; /* elements of a piece in source and output */
    int n;
    int64_t between; /* elements of the largest result between two passes */
    int threads;
    gboolean by_rows; /* threads share the rows of each pass, for want of pieces */
    Pass pass[HN_MAX_RANK];
} Means;

/* Elements that one is a mean of. */
static int64_t taps_of(const HnResize *p, const HnResizeAxis *a)
{
    return p->mode == HN_RESIZE_NEAREST ? 1 : hn_resize_taps(p, a);
}

static void weights_of(const HnResize *p, const HnResizeAxis *a, int64_t y, int64_t *first, double *w)
{
    w[0] = 1;
    if (p->mode == HN_RESIZE_NEAREST)
        *first = hn_resize_nearest(p, a, y);
    else
        (void)hn_resize_weights(p, a, y, first, w);
}

static const char *back_reject(const HnStep *s)
{
    const HnResize *p = s->params;
    HnResizeAxis axis[HN_MAX_RANK];
    int64_t most[HN_MAX_RANK], elements;
    int n;
    if (hn_cpu_in(s, 0)->dtype != HN_F32)
        return "only f32";
    const char *reason = axes_of(s, &n, axis);
    for (int a = 0; reason == NULL && a < n; a++) {
        const int64_t taps = taps_of(p, &axis[a]);
        if (taps < 0 || taps > MAX_TAPS)
            reason = "means of too many elements";
        most[a] = MAX(axis[a].in, axis[a].out);
    }
    if (reason == NULL && (!hn_dims_count(n, most, &elements) || elements > MOST_BETWEEN))
        reason = "too large between two axes";
    return reason;
}

static const char *means_reject(const HnStep *s)
{
    const HnResize *p = s->params;
    return p->mode == HN_RESIZE_NEAREST ? "no mean" : back_reject(s);
}

/* The transpose of the weights: what each element of the source is part of, in the order of the results. */
static void transpose_weights(Pass *p, const HnResize *r, const HnResizeAxis *a)
{
    const int64_t taps = taps_of(r, a);
    double w[MAX_TAPS];
    int64_t first;
    memset(p->first, 0, (size_t)(a->in + 1) * sizeof *p->first);
    for (int fill = 0; fill < 2; fill++) {
        for (int64_t y = 0; y < a->out; y++) {
            weights_of(r, a, y, &first, w);
            for (int64_t k = 0; k < taps; k++) {
                const int64_t i = CLAMP(first + k, 0, a->in - 1);
                if (w[k] == 0)
                    continue;
                if (fill == 1) {
                    p->at[p->first[i]] = y;
                    p->weight[p->first[i]] = (float)w[k];
                }
                p->first[i]++;
            }
        }
        int64_t sum = 0; /* counts become beginnings, and ends those of the elements behind */
        for (int64_t i = 0; i <= a->in; i++) {
            const int64_t n = p->first[i];
            p->first[i] = sum;
            sum = fill == 0 ? sum + n : n;
        }
    }
}

static gboolean pass_init(Pass *p, const HnStep *s, const HnResizeAxis *a, int64_t outer, int64_t inner, GError **error)
{
    const HnResize *r = s->params;
    const int64_t taps = taps_of(r, a);
    const gboolean back = source_of(s) != 0;
    double w[MAX_TAPS];
    int64_t n = 0, first;
    *p = (Pass){ .in = back ? a->out : a->in, .out = back ? a->in : a->out, .outer = outer, .inner = inner };
    if ((p->first = table_of(s, p->out + 1, sizeof *p->first, error)) == NULL ||
        (p->at = table_of(s, a->out * taps, sizeof *p->at, error)) == NULL ||
        (p->weight = table_of(s, a->out * taps, sizeof *p->weight, error)) == NULL)
        return FALSE;
    if (back) {
        transpose_weights(p, r, a);
        return TRUE;
    }
    for (int64_t y = 0; y < a->out; y++) {
        p->first[y] = n;
        (void)hn_resize_weights(r, a, y, &first, w);
        for (int64_t k = 0; k < taps; k++)
            if (w[k] != 0) {
                p->at[n] = CLAMP(first + k, 0, a->in - 1);
                p->weight[n++] = (float)w[k];
            }
    }
    p->first[a->out] = n;
    return TRUE;
}

static gboolean means_prepare(HnStep *s, GError **error)
{
    HnResizeAxis axis[HN_MAX_RANK];
    int n, first;
    int64_t dims[HN_MAX_RANK];
    Means *m = g_new0(Means, 1);
    s->state = m;
    (void)axes_of(s, &n, axis);
    const gboolean back = source_of(s) != 0;
    first = stays(s->params, &axis[0]) ? 1 : 0;
    m->pieces = first == 1 ? axis[0].in : 1;
    m->from = hn_cpu_in(s, source_of(s))->n / m->pieces;
    m->to = s->out[0].slot->tensor->n / m->pieces;
    for (int a = 0; a < n; a++)
        dims[a] = back ? axis[a].out : axis[a].in;
    for (int k = first; k < n; k++) { /* where things grow, the last axis first: fewer rows to pick elements from */
        const int a = m->to >= m->from ? n - 1 - (k - first) : k;
        if (stays(s->params, &axis[a]))
            continue;
        if (m->n > 0) /* what the pass before gives */
            m->between = MAX(m->between, hn_span(dims, first, n));
        if (!pass_init(&m->pass[m->n++], s, &axis[a], hn_span(dims, first, a), hn_span(dims, a + 1, n), error))
            return FALSE;
        dims[a] = back ? axis[a].in : axis[a].out;
    }
    m->threads = hn_cpu_threads_for(s, 8.0 * (double)MAX(m->from, m->to) * (double)m->pieces);
    m->by_rows = m->threads > m->pieces;
    keep_layout(s);
    s->scratch_bytes = (gsize)(m->by_rows ? 1 : m->threads) * 2 * (gsize)m->between * sizeof(float);
    return TRUE;
}

#define FEW_TAPS 4
#define ROWS 4 /* side by side along the last axis, so that places and weights are read once */

/* Along the last axis, `rows` of them: elements one by one. */
static inline void along_rows(const Pass *p, float *restrict y, const float *restrict x, int rows)
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

static void pass_along(const Pass *p, float *restrict y, const float *restrict x, int64_t lo, int64_t hi)
{
    int64_t o = lo;
    for (; o + ROWS <= hi; o += ROWS)
        along_rows(p, y + o * p->out, x + o * p->in, ROWS);
    for (; o < hi; o++)
        along_rows(p, y + o * p->out, x + o * p->in, 1);
}

/* A row of few taps from k on, all of them at once. */
static inline void mix_row(const Pass *p, float *restrict y, const float *restrict x, int64_t k, int taps)
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

#define DEFINE_MIX(taps)                                                                        \
    static void mix##taps(const Pass *p, float *restrict y, const float *restrict x, int64_t k) \
    {                                                                                           \
        mix_row(p, y, x, k, taps);                                                              \
    }
DEFINE_MIX(2)
DEFINE_MIX(3)
DEFINE_MIX(4)

/* Along another one: whole rows, [lo, hi) of outer * out. */
static void pass_across(const Pass *p, float *restrict to, const float *restrict from, int64_t lo, int64_t hi)
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
static void pass_part(const Pass *p, float *y, const float *x, int k, int n)
{
    const int64_t rows = p->inner == 1 ? p->outer : p->outer * p->out;
    (p->inner == 1 ? pass_along : pass_across)(p, y, x, rows * k / n, rows * (k + 1) / n);
}

static void pass_run(const Means *m, const Pass *p, float *y, const float *x)
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
    for (int i = 0; i < m->n; i++) {
        float *to = i == m->n - 1 ? y : scratch + (i % 2) * m->between;
        pass_run(m, &m->pass[i], to, x);
        x = to;
    }
    if (m->n == 0)
        memcpy(y, x, (size_t)m->to * sizeof *y);
}

static gboolean means_run(HnStep *s, GError **error)
{
    (void)error;
    const Means *m = s->state;
    float *y = hn_cpu_data(&s->out[0]), *scratch = s->scratch;
    const float *x = hn_cpu_data(&s->in[source_of(s)]);
    if (m->threads == 1 || m->by_rows) {
        for (int64_t i = 0; i < m->pieces; i++)
            means_piece(m, y + i * m->to, x + i * m->from, scratch);
        return TRUE;
    }
#pragma omp parallel for num_threads(m->threads)
    for (int k = 0; k < m->threads; k++)
        for (int64_t i = m->pieces * k / m->threads; i < m->pieces * (k + 1) / m->threads; i++)
            means_piece(m, y + i * m->to, x + i * m->from, scratch + 2 * k * m->between);
    return TRUE;
}

static void means_release(HnStep *s)
{
    Means *m = s->state;
    for (int i = 0; m != NULL && i < m->n; i++) {
        hn_budget_free(s->budget, m->pass[i].first);
        hn_budget_free(s->budget, m->pass[i].at);
        hn_budget_free(s->budget, m->pass[i].weight);
    }
    g_free(m);
    s->state = NULL;
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
