/*
 * Attention of a few queries, as a decoder with a cache has in each step: keys and values are read where they lie, once
 * for each query, and nothing is packed. Keys at the end that the mask leaves out, the unused part of a cache of fixed
 * size, are not read at all.
 */
#include <math.h>
#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/gemm/rnn_cell.h"
#include "op/index.h"
#include "run/attention_forms.h"

#define HN_LOOPS "cpu/gemm/attention_rows_loops.h"
#include "base/every_level.h"

#define FEW 4 /* queries, from which on packed keys pay */

enum { Q, K, V, MASK, PAST_K, PAST_V, NONPAD };
enum { Y, PRESENT_K, PRESENT_V, QK };

typedef void (*RowsFn)(float *to, const float *row, const float *x, int64_t step, int64_t n, int64_t size);

typedef struct {
    RowsFn scores, mix;
} Fns;

typedef struct {
    HnAttentionForm q, k, v, y;
    float scale;
    int64_t mask_strides[4], wide; /* floats of scratch memory of a thread */
    int threads;
    Fns fns;
    const HnRnnCellOps *ops;
} Rows;

static gboolean mask_fits(const HnTensor *m, const Rows *c)
{
    const int64_t want[4] = { c->q.batch, c->q.heads, c->q.length, c->k.length };
    if (m == NULL)
        return TRUE;
    if ((m->dtype != HN_F32 && m->dtype != HN_BOOL) || m->ndim > 4 || m->ndim < 1 ||
        m->dims[m->ndim - 1] != c->k.length)
        return FALSE;
    for (int i = 0; i < m->ndim; i++)
        if (m->dims[i] != 1 && m->dims[i] != want[i + 4 - m->ndim])
            return FALSE;
    return TRUE;
}

static const char *measure(const HnStep *s, Rows *c)
{
    HnAttentionForm f[4];
    int64_t past;
    const char *reason = hn_attention_forms(s, f, &past);
    if (reason != NULL)
        return reason;
    c->q = f[Q];
    c->k = f[K];
    c->v = f[V];
    c->y = f[3];
    if (c->q.length > FEW || c->q.length >= c->k.length)
        return "many queries";
    return mask_fits(hn_cpu_in(s, MASK), c) ? NULL : "a mask of another shape or type";
}

static const char *rows_reject(const HnStep *s)
{
    const HnAttention *p = s->params;
    Rows c = { 0 };
    for (int i = 0; i < s->n_in; i++)
        if (i > MASK && s->in[i].slot != NULL)
            return "a cache, or its lengths";
    for (int i = 0; i <= V; i++)
        if (hn_cpu_in(s, i)->dtype != HN_F32 || hn_cpu_in(s, i)->n == 0)
            return "only f32, and not of no elements";
    if (p->causal || p->left >= 0 || p->right >= 0 || p->softcap > 0 || !hn_cpu_wants_only(s, PRESENT_K))
        return "causal, a window, softcap, or other outputs";
    return measure(s, &c);
}

static gboolean rows_prepare(HnStep *s, GError **error)
{
    static const Fns fns[HN_LEVELS] = { { scores_plain, mix_plain },
                                        { scores_avx2, mix_avx2 },
                                        { scores_avx512, mix_avx512 } };
    (void)error;
    const HnAttention *p = s->params;
    Rows *c = g_new0(Rows, 1);
    s->state = c;
    measure(s, c);
    if (hn_cpu_in(s, MASK) != NULL)
        hn_broadcast_strides(hn_cpu_in(s, MASK), 4, c->mask_strides);
    c->scale = isnan(p->scale) ? (float)(1 / sqrt((double)c->q.size)) : (float)p->scale;
    c->fns = fns[hn_cpu_level()];
    c->ops = hn_rnn_cell_ops();
    const double flops = 2 * (double)c->q.batch * (double)c->q.heads * (double)c->q.length * (double)c->k.length *
                         (double)(c->q.size + c->v.size);
    c->threads = (int)MIN((int64_t)hn_cpu_threads_for(s, flops), c->q.batch * c->k.heads);
    c->wide = (c->k.length + c->q.size + HN_RNN_CELL) / HN_RNN_CELL * HN_RNN_CELL;
    s->scratch_bytes = (gsize)(c->threads * c->wide) * sizeof(float);
    return TRUE;
}

/* Keys in front of those at the end that the mask leaves out. */
static int64_t seen_of(const HnTensor *m, int64_t at, int64_t n)
{
    if (m == NULL)
        return n;
    if (m->dtype == HN_BOOL)
        for (const uint8_t *bit = (const uint8_t *)m->data + at; n > 0 && !bit[n - 1];)
            n--;
    else
        for (const float *add = (const float *)m->data + at; n > 0 && add[n - 1] == -INFINITY;)
            n--;
    return n;
}

static void add_mask(float *row, const HnTensor *m, int64_t at, int64_t n)
{
    if (m != NULL && m->dtype == HN_BOOL) {
        const uint8_t *bit = (const uint8_t *)m->data + at;
        for (int64_t t = 0; t < n; t++)
            row[t] = bit[t] ? row[t] : -INFINITY;
    } else if (m != NULL) {
        const float *add = (const float *)m->data + at;
        for (int64_t t = 0; t < n; t++)
            row[t] = add[t] == -INFINITY ? -INFINITY : row[t] + add[t];
    }
}

/* Query i of head h of sample b. */
static void run_query(const HnStep *s, const Rows *c, int64_t b, int64_t h, int64_t i, float *row)
{
    const HnTensor *m = hn_cpu_in(s, MASK);
    const int64_t *step = c->mask_strides, at = b * step[0] + h * step[1] + i * step[2];
    const int64_t g = h / (c->q.heads / c->k.heads), seen = seen_of(m, at, c->k.length);
    const float *q = (const float *)hn_cpu_data(&s->in[Q]) + b * c->q.s_batch + h * c->q.s_head + i * c->q.s_token;
    const float *k = (const float *)hn_cpu_data(&s->in[K]) + b * c->k.s_batch + g * c->k.s_head;
    const float *v = (const float *)hn_cpu_data(&s->in[V]) + b * c->v.s_batch + g * c->v.s_head;
    float *y = (float *)hn_cpu_data(&s->out[Y]) + b * c->y.s_batch + h * c->y.s_head + i * c->y.s_token;
    float *scaled = row + c->k.length;
    for (int64_t j = 0; j < c->q.size; j++)
        scaled[j] = q[j] * c->scale;
    c->fns.scores(row, scaled, k, c->k.s_token, seen, c->k.size);
    add_mask(row, m, at, seen);
    c->ops->softmax(row, seen);
    c->fns.mix(y, row, v, c->v.s_token, seen, c->v.size);
}

static void run_queries(gpointer step, int thread, int64_t from, int64_t to)
{
    const HnStep *s = step;
    const Rows *c = s->state;
    const int64_t rows = c->q.heads * c->q.length;
    for (int64_t j = from; j < to; j++)
        run_query(s, c, j / rows, j % rows / c->q.length, j % c->q.length, (float *)s->scratch + thread * c->wide);
}

static gboolean rows_run(HnStep *s, GError **error)
{
    (void)error;
    const Rows *c = s->state;
    hn_parallel_for(c->q.batch * c->q.heads * c->q.length, c->threads, run_queries, s);
    return TRUE;
}

const HnKernel hn_cpu_attention_rows = {
    .name = "cpu.attention_rows",
    .reject = rows_reject,
    .prepare = rows_prepare,
    .run = rows_run,
    .release = hn_cpu_release,
};
