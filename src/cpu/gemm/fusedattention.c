/*
 * FusedAttention of f32. For each key head, keys and values are packed as right operands of products; then so many
 * queries at a time that their scores stay in the first cache: products with keys, probabilities, products with values.
 * Keys at the end that none of these queries keeps are left out, where their probabilities are 0: half of a causal
 * mask.
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

enum { Q, K, V, MASK, KEEP, Y = 3 };

#define LEAST_QUERIES 8 /* fewer do not pay for packing keys and values */
#define SCORES 6144     /* that stay in the first cache */
#define NOTHING -1e4F   /* fills below make probabilities of 0 ... */
#define FAR 104.0F      /* ... if the largest score is so far above */

typedef struct {
    HnAttentionForm f[4]; /* of queries, keys, values, results */
    int64_t mask_strides[4], keep_strides[4];
    int64_t pitch, block; /* of scores: elements from query to query; queries at a time */
    int64_t keys, values; /* floats of packed ones */
    int64_t parts;        /* of the queries of a key head, which are tasks of their own */
    float (*score_row)(float *restrict s, int64_t n, float scale, const float *restrict m, int64_t step);
    void (*keep_row)(float *restrict s, int64_t n, float scale, const uint8_t *restrict keep, int64_t step,
                     int inverted, float fill);
    const HnRowFns *rows;
    int threads;
} Attention;

static const char *measure(const HnStep *s, Attention *c)
{
    const char *reason = hn_fused_attention_forms(s, c->f, c->mask_strides);
    return reason != NULL ? reason : hn_fused_attention_keep(s, c->f, c->keep_strides);
}

static const char *attention_reject(const HnStep *s)
{
    Attention c = { 0 };
    const char *reason = NULL;
    for (int i = Q; i < s->n_in && reason == NULL; i++) {
        const HnTensor *t = hn_cpu_in(s, i);
        reason = t == NULL                                    ? NULL
                 : t->dtype != (i == KEEP ? HN_BOOL : HN_F32) ? "only f32"
                 : t->n == 0                                  ? "nothing to compute"
                                                              : NULL;
    }
    if (reason == NULL)
        reason = s->out[0].slot->tensor->n == 0 ? "nothing to compute" : measure(s, &c);
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
    static void (*const keep_rows[])(float *restrict, int64_t, float, const uint8_t *restrict, int64_t, int, float) =
        HN_TABLE_OF_LEVELS(keep_row);
    (void)error;
    Attention *c = g_new0(Attention, 1);
    s->state = c;
    measure(s, c);
    const HnAttentionForm *q = &c->f[Q], *k = &c->f[K], *v = &c->f[V];
    const int64_t rows = hn_gemm_kernel_rows();
    c->score_row = score_rows[hn_cpu_level()];
    c->keep_row = keep_rows[hn_cpu_level()];
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

/* What says which of the first query's scores are kept; NULL: all are. */
static const uint8_t *keep_of(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t first)
{
    const int64_t *step = c->keep_strides;
    if (hn_cpu_in(s, KEEP) == NULL)
        return NULL;
    return (const uint8_t *)hn_cpu_data(&s->in[KEEP]) + b * step[0] + h * step[1] + first * step[2];
}

/* How many keys, whole vectors of them, are to be looked at by n queries: what lies behind becomes 0. */
static int64_t keys_of(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t first, int64_t n)
{
    const HnFusedAttention *p = s->params;
    const int64_t keys = c->f[K].length;
    const uint8_t *keep = keep_of(s, c, b, h, first);
    int64_t most = 0;
    if (keep == NULL || hn_cpu_in(s, MASK) != NULL || p->fill > NOTHING || c->keep_strides[3] == 0)
        return keys;
    for (int64_t i = 0; i < n; i++, keep += c->keep_strides[2]) {
        int64_t seen = keys;
        while (seen > most && (keep[seen - 1] != 0) == p->inverted)
            seen--;
        most = MAX(most, seen);
    }
    return MIN(keys, (most + 15) / 16 * 16);
}

/* FALSE: a key behind the first `keys` has its share. */
static gboolean probabilities(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t first, int64_t n,
                              int64_t keys, float *scores)
{
    const HnFusedAttention *p = s->params;
    const HnTensor *mask = hn_cpu_in(s, MASK);
    const int64_t *step = c->mask_strides;
    const float *m = mask != NULL ? (const float *)hn_cpu_data(&s->in[MASK]) + b * step[0] + h * step[1] : NULL;
    const uint8_t *keep = keep_of(s, c, b, h, first);
    for (int64_t i = 0; i < n; i++, scores += c->pitch) {
        const float *row = m != NULL ? m + (first + i) * step[2] : NULL;
        if (keep != NULL)
            c->keep_row(scores, keys, p->scale, keep + i * c->keep_strides[2], c->keep_strides[3], p->inverted,
                        p->fill);
        const float most = c->score_row(scores, keys, keep != NULL ? 1 : p->scale, row, step[3]);
        if (keys < c->f[K].length && !(most - FAR > p->fill))
            return FALSE;
        const float sum = c->rows->exp(scores, scores, keys, most);
        /* where one is NaN, all are: a sum that is one, or nothing but minus infinity */
        const gboolean none = isnan(sum) || most == -INFINITY;
        if (none)
            for (int64_t j = 0; j < keys; j++)
                scores[j] = p->guard ? 0 : NAN;
        else
            c->rows->affine(scores, scores, keys, 1 / sum, 0);
    }
    return TRUE;
}

/* y = the first n rows of scores times the first `keys` values; panels of packed values hold all. */
static void mix_values(const Attention *c, int64_t n, int64_t keys, const float *scores, const float *values, float *y)
{
    const int64_t size = c->f[V].size, all = c->f[K].length, width = keys < all ? hn_gemm_kernel_cols() : size;
    for (int64_t col = 0; col < size; col += width) {
        const HnGemmBlocked g = { .m = n,
                                  .n = MIN(width, size - col),
                                  .k = keys,
                                  .a = scores,
                                  .a_pitch = c->pitch,
                                  .b = values + col * all,
                                  .c = y + col,
                                  .c_pitch = c->f[Y].s_token,
                                  .lo = HN_GEMM_KERNEL_LOW,
                                  .hi = HN_GEMM_KERNEL_HIGH };
        hn_gemm_blocked(&g, 0, 1);
    }
}

/* n queries of one head from `first` on, by the first `keys` keys. FALSE: others have their share. */
static gboolean run_block(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t first, int64_t n,
                          int64_t keys, const float *packed, const float *values, float *scores)
{
    float *y = (float *)hn_cpu_data(&s->out[0]) + b * c->f[Y].s_batch + h * c->f[Y].s_head;
    const HnGemmBlocked g = { .m = n,
                              .n = keys,
                              .k = c->f[K].size,
                              .a = head_of(s, c, Q, b, h) + first * c->f[Q].s_token,
                              .a_pitch = c->f[Q].s_token,
                              .b = packed,
                              .c = scores,
                              .c_pitch = c->pitch,
                              .lo = HN_GEMM_KERNEL_LOW,
                              .hi = HN_GEMM_KERNEL_HIGH };
    hn_gemm_blocked(&g, 0, 1);
    if (!probabilities(s, c, b, h, first, n, keys, scores))
        return FALSE;
    mix_values(c, n, keys, scores, values, y + first * c->f[Y].s_token);
    return TRUE;
}

/* Queries [from, to) of one head. */
static void run_queries(const HnStep *s, const Attention *c, int64_t b, int64_t h, int64_t from, int64_t to,
                        const float *packed, const float *values, float *scores)
{
    for (int64_t i = from; i < to; i += c->block) {
        const int64_t n = MIN(c->block, to - i), keys = keys_of(s, c, b, h, i, n);
        if (keys == 0 || !run_block(s, c, b, h, i, n, keys, packed, values, scores))
            run_block(s, c, b, h, i, n, c->f[K].length, packed, values, scores);
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

static void run_tasks(gpointer step, int thread, int64_t from, int64_t to)
{
    const HnStep *s = step;
    const Attention *c = s->state;
    const int64_t floats = c->keys + c->values + c->block * c->pitch;
    for (int64_t task = from; task < to; task++)
        run_task(s, c, task, (float *)s->scratch + thread * floats);
}

static gboolean attention_run(HnStep *s, GError **error)
{
    (void)error;
    const Attention *c = s->state;
    hn_parallel_for(c->f[Q].batch * c->f[K].heads * c->parts, c->threads, run_tasks, s);
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
