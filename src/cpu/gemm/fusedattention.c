/*
 * FusedAttention of f32. For each key head, keys and values are packed as right operands of products; then so many
 * queries at a time that their scores stay in the first cache: products with keys, probabilities, products with values.
 */
#include <math.h>
#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/gemm/gemm_kernel.h"
#include "cpu/reduce/norm.h"
#include "op/index.h"
#include "run/attention_forms.h"

#define HN_LOOPS "cpu/gemm/attention_loops.h"
#include "base/every_level.h"

enum { Q, K, V, MASK, Y = 3 };

#define LEAST_QUERIES 8 /* fewer do not pay for packing keys and values */
#define SCORES 6144     /* that stay in the first cache */

typedef struct {
    HnAttentionForm f[4]; /* of queries, keys, values, results */
    int64_t mask_strides[4];
    int64_t pitch, block; /* of scores: elements from query to query; queries at a time */
    int64_t keys, values; /* floats of packed ones */
    int64_t parts;        /* of the queries of a key head, which are tasks of their own */
    float (*score_row)(float *restrict s, int64_t n, float scale, const float *restrict m, int64_t step);
    const HnRowFns *rows;
    int threads;
} Attention;

static const char *measure(const HnStep *s, Attention *c)
{
    return hn_fused_attention_forms(s, c->f, c->mask_strides);
}

static const char *attention_reject(const HnStep *s)
{
    Attention c = { 0 };
    const char *reason = hn_cpu_reject_f32(s);
    if (reason == NULL && hn_cpu_in(s, MASK) != NULL && hn_cpu_in(s, MASK)->n == 0)
        reason = "nothing to compute";
    if (reason == NULL)
        reason = measure(s, &c);
    if (reason == NULL && !(((const HnFusedAttention *)s->params)->scale > 0))
        reason = "a factor that is not positive";
    if (reason == NULL && (c.f[Q].length < LEAST_QUERIES || c.f[K].length <= HN_SHORT || c.f[K].size < 2))
        reason = "few queries, or keys";
    return reason;
}

static gboolean attention_prepare(HnStep *s, GError **error)
{
    static float (*const score_rows[])(float *restrict, int64_t, float, const float *restrict, int64_t) =
        HN_TABLE_OF_LEVELS(score_row);
    (void)error;
    Attention *c = g_new0(Attention, 1);
    s->state = c;
    measure(s, c);
    const HnAttentionForm *q = &c->f[Q], *k = &c->f[K], *v = &c->f[V];
    const int64_t rows = hn_gemm_kernel_rows();
    c->score_row = score_rows[hn_cpu_level()];
    c->rows = hn_cpu_rows();
    c->pitch =
        (k->length + 15) / 16 * 16 + (k->length % 1024 == 0 ? 16 : 0); /* rows do not share places of the cache */
    c->block = MIN(q->length, MAX(1, SCORES / c->pitch / rows) * rows);
    c->keys = hn_gemm_kernel_packed(k->size, k->length);
    c->values = hn_gemm_kernel_packed(k->length, v->size);
    const double flops =
        2 * (double)q->batch * (double)q->heads * (double)q->length * (double)k->length * (double)(q->size + v->size);
    const int64_t tasks = q->batch * k->heads, threads = hn_cpu_threads_for(s, flops);
    c->parts = tasks % threads == 0 || tasks >= 8 * threads ? 1 : MIN(threads, (q->length + rows - 1) / rows);
    c->threads = (int)MIN(threads, tasks * c->parts);
    s->scratch_bytes = (gsize)(c->threads * (c->keys + c->values + c->block * c->pitch)) * sizeof(float);
    return TRUE;
}

static const float *head_of(const HnStep *s, const Attention *c, int i, int64_t b, int64_t h)
{
    return (const float *)hn_cpu_data(&s->in[i]) + b * c->f[i].s_batch + h * c->f[i].s_head;
}

static void probabilities(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t first, int64_t n,
                          float *scores)
{
    const HnFusedAttention *p = s->params;
    const HnTensor *mask = hn_cpu_in(s, MASK);
    const int64_t keys = c->f[K].length, *step = c->mask_strides;
    const float *m = mask != NULL ? (const float *)hn_cpu_data(&s->in[MASK]) + b * step[0] + h * step[1] : NULL;
    for (int64_t i = 0; i < n; i++, scores += c->pitch) {
        const float *row = m != NULL ? m + (first + i) * step[2] : NULL;
        const float most = c->score_row(scores, keys, p->scale, row, step[3]);
        const float sum = c->rows->exp(scores, scores, keys, most);
        /* where one is NaN, all are: a sum that is one, or nothing but minus infinity */
        const gboolean none = isnan(sum) || most == -INFINITY;
        if (none)
            for (int64_t j = 0; j < keys; j++)
                scores[j] = p->guard ? 0 : NAN;
        else
            c->rows->affine(scores, scores, keys, 1 / sum, 0);
    }
}

/* Queries [from, to) of one head. */
static void run_queries(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t from, int64_t to,
                        const float *keys, const float *values, float *scores)
{
    const float *q = head_of(s, c, Q, b, h);
    float *y = (float *)hn_cpu_data(&s->out[0]) + b * c->f[Y].s_batch + h * c->f[Y].s_head;
    for (int64_t i = from; i < to; i += c->block) {
        const int64_t n = MIN(c->block, to - i);
        const HnGemmBlocked first = { .m = n,
                                      .n = c->f[K].length,
                                      .k = c->f[K].size,
                                      .a = q + i * c->f[Q].s_token,
                                      .a_pitch = c->f[Q].s_token,
                                      .b = keys,
                                      .c = scores,
                                      .c_pitch = c->pitch,
                                      .lo = HN_GEMM_KERNEL_LOW,
                                      .hi = HN_GEMM_KERNEL_HIGH };
        const HnGemmBlocked second = { .m = n,
                                       .n = c->f[V].size,
                                       .k = c->f[K].length,
                                       .a = scores,
                                       .a_pitch = c->pitch,
                                       .b = values,
                                       .c = y + i * c->f[Y].s_token,
                                       .c_pitch = c->f[Y].s_token,
                                       .lo = HN_GEMM_KERNEL_LOW,
                                       .hi = HN_GEMM_KERNEL_HIGH };
        hn_gemm_blocked(&first, 0, 1);
        probabilities(s, c, b, h, i, n, scores);
        hn_gemm_blocked(&second, 0, 1);
    }
}

/* A part of the queries of all heads that read one key head. */
static void run_task(const HnStep *s, const Attention *c, int64_t task, float *scratch)
{
    const HnFusedAttention *p = s->params;
    const HnAttentionForm *q = &c->f[Q], *k = &c->f[K], *v = &c->f[V];
    const int64_t part = task % c->parts, b = task / c->parts / k->heads, g = task / c->parts % k->heads;
    const int64_t share = q->heads / k->heads;
    float *values = scratch + c->keys, *scores = values + c->values;
    for (int64_t i = 0; i < c->block; i++)
        for (int64_t j = k->length; j < c->pitch; j++)
            scores[i * c->pitch + j] = -INFINITY;
    hn_gemm_kernel_pack(scratch, head_of(s, c, K, b, g), 1, k->s_token, k->size, k->length);
    if (p->key_scale != 1)
        c->rows->affine(scratch, scratch, c->keys, p->key_scale, 0);
    hn_gemm_kernel_pack(values, head_of(s, c, V, b, g), v->s_token, 1, k->length, v->size);
    for (int64_t h = g * share; h < (g + 1) * share; h++)
        run_queries(s, c, b, h, q->length * part / c->parts, q->length * (part + 1) / c->parts, scratch, values,
                    scores);
}

static gboolean attention_run(HnStep *s, GError **error)
{
    (void)error;
    const Attention *c = s->state;
    const int64_t tasks = c->f[Q].batch * c->f[K].heads * c->parts;
    const int64_t floats = c->keys + c->values + c->block * c->pitch;
#pragma omp parallel for num_threads(c->threads) if (c->threads > 1) schedule(static)
    for (int t = 0; t < c->threads; t++)
        for (int64_t task = tasks * t / c->threads; task < tasks * (t + 1) / c->threads; task++)
            run_task(s, c, task, (float *)s->scratch + t * floats);
    return TRUE;
}

static const HnKernel fusedattention_kernel = {
    .name = "cpu.attention_tiles",
    .reject = attention_reject,
    .prepare = attention_prepare,
    .run = attention_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_fusedattention[] = { &fusedattention_kernel, NULL };
