/*
 * Attention of f32: per key head, keys are transposed into panels of 16; then for up to eight queries of its query
 * heads products, softmax and the sum of values. Keys behind the causal frontier of these queries are not looked at.
 */
#include <math.h>
#include <string.h>

#include "cpu/gemm/attention_rows.h"
#include "cpu/gemm/rnn_cell.h"
#include "cpu/core/cpu_kernel.h"
#include "op/index.h"
#include "run/attention_forms.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, NONPAD };
enum { Y, PRESENT_K, PRESENT_V, QK };

typedef struct {
    HnAttentionForm q, k, v, y;
    int64_t past, total, panels, columns; /* panels of 16 keys; columns: of values, rounded up to 16 */
    float scale;
    gboolean causal, packed_values;
    int64_t mask_strides[4];
    int64_t task_floats; /* scratch of a thread */
    int threads;
    const HnRnnCellOps *ops;
} Attention;

static const char *measure(const HnStep *s, Attention *c)
{
    const HnAttention *p = s->params;
    HnAttentionForm f[4];
    if (hn_cpu_in(s, Q)->ndim != hn_cpu_in(s, K)->ndim || hn_cpu_in(s, Q)->ndim != hn_cpu_in(s, V)->ndim)
        return "queries, keys and values are not of one rank";
    const char *reason = hn_attention_forms(s, f, &c->past);
    if (reason != NULL)
        return reason;
    c->q = f[Q];
    c->k = f[K];
    c->v = f[V];
    c->y = f[3];
    c->total = c->past + c->k.length;
    const HnTensor *m = hn_cpu_in(s, MASK);
    const int64_t want[4] = { c->q.batch, c->q.heads, c->q.length, c->total };
    for (int i = 0; m != NULL && i < m->ndim; i++)
        if (m->ndim > 4 ||
            (m->dims[i] != want[i + 4 - m->ndim] && (m->dims[i] != 1 || (i == m->ndim - 1 && p->short_mask))))
            return "a mask that is shorter than the keys";
    if (m != NULL)
        hn_broadcast_strides(m, 4, c->mask_strides);
    c->panels = (c->total + HN_RNN_CELL - 1) / HN_RNN_CELL;
    c->columns = (c->v.size + HN_RNN_CELL - 1) / HN_RNN_CELL * HN_RNN_CELL;
    c->packed_values = c->past > 0 || c->columns != c->v.size;
    c->scale = isnan(p->scale) ? (float)(1 / sqrt((double)c->q.size)) : (float)p->scale;
    c->causal = p->causal;
    c->task_floats = c->panels * HN_RNN_CELL * (c->q.size + HN_RNN_CELL_ROWS) + HN_RNN_CELL_ROWS * c->columns +
                     (c->packed_values ? c->total * c->columns : 0);
    return NULL;
}

static const char *attention_reject(const HnStep *s)
{
    const HnAttention *p = s->params;
    Attention c = { 0 };
    const HnTensor *m = hn_cpu_in(s, MASK);
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnSlot *slot = i < s->n_in ? s->in[i].slot : s->out[i - s->n_in].slot;
        if (slot == NULL || i == MASK || i == NONPAD)
            continue;
        if (slot->tensor->dtype != HN_F32)
            return "only f32";
        if (slot->tensor->n == 0)
            return "nothing to compute";
    }
    if (m != NULL && m->dtype != HN_BOOL && m->dtype != HN_F32)
        return "a mask that is neither bool nor f32";
    if (hn_cpu_in(s, NONPAD) != NULL || p->left >= 0 || p->right >= 0)
        return "a window, or lengths of the cache";
    if (p->softcap > 0 || !hn_cpu_wants_only(s, QK))
        return "softcap, or the products as an output";
    return measure(s, &c);
}

static gboolean attention_prepare(HnStep *s, GError **error)
{
    (void)error;
    Attention *c = g_new0(Attention, 1);
    s->state = c;
    measure(s, c);
    c->ops = hn_rnn_cell_ops();
    const double flops = 2 * (double)c->q.batch * (double)c->q.heads * (double)c->q.length * (double)c->total *
                         (double)(c->q.size + c->v.size);
    c->threads = (int)MIN((int64_t)hn_cpu_threads_for(s, flops), c->q.batch * c->k.heads);
    s->scratch_bytes = (gsize)(c->threads * c->task_floats) * sizeof(float);
    return TRUE;
}

/* Key or value t of head h of sample b. */
static const float *token(const HnStep *s, int input, const HnAttentionForm *f, int64_t past, int64_t b, int64_t h,
                          int64_t t)
{
    if (t < past)
        return (const float *)hn_cpu_data(&s->in[input - K + PAST_K]) + ((b * f->heads + h) * past + t) * f->size;
    return (const float *)hn_cpu_data(&s->in[input]) + b * f->s_batch + h * f->s_head + (t - past) * f->s_token;
}

/* The cache for the next run. */
static void store_present(const HnStep *s, int out, int input, const HnAttentionForm *f, const Attention *c, int64_t b,
                          int64_t h)
{
    if (out >= s->n_out || s->out[out].slot == NULL)
        return;
    float *to = (float *)hn_cpu_data(&s->out[out]) + (b * f->heads + h) * c->total * f->size;
    for (int64_t t = 0; t < c->total; t++, to += f->size)
        memcpy(to, token(s, input, f, c->past, b, h, t), (gsize)f->size * sizeof(float));
}

/* [panels][size][16] */
static void pack_keys(const HnStep *s, const Attention *c, int64_t b, int64_t h, float *to)
{
    for (int64_t t = 0; t < c->total; t += HN_RNN_CELL) {
        const int n = (int)MIN(c->total - t, HN_RNN_CELL);
        const float *from[HN_RNN_CELL];
        for (int j = 0; j < HN_RNN_CELL; j++) /* behind the last one: any, its products are not looked at */
            from[j] = token(s, K, &c->k, c->past, b, h, t + MIN(j, n - 1));
        for (int64_t i = 0; i < c->k.size; i++, to += HN_RNN_CELL)
            for (int j = 0; j < HN_RNN_CELL; j++)
                to[j] = from[j][i];
    }
}

static void pack_values(const HnStep *s, const Attention *c, int64_t b, int64_t h, float *to)
{
    for (int64_t t = 0; t < c->total; t++, to += c->columns) {
        memcpy(to, token(s, V, &c->v, c->past, b, h, t), (gsize)c->v.size * sizeof(float));
        memset(to + c->v.size, 0, (gsize)(c->columns - c->v.size) * sizeof(float));
    }
}

/* Scale and mask of one query's products with the first n keys. */
static void bias_row(const HnStep *s, const Attention *c, float *row, int64_t b, int64_t h, int64_t i, int64_t n)
{
    const HnTensor *m = hn_cpu_in(s, MASK);
    const int64_t *step = c->mask_strides, at = b * step[0] + h * step[1] + i * step[2];
    const int64_t seen = c->causal ? MIN(n, c->past + i + 1) : n;
    for (int64_t k = 0; k < n; k++)
        row[k] *= c->scale;
    if (m != NULL && m->dtype == HN_BOOL) {
        const uint8_t *bit = (const uint8_t *)m->data + at;
        for (int64_t k = 0; k < seen; k++)
            row[k] = bit[k * step[3]] ? row[k] : -INFINITY;
    } else if (m != NULL) {
        const float *add = (const float *)m->data + at;
        for (int64_t k = 0; k < seen; k++)
            row[k] = add[k * step[3]] == -INFINITY ? -INFINITY : row[k] + add[k * step[3]];
    }
    for (int64_t k = seen; k < n; k++)
        row[k] = -INFINITY;
}

/* Queries first .. first + n - 1 of one head; n at most HN_RNN_CELL_ROWS. */
static void run_queries(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t first, int n,
                        const float *keys, const float *values, int64_t step, float *scratch)
{
    const int64_t wide = c->panels * HN_RNN_CELL;
    const int64_t seen = c->causal ? MIN(c->total, c->past + first + n) : c->total;
    const float *q = (const float *)hn_cpu_data(&s->in[Q]) + b * c->q.s_batch + h * c->q.s_head + first * c->q.s_token;
    float *y = (float *)hn_cpu_data(&s->out[Y]) + b * c->y.s_batch + h * c->y.s_head + first * c->y.s_token;
    float *sums = scratch, *mixed = scratch + HN_RNN_CELL_ROWS * wide, *to[HN_RNN_CELL_ROWS];
    const float *rows[HN_RNN_CELL_ROWS];
    memset(sums, 0, (gsize)(n * wide) * sizeof(float));
    memset(mixed, 0, (gsize)(n * c->columns) * sizeof(float));
    for (int64_t k = 0; k < seen; k += HN_RNN_CELL) {
        for (int r = 0; r < n; r++) {
            rows[r] = q + r * c->q.s_token;
            to[r] = sums + r * wide + k;
        }
        c->ops->rows(to, rows, n, keys + k * c->k.size, HN_RNN_CELL, c->k.size);
    }
    for (int r = 0; r < n; r++) {
        rows[r] = sums + r * wide;
        bias_row(s, c, sums + r * wide, b, h, first + r, seen);
        c->ops->softmax(sums + r * wide, seen);
    }
    for (int64_t k = 0; k < c->columns; k += HN_RNN_CELL) {
        for (int r = 0; r < n; r++)
            to[r] = mixed + r * c->columns + k;
        c->ops->rows(to, rows, n, values + k, step, seen);
    }
    for (int r = 0; r < n; r++)
        memcpy(y + r * c->y.s_token, mixed + r * c->columns, (gsize)c->v.size * sizeof(float));
}

/* All query heads of one key head. */
static void run_task(const HnStep *s, const Attention *c, int64_t task, float *scratch)
{
    const int64_t b = task / c->k.heads, g = task % c->k.heads, share = c->q.heads / c->k.heads;
    float *keys = scratch, *rest = keys + c->panels * HN_RNN_CELL * c->k.size;
    float *packed = rest + HN_RNN_CELL_ROWS * (c->panels * HN_RNN_CELL + c->columns);
    const float *values = packed;
    store_present(s, PRESENT_K, K, &c->k, c, b, g);
    store_present(s, PRESENT_V, V, &c->v, c, b, g);
    pack_keys(s, c, b, g, keys);
    if (c->packed_values)
        pack_values(s, c, b, g, packed);
    else
        values = token(s, V, &c->v, 0, b, g, 0);
    for (int64_t h = g * share; h < (g + 1) * share; h++)
        for (int64_t i = 0; i < c->q.length; i += HN_RNN_CELL_ROWS)
            run_queries(s, c, b, h, i, (int)MIN(c->q.length - i, HN_RNN_CELL_ROWS), keys, values,
                        c->packed_values ? c->columns : c->v.s_token, rest);
}

static void run_tasks(gpointer step, int thread, int64_t from, int64_t to)
{
    const HnStep *s = step;
    const Attention *c = s->state;
    for (int64_t task = from; task < to; task++)
        run_task(s, c, task, (float *)s->scratch + thread * c->task_floats);
}

static gboolean attention_run(HnStep *s, GError **error)
{
    (void)error;
    const Attention *c = s->state;
    hn_parallel_for(c->q.batch * c->k.heads, c->threads, run_tasks, s);
    return TRUE;
}

static const HnKernel attention_kernel = {
    .name = "cpu.attention",
    .reject = attention_reject,
    .prepare = attention_prepare,
    .run = attention_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_attention[] = { &hn_cpu_attention_rows, &attention_kernel, NULL };
