/*
 * LinearAttention: attention without a softmax, whose past is one matrix S[d_k, d_v] for each head of keys:
 *     S = e^g S                                 where there is a decay g ("gated", "gated_delta"), by head or by row
 *     S = S + k (beta (v - S' k))'              with an update rate beta ("delta", "gated_delta"); else S + k v'
 *     o = scale S' q                            for each of the heads of queries that share the keys' head
 */
#include <math.h>

#include "base/checked.h"
#include "op/index.h"
#include "op/types.h"
#include "op/unbind.h"

enum { LA_QUERY, LA_KEY, LA_VALUE, LA_PAST, LA_DECAY, LA_BETA };

typedef struct {
    gboolean gated, delta;
    int64_t q_heads, kv_heads;
    double scale; /* 0: 1 / sqrt(d_k) */
} HnLinearAttention;

static void linearattention_bind(HnBind *b, void *params)
{
    static const char *const rules[] = { "linear", "gated", "delta", "gated_delta", NULL };
    HnLinearAttention *p = params;
    const int rule = hn_bind_word(b, "update_rule", rules, 3);
    p->gated = rule == 1 || rule == 3;
    p->delta = rule >= 2;
    p->scale = (double)hn_bind_float(b, "scale", 0);
    hn_bind_require(b, "q_num_heads");
    hn_bind_require(b, "kv_num_heads");
    p->q_heads = hn_bind_int(b, "q_num_heads", 1);
    p->kv_heads = hn_bind_int(b, "kv_num_heads", 1);
    hn_bind_int(b, "chunk_size", 64);
    if (p->q_heads < 1 || p->kv_heads < 1 || p->q_heads % p->kv_heads != 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " heads of queries cannot share %" PRId64 " of keys", p->q_heads,
                     p->kv_heads);
    if (p->gated != (hn_node_in(b->node, LA_DECAY) != NULL) || p->delta != (hn_node_in(b->node, LA_BETA) != NULL))
        hn_bind_fail(b, HN_ERROR_GRAPH, "the inputs are not those of update rule '%s'", rules[rule]);
}

static HnDim share(HnInfer *x, int i, int64_t heads)
{
    const HnDim d = hn_infer_rank(x, i) == 3 ? hn_infer_dim(x, i, 2) : hn_dim_unknown();
    if (d.known && d.n % heads != 0)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%" PRId64 " numbers are not the same for each of %" PRId64 " heads", d.n,
                      heads);
    return hn_dim_floor_div(d, hn_dim(heads));
}

static void linearattention_infer(HnInfer *x)
{
    const HnLinearAttention *p = x->params;
    for (int i = 0; i < x->n_in; i++) {
        const int rank = hn_infer_rank(x, i), want = i == LA_PAST ? 4 : 3;
        if (rank >= 0 && rank != want)
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions instead of %d", i, rank, want);
    }
    if (x->error != NULL)
        return;
    const HnDim dk = share(x, LA_QUERY, p->q_heads), dv = share(x, LA_VALUE, p->kv_heads);
    const gboolean known = hn_infer_rank(x, LA_QUERY) == 3;
    const HnDim batch = known ? hn_infer_dim(x, LA_QUERY, 0) : hn_dim_unknown();
    if (hn_dim_differ(share(x, LA_KEY, p->kv_heads), dk))
        hn_infer_fail(x, HN_ERROR_SHAPE, "heads of queries and keys are of different sizes");
    HnDim out[] = { batch, known ? hn_infer_dim(x, LA_QUERY, 1) : hn_dim_unknown(),
                    hn_dim_mul(dv, hn_dim(p->q_heads)) };
    HnDim state[] = { batch, hn_dim(p->kv_heads), dk, dv };
    hn_infer_out(x, 0, hn_infer_dtype(x, LA_QUERY), 3, out);
    hn_infer_out(x, 1, hn_infer_dtype(x, hn_infer_has(x, LA_PAST) ? LA_PAST : LA_QUERY), 4, state);
}

/* What the loops need to know. */
typedef struct {
    const HnLinearAttention *p;
    const HnTensor *q, *k, *v, *decay, *beta;
    int64_t steps, dk, dv;
    double scale;
    double *s;    /* [dk, dv] of the present head */
    double *step; /* [dv] what is written */
} Heads;

static gboolean rows_fit(const HnTensor *t, const HnTensor *q, int64_t width)
{
    return t->ndim == 3 && t->dims[0] == q->dims[0] && t->dims[1] == q->dims[1] && t->dims[2] == width;
}

static gboolean heads_fit(const Heads *h, const HnTensor *past)
{
    const HnLinearAttention *p = h->p;
    const int64_t state[] = { h->q->dims[0], p->kv_heads, h->dk, h->dv };
    gboolean ok = rows_fit(h->q, h->q, h->dk * p->q_heads) && rows_fit(h->k, h->q, h->dk * p->kv_heads) &&
                  rows_fit(h->v, h->q, h->dv * p->kv_heads);
    ok = ok &&
         (h->decay == NULL || rows_fit(h->decay, h->q, p->kv_heads) || rows_fit(h->decay, h->q, p->kv_heads * h->dk));
    ok = ok && (h->beta == NULL || rows_fit(h->beta, h->q, p->kv_heads) || rows_fit(h->beta, h->q, 1));
    return ok && (past == NULL || hn_tensor_has_dims(past, 4, state));
}

/* Keys' head `head` of row t (of all batches). */
static void write_state(const Heads *h, int64_t t, int64_t head)
{
    const int64_t kv = h->p->kv_heads;
    const int64_t wide = h->decay != NULL ? h->decay->dims[2] / kv : 1;
    for (int64_t d = 0; h->decay != NULL && d < h->dk; d++) {
        const double g = exp(hn_tensor_get_f64(h->decay, (t * kv + head) * wide + (wide > 1 ? d : 0)));
        for (int64_t m = 0; m < h->dv; m++)
            h->s[d * h->dv + m] *= g;
    }
    for (int64_t m = 0; m < h->dv; m++) {
        double v = hn_tensor_get_f64(h->v, (t * kv + head) * h->dv + m);
        for (int64_t d = 0; h->beta != NULL && d < h->dk; d++)
            v -= h->s[d * h->dv + m] * hn_tensor_get_f64(h->k, (t * kv + head) * h->dk + d);
        if (h->beta != NULL)
            v *= hn_tensor_get_f64(h->beta, h->beta->dims[2] == 1 ? t : t * kv + head);
        h->step[m] = v;
    }
    for (int64_t d = 0; d < h->dk; d++)
        for (int64_t m = 0; m < h->dv; m++)
            h->s[d * h->dv + m] += hn_tensor_get_f64(h->k, (t * kv + head) * h->dk + d) * h->step[m];
}

static void read_state(const Heads *h, int64_t t, int64_t head, HnTensor *y)
{
    const int64_t group = h->p->q_heads / h->p->kv_heads;
    for (int64_t q = head * group; q < (head + 1) * group; q++)
        for (int64_t m = 0; m < h->dv; m++) {
            double sum = 0;
            for (int64_t d = 0; d < h->dk; d++)
                sum += hn_tensor_get_f64(h->q, (t * h->p->q_heads + q) * h->dk + d) * h->s[d * h->dv + m];
            hn_tensor_set_f64(y, (t * h->p->q_heads + q) * h->dv + m, h->scale * sum);
        }
}

static void attend(HnEval *e, const Heads *h, const HnTensor *past)
{
    const int64_t size = h->dk * h->dv, kv = h->p->kv_heads;
    for (int64_t b = 0; b < h->q->dims[0] * kv; b++) {
        for (int64_t i = 0; i < size; i++)
            h->s[i] = past != NULL ? hn_tensor_get_f64(past, b * size + i) : 0;
        for (int64_t t = b / kv * h->steps; t < (b / kv + 1) * h->steps; t++) {
            write_state(h, t, b % kv);
            read_state(h, t, b % kv, e->out[0]);
        }
        for (int64_t i = 0; i < size; i++)
            hn_tensor_set_f64(e->out[1], b * size + i, h->s[i]);
    }
}

static void linearattention_ref(HnEval *e)
{
    const HnLinearAttention *p = e->params;
    const HnTensor *past = hn_eval_in(e, LA_PAST);
    Heads h = { p,
                hn_eval_in(e, LA_QUERY),
                hn_eval_in(e, LA_KEY),
                hn_eval_in(e, LA_VALUE),
                hn_eval_in(e, LA_DECAY),
                hn_eval_in(e, LA_BETA),
                .scale = p->scale };
    if (h.q->ndim == 3 && h.v->ndim == 3) {
        h.steps = h.q->dims[1];
        h.dk = h.q->dims[2] / p->q_heads;
        h.dv = h.v->dims[2] / p->kv_heads;
    }
    if (h.q->ndim != 3 || h.v->ndim != 3 || !heads_fit(&h, past)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "queries, keys, values, state and rates do not fit");
        return;
    }
    if (p->scale == 0)
        h.scale = 1 / sqrt((double)h.dk);
    int64_t out[] = { h.q->dims[0], h.steps, 0 }, state[] = { out[0], p->kv_heads, h.dk, h.dv };
    if (!hn_mul_i64(p->q_heads, h.dv, &out[2])) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the result is too large");
        return;
    }
    if (hn_eval_out(e, 0, h.q->dtype, 3, out) == NULL ||
        hn_eval_out(e, 1, (past != NULL ? past : h.q)->dtype, 4, state) == NULL || e->out[0]->n + e->out[1]->n == 0)
        return;
    h.s = hn_eval_scratch(e, e->out[1]->n / MAX(out[0] * p->kv_heads, 1) + h.dv, sizeof *h.s);
    if (h.s == NULL)
        return;
    h.step = h.s + h.dk * h.dv;
    attend(e, &h, past);
    hn_eval_scratch_free(e, h.s);
}

static void linearattention_cost(const HnInfer *x, HnCost *c)
{
    const HnLinearAttention *p = x->params;
    if (x->in[LA_QUERY] != NULL && x->out[0] != NULL) /* reading is a product, writing and forgetting another two */
        c->flops = 2 * hn_type_count(x->out[0]) * (double)(hn_infer_dim(x, LA_QUERY, 2).n / p->q_heads) *
                   (1 + (double)p->kv_heads / (double)p->q_heads * (1 + (p->delta ? 1 : 0) + (p->gated ? 0.5 : 0)));
}

static void linearattention_unbind(HnUnbind *u)
{
    if (u->to < 27)
        hn_unbind_refuse(u, "the operator exists since opset 27");
}

const HnOp hn_op_linearattention = {
    .name = "LinearAttention",
    .since = { 27 },
    .in = "TTTUTT",
    .out = "TU",
    .T = HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16),
    .U = HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16),
    .min_in = 3,
    .unbind = linearattention_unbind,
    .params_size = sizeof(HnLinearAttention),
    .bind = linearattention_bind,
    .infer = linearattention_infer,
    .cost = linearattention_cost,
    .ref = linearattention_ref,
};
