/*
 * FusedAttention (domain "hone"): what a plan makes of attention that is written out,
 *     y = p(softmax(kept(scale * q (key_scale * k)') + mask)) v
 * for each batch and head; p makes zeros of NaN where `guard` says so. `kept` puts `fill` where booleans say so. These
 * and the mask, or none, broadcast to [batch, heads, queries, keys], without heads where q has rank 3. Groups of query
 * heads may share a key head. Unlike Attention, a row that is masked as a whole gives NaN, as Softmax does.
 */
#include <math.h>

#include "op/attention.h"
#include "op/batch.h"
#include "op/index.h"
#include "op/types.h"

enum { Q, K, V, MASK, KEEP };

HnAttentionForm hn_attention_form(int ndim, const int64_t *d, gboolean by_token)
{
    if (ndim == 3)
        return by_token ? (HnAttentionForm){ d[1], 1, d[0], d[2], d[2], d[2], d[1] * d[2] }
                        : (HnAttentionForm){ d[0], 1, d[1], d[2], d[1] * d[2], d[1] * d[2], d[2] };
    return by_token ? (HnAttentionForm){ d[0], d[2], d[1], d[3], d[1] * d[2] * d[3], d[3], d[2] * d[3] }
                    : (HnAttentionForm){ d[0], d[1], d[2], d[3], d[1] * d[2] * d[3], d[2] * d[3], d[3] };
}

gboolean hn_attention_operand(const HnTensor *t, int64_t heads, HnAttentionForm *f)
{
    if (t->ndim == 4) {
        *f = hn_attention_form(4, t->dims, FALSE);
        return TRUE;
    }
    if (t->ndim != 3 || heads <= 0 || t->dims[2] % heads != 0)
        return FALSE;
    const int64_t dims[] = { t->dims[0], t->dims[1], heads, t->dims[2] / heads };
    *f = hn_attention_form(4, dims, TRUE);
    return TRUE;
}

static void fusedattention_bind(HnBind *b, void *params)
{
    HnFusedAttention *p = params;
    p->key_scale = hn_bind_float(b, "key_scale", 1);
    p->scale = hn_bind_float(b, "scale", 1);
    p->by_token = hn_bind_int(b, "by_token", 0);
    p->guard = hn_bind_bool(b, "guard", FALSE);
    p->fill = hn_bind_float(b, "fill", 0);
    p->inverted = hn_bind_bool(b, "inverted", FALSE);
}

/* Places of batch, heads, length and size in such a tensor; heads -1: none. */
static void axes_of(int rank, gboolean by_token, int *at)
{
    at[0] = rank == 3 && by_token ? 1 : 0;
    at[1] = rank == 3 ? -1 : by_token ? 2 : 1;
    at[2] = rank == 3 ? (by_token ? 0 : 1) : by_token ? 1 : 2;
    at[3] = rank - 1;
}

static void dims_of(const HnInfer *x, int i, gboolean by_token, HnDim *d)
{
    int at[4];
    axes_of(hn_infer_rank(x, i), by_token, at);
    for (int j = 0; j < 4; j++)
        d[j] = at[j] < 0 ? hn_dim(1) : hn_infer_dim(x, i, at[j]);
}

static void fusedattention_infer(HnInfer *x)
{
    const HnFusedAttention *p = x->params;
    const int rank = hn_infer_rank(x, Q);
    HnDim d[3][4], y[4];
    int at[4];
    for (int i = Q; i <= V; i++) {
        const int r = hn_infer_rank(x, i);
        if (r < 0)
            return;
        if ((r != 3 && r != 4) || r != rank) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "query, key and value are not all of 3 or 4 dimensions");
            return;
        }
        dims_of(x, i, (p->by_token >> i & 1) != 0, d[i]);
    }
    if (hn_dim_differ(d[Q][0], d[K][0]) || hn_dim_differ(d[K][0], d[V][0]) || hn_dim_differ(d[K][1], d[V][1]) ||
        hn_dim_differ(d[K][2], d[V][2]) || hn_dim_differ(d[Q][3], d[K][3])) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the shapes of query, key and value do not fit");
        return;
    }
    axes_of(rank, (p->by_token & HN_BY_TOKEN_Y) != 0, at);
    for (int j = 0; j < 4; j++)
        if (at[j] >= 0)
            y[at[j]] = j == 3 ? d[V][3] : d[Q][j];
    hn_infer_out(x, 0, hn_infer_dtype(x, Q), rank, y);
}

static void fusedattention_cost(const HnInfer *x, HnCost *c)
{
    const HnFusedAttention *p = x->params;
    HnDim d[3][4];
    for (int i = Q; i <= V; i++)
        dims_of(x, i, (p->by_token >> i & 1) != 0, d[i]);
    c->flops = (double)d[Q][0].n * (double)d[Q][1].n * (double)d[Q][2].n * (double)d[K][2].n *
               (2 * (double)d[K][3].n + 2 * (double)d[V][3].n + 5);
}

typedef struct {
    const HnFusedAttention *p;
    HnAttentionForm f[3], y;
    const HnTensor *mask, *keep;
    int64_t mask_strides[4], keep_strides[4];
} Job;

/* t broadcasts to `want`, without axis 1 where the rank is 3. */
static gboolean steps_of(const HnTensor *t, int rank, const int64_t *want, int64_t *steps)
{
    int64_t step = 1;
    if (t == NULL)
        return TRUE;
    if (t->ndim > rank)
        return FALSE;
    for (int i = 3, at = t->ndim - 1; i >= 0; i--) {
        const int64_t d = (rank == 4 || i != 1) && at >= 0 ? t->dims[at--] : 1;
        if (d != 1 && d != want[i])
            return FALSE;
        steps[i] = d != 1 ? step : 0;
        step *= d;
    }
    return TRUE;
}

static gboolean fits(HnEval *e, Job *j)
{
    const HnTensor *q = hn_eval_in(e, Q);
    for (int i = Q; i <= V; i++) {
        const HnTensor *t = hn_eval_in(e, i);
        if (t->ndim != q->ndim || t->ndim < 3 || t->ndim > 4)
            return FALSE;
        j->f[i] = hn_attention_form(t->ndim, t->dims, (j->p->by_token >> i & 1) != 0);
    }
    const HnAttentionForm *k = &j->f[K], *v = &j->f[V];
    const int64_t want[] = { j->f[Q].batch, j->f[Q].heads, j->f[Q].length, k->length };
    if (k->batch != want[0] || v->batch != want[0] || k->heads != v->heads || k->length != v->length ||
        k->size != j->f[Q].size || (k->heads == 0 ? want[1] != 0 : want[1] % k->heads != 0))
        return FALSE;
    j->mask = hn_eval_in(e, MASK);
    j->keep = hn_eval_in(e, KEEP);
    return steps_of(j->mask, q->ndim, want, j->mask_strides) && steps_of(j->keep, q->ndim, want, j->keep_strides);
}

static gboolean is_kept(const Job *j, int64_t at)
{
    return ((const uint8_t *)j->keep->data)[at] != 0;
}

/* Query i of head h of batch b: s has a place for each key. */
#define DEFINE_ROW(T)                                                                                              \
    static void row_##T(const HnEval *e, const Job *j, int64_t b, int64_t h, int64_t i, double *s, T *y)           \
    {                                                                                                              \
        const HnAttentionForm *k = &j->f[K], *v = &j->f[V];                                                        \
        const int64_t g = h / (j->f[Q].heads / k->heads), *step = j->mask_strides, *at = j->keep_strides;          \
        const T *q =                                                                                               \
            (const T *)hn_eval_in(e, Q)->data + b * j->f[Q].s_batch + h * j->f[Q].s_head + i * j->f[Q].s_token;    \
        const T *keys = (const T *)hn_eval_in(e, K)->data + b * k->s_batch + g * k->s_head;                        \
        const T *values = (const T *)hn_eval_in(e, V)->data + b * v->s_batch + g * v->s_head;                      \
        double most = -INFINITY, sum = 0;                                                                          \
        for (int64_t l = 0; l < k->length; l++) {                                                                  \
            s[l] = 0;                                                                                              \
            for (int64_t d = 0; d < k->size; d++)                                                                  \
                s[l] += (double)q[d] * ((double)keys[l * k->s_token + d] * (double)j->p->key_scale);               \
            s[l] = (double)(T)(s[l] * (double)j->p->scale); /* what overflows there becomes infinite */            \
            if (j->keep != NULL && is_kept(j, b * at[0] + h * at[1] + i * at[2] + l * at[3]) == j->p->inverted)    \
                s[l] = (double)j->p->fill;                                                                         \
            if (j->mask != NULL)                                                                                   \
                s[l] += (double)((const T *)j->mask->data)[b * step[0] + h * step[1] + i * step[2] + l * step[3]]; \
            most = fmax(most, s[l]);                                                                               \
        }                                                                                                          \
        for (int64_t l = 0; l < k->length; l++)                                                                    \
            sum += s[l] = exp(s[l] - most);                                                                        \
        for (int64_t d = 0; d < v->size; d++) {                                                                    \
            double total = 0;                                                                                      \
            for (int64_t l = 0; l < k->length; l++)                                                                \
                total += (j->p->guard && isnan(s[l] / sum) ? 0 : s[l] / sum) * (double)values[l * v->s_token + d]; \
            y[d] = (T)total;                                                                                       \
        }                                                                                                          \
    }
DEFINE_ROW(float)
DEFINE_ROW(double)

static void fusedattention_ref(HnEval *e)
{
    Job j = { .p = e->params };
    const HnTensor *q = hn_eval_in(e, Q);
    if (!fits(e, &j)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shapes of query, key, value and mask do not fit");
        return;
    }
    const HnAttentionForm *f = &j.f[Q];
    const gboolean by_token = (j.p->by_token & HN_BY_TOKEN_Y) != 0;
    int64_t dims[4];
    int at[4];
    axes_of(q->ndim, by_token, at);
    const int64_t sizes[] = { f->batch, f->heads, f->length, j.f[V].size };
    for (int i = 0; i < 4; i++)
        if (at[i] >= 0)
            dims[at[i]] = sizes[i];
    void *y = hn_eval_out(e, 0, q->dtype, q->ndim, dims);
    double *s = y != NULL ? hn_eval_scratch(e, MAX(j.f[K].length, 1), sizeof *s) : NULL;
    if (s == NULL)
        return;
    j.y = hn_attention_form(q->ndim, dims, by_token);
#define RUN(T)                                      \
    for (int64_t b = 0; b < f->batch; b++)          \
        for (int64_t h = 0; h < f->heads; h++)      \
            for (int64_t i = 0; i < f->length; i++) \
                row_##T(e, &j, b, h, i, s, (T *)y + b * j.y.s_batch + h * j.y.s_head + i * j.y.s_token);
    HN_FOR_FLOAT(q->dtype, RUN)
#undef RUN
    hn_eval_scratch_free(e, s);
}

/* Queries, keys and values hold samples along their batch; masks where they broadcast to it, or not at all. */
static void fusedattention_batch(HnBatch *b)
{
    const HnFusedAttention *p = b->params;
    const int rank = hn_batch_rank(b, Q);
    int at[4];
    gboolean fits = TRUE;
    for (int i = Q; i <= V; i++) {
        axes_of(rank, (p->by_token >> i & 1) != 0, at);
        fits = fits && b->in[i].at.axis == at[0] && hn_batch_alike(&b->in[i].at, &b->in[Q].at);
    }
    for (int i = MASK; i <= KEEP; i++) {
        const gboolean whole = hn_batch_has(b, i) && hn_batch_rank(b, i) == rank;
        if (hn_batch_split(b, i))
            fits = fits && whole && b->in[i].at.axis == 0 && hn_batch_alike(&b->in[i].at, &b->in[Q].at);
        else
            fits = fits && (!whole || hn_dim_is(b->in[i].now->dims[0], 1));
    }
    axes_of(rank, (p->by_token & HN_BY_TOKEN_Y) != 0, at);
    b->out[0] = b->in[Q].at;
    b->out[0].axis = at[0];
    if (!fits)
        hn_batch_fail(b, "its operands do not hold their samples side by side");
}

const HnOp hn_op_fusedattention = {
    .name = "FusedAttention",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTTTb",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 3,
    .params_size = sizeof(HnFusedAttention),
    .bind = fusedattention_bind,
    .infer = fusedattention_infer,
    .cost = fusedattention_cost,
    .ref = fusedattention_ref,
    .batch = fusedattention_batch,
};
