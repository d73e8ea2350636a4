/*
 * Attention: Y = softmax(scale * Q K' + bias) V per batch and head. Heads are a dimension of their own
 * (four-dimensional inputs) or lie side by side in the last one (three-dimensional, with q_num_heads and kv_num_heads);
 * several query heads may share one key head. The bias is the mask, the causal frontier, since opset 24 the padding of
 * the cache and since opset 25 a window. A query that may look at nothing gives zeros.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/attention.h"
#include "op/batch.h"
#include "op/gemm.h"
#include "op/index.h"
#include "op/narrow.h"
#include "op/tape.h"
#include "op/types.h"
#include "op/unbind.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, NONPAD };
enum { Y, PRESENT_K, PRESENT_V, QK };

static void attention_bind(HnBind *b, void *params)
{
    HnAttention *p = params;
    int64_t mode = hn_bind_int(b, "qk_matmul_output_mode", 0), type = hn_bind_int(b, "softmax_precision", HN_F32);
    p->scale = hn_bind_has(b, "scale") ? (double)hn_bind_float(b, "scale", 1) : (double)NAN;
    p->softcap = (double)hn_bind_float(b, "softcap", 0);
    p->q_heads = hn_bind_int(b, "q_num_heads", 0);
    p->kv_heads = hn_bind_int(b, "kv_num_heads", 0);
    p->left = b->version >= 25 ? hn_bind_int(b, "left_window_size", -1) : -1;
    p->right = b->version >= 25 ? hn_bind_int(b, "right_window_size", -1) : -1;
    p->causal = hn_bind_bool(b, "is_causal", FALSE);
    p->short_mask = b->version >= 24;
    p->mode = (HnQkMode)mode;
    if (mode < HN_QK_RAW || mode > HN_QK_SOFTMAX)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'qk_matmul_output_mode' is %" PRId64 ", not 0 to 3", mode);
    if (type < 0 || type > HN_DTYPE_COUNT || !hn_dtype_in((HnDtype)type, HN_T_FLOATS))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'softmax_precision' cannot be %" PRId64, type);
    if (p->q_heads < 0 || p->kv_heads < 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a number of heads is negative");
    if (p->left < -1 || p->right < -1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a window size is less than -1");
    if ((hn_node_in(b->node, PAST_K) != NULL) != (hn_node_in(b->node, PAST_V) != NULL))
        hn_bind_fail(b, HN_ERROR_GRAPH, "past_key and past_value must be given together");
    if (hn_node_in(b->node, NONPAD) != NULL && (b->version < 24 || hn_node_in(b->node, PAST_K) != NULL))
        hn_bind_fail(b, HN_ERROR_GRAPH, "input 6 cannot be given %s",
                     b->version < 24 ? "before opset 24" : "together with past_key");
}

/* --- inference --------------------------------------------------------------------------------------------------- */

/* [batch, heads, length, head size] of input i, whatever its form. */
static void infer_form(const HnInfer *x, int i, int64_t heads, HnDim *d)
{
    int rank = hn_infer_rank(x, i);
    for (int j = 0; j < 4; j++)
        d[j] = rank == 4 ? hn_infer_dim(x, i, j) : hn_dim_unknown();
    if (rank == 3 && heads > 0) {
        d[0] = hn_infer_dim(x, i, 0);
        d[1] = hn_dim(heads);
        d[2] = hn_infer_dim(x, i, 1);
        d[3] = hn_dim_floor_div(hn_infer_dim(x, i, 2), hn_dim(heads));
    }
}

static void attention_infer(HnInfer *x)
{
    const HnAttention *p = x->params;
    int rank = hn_infer_rank(x, Q);
    HnDtype dq = hn_infer_dtype(x, Q), dv = hn_infer_dtype(x, V);
    HnDim q[4], k[4], v[4], past[4];
    for (int i = Q; i <= V; i++) {
        int r = hn_infer_rank(x, i);
        if (r >= 0 && r != 3 && r != 4) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, neither 3 nor 4", i, r);
            return;
        }
        if (r == 3 && (p->q_heads == 0 || p->kv_heads == 0)) {
            hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "attribute '%s_num_heads' is missing", p->q_heads == 0 ? "q" : "kv");
            return;
        }
    }
    infer_form(x, Q, p->q_heads, q);
    infer_form(x, K, p->kv_heads, k);
    infer_form(x, V, p->kv_heads, v);
    infer_form(x, PAST_K, 0, past);
    if (hn_dim_differ(q[0], k[0]) || hn_dim_differ(k[0], v[0]) || hn_dim_differ(k[1], v[1]) ||
        hn_dim_differ(k[2], v[2]) || hn_dim_differ(q[3], k[3])) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the shapes of query, key and value do not fit");
        return;
    }
    HnDim total = hn_infer_has(x, PAST_K) ? hn_dim_add(past[2], k[2]) : k[2];
    HnDim flat[3] = { q[0], q[2], hn_dim_mul(q[1], v[3]) }, y[4] = { q[0], q[1], q[2], v[3] };
    hn_infer_out(x, Y, dq, rank, rank == 3 ? flat : y);
    if (x->n_out > PRESENT_K)
        hn_infer_out(x, PRESENT_K, dq, 4, (HnDim[4]){ k[0], k[1], total, k[3] });
    if (x->n_out > PRESENT_V)
        hn_infer_out(x, PRESENT_V, dv, 4, (HnDim[4]){ v[0], v[1], total, v[3] });
    if (x->n_out > QK)
        hn_infer_out(x, QK, dq, 4, (HnDim[4]){ q[0], q[1], q[2], total });
}

static void attention_cost(const HnInfer *x, HnCost *c)
{
    const HnAttention *p = x->params;
    HnDim q[4], k[4], v[4];
    infer_form(x, Q, p->q_heads, q);
    infer_form(x, K, p->kv_heads, k);
    infer_form(x, V, p->kv_heads, v);
    double total = (double)k[2].n;
    if (hn_infer_has(x, PAST_K) && hn_infer_rank(x, PAST_K) == 4)
        total += (double)hn_infer_dim(x, PAST_K, 2).n;
    c->flops = (double)q[0].n * (double)q[1].n * (double)q[2].n * total * (2 * (double)k[3].n + 2 * (double)v[3].n + 5);
}

/* --- reference --------------------------------------------------------------------------------------------------- */

/* Where a tensor's heads lie; strides in elements, vectors of `size` are contiguous. */
typedef struct {
    int64_t batch, heads, length, size;
    int64_t s_batch, s_head, s_token;
} Form;

typedef struct {
    Form q, k, v; /* k and v with the past in front */
    const void *k_data, *v_data;
    int64_t past, total;
    HnDtype dtype;
    double scale;
    double *mask; /* all of the mask's elements, -inf for FALSE; NULL: none */
    int64_t mask_strides[4], mask_length;
    const int64_t *nonpad; /* per batch; NULL: none */
} Job;

static gboolean form_of(HnEval *e, int i, int64_t heads, Form *f)
{
    const HnTensor *x = hn_eval_in(e, i);
    if (x->ndim == 4) {
        *f = (Form){ x->dims[0], x->dims[1], x->dims[2], x->dims[3], .s_token = x->dims[3] };
        f->s_head = f->length * f->size;
        f->s_batch = f->heads * f->s_head;
        return TRUE;
    }
    if (x->ndim == 3 && heads > 0 && x->dims[2] % heads == 0) {
        *f = (Form){ x->dims[0], heads, x->dims[1], x->dims[2] / heads, .s_token = x->dims[2] };
        f->s_head = f->size;
        f->s_batch = f->length * f->s_token;
        return TRUE;
    }
    hn_eval_fail(e, HN_ERROR_SHAPE, "input %d does not consist of %" PRId64 " heads", i, heads);
    return FALSE;
}

static gboolean is_cache(const HnTensor *t, const Form *f)
{
    return t->ndim == 4 && t->dims[0] == f->batch && t->dims[1] == f->heads && t->dims[3] == f->size;
}

static gboolean forms(HnEval *e, Job *j)
{
    const HnAttention *p = e->params;
    const HnTensor *x = hn_eval_in(e, Q), *nonpad = hn_eval_in(e, NONPAD);
    if (!form_of(e, Q, p->q_heads, &j->q) || !form_of(e, K, p->kv_heads, &j->k) || !form_of(e, V, p->kv_heads, &j->v))
        return FALSE;
    const Form *q = &j->q, *k = &j->k, *v = &j->v;
    const gboolean ranks = x->ndim == hn_eval_in(e, K)->ndim && x->ndim == hn_eval_in(e, V)->ndim;
    const gboolean groups = k->heads > 0 ? q->heads % k->heads == 0 : q->heads == 0;
    const gboolean values = q->batch == v->batch && k->heads == v->heads && k->length == v->length;
    if (!ranks || !groups || !values || q->batch != k->batch || q->size != k->size) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shapes of query, key and value do not fit");
        return FALSE;
    }
    for (int i = PAST_K; i <= PAST_V; i++) {
        const HnTensor *t = hn_eval_in(e, i);
        const HnTensor *first = hn_eval_in(e, PAST_K);
        if (t != NULL && (!is_cache(t, i == PAST_K ? k : v) || t->dims[2] != first->dims[2])) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "the shape of input %d does not fit that of input %d", i, i - PAST_K + K);
            return FALSE;
        }
        j->past = t != NULL ? t->dims[2] : 0;
    }
    if (!hn_add_i64(j->past, j->k.length, &j->total)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the cache is too long");
        return FALSE;
    }
    if (nonpad != NULL) {
        if (nonpad->n != j->q.batch) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input 6 has %" PRId64 " elements for a batch of %" PRId64, nonpad->n,
                         j->q.batch);
            return FALSE;
        }
        j->nonpad = nonpad->data;
        for (int64_t i = 0; i < nonpad->n; i++)
            if (j->nonpad[i] < 0 || j->nonpad[i] > j->total) {
                hn_eval_fail(e, HN_ERROR_VALUE, "length %" PRId64 " is outside [0, %" PRId64 "]", j->nonpad[i],
                             j->total);
                return FALSE;
            }
    }
    return TRUE;
}

/* The mask as doubles, with its strides through [batch, heads, queries, keys]. */
static gboolean load_mask(HnEval *e, Job *j)
{
    const HnAttention *p = e->params;
    const HnTensor *m = hn_eval_in(e, MASK);
    int64_t want[4] = { j->q.batch, j->q.heads, j->q.length, j->total };
    if (m == NULL)
        return TRUE;
    j->mask_length = m->ndim > 0 ? m->dims[m->ndim - 1] : 1;
    gboolean fits = m->ndim <= 4;
    for (int i = 4 - m->ndim; fits && i < 4; i++) {
        int64_t d = m->dims[i - (4 - m->ndim)];
        fits = d == 1 || d == want[i] || (i == 3 && p->short_mask && d < want[i]);
    }
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the mask does not broadcast to queries and keys");
        return FALSE;
    }
    hn_broadcast_strides(m, 4, j->mask_strides);
    if (j->mask_length == 1 && !p->short_mask)
        j->mask_length = j->total;
    if ((j->mask = hn_eval_scratch(e, m->n, sizeof *j->mask)) == NULL)
        return FALSE;
    if (m->dtype == HN_BOOL) {
        for (int64_t i = 0; i < m->n; i++)
            j->mask[i] = ((const uint8_t *)m->data)[i] ? 0 : -INFINITY;
        return TRUE;
    }
#define RUN(T)                         \
    for (int64_t i = 0; i < m->n; i++) \
        j->mask[i] = (double)((const T *)m->data)[i];
    HN_FOR_NUM(m->dtype, RUN)
#undef RUN
    return TRUE;
}

/* past and new tokens of all heads to y: [batch, heads, past + length, size]; f then describes y. */
static void join(const HnTensor *past, const HnTensor *x, Form *f, int64_t n_past, char *y)
{
    size_t elem = hn_dtype_size(x->dtype), row = (size_t)f->size * elem;
    const char *old = past != NULL ? past->data : NULL;
    for (int64_t b = 0; x->n + (past != NULL ? past->n : 0) > 0 && b < f->batch; b++)
        for (int64_t h = 0; h < f->heads; h++) {
            if (n_past > 0) {
                memcpy(y, old, row * (size_t)n_past);
                old += row * (size_t)n_past;
                y += row * (size_t)n_past;
            }
            for (int64_t t = 0; t < f->length; t++, y += row)
                memcpy(y, (const char *)x->data + (size_t)(b * f->s_batch + h * f->s_head + t * f->s_token) * elem,
                       row);
        }
    f->length += n_past;
    f->s_token = f->size;
    f->s_head = f->length * f->size;
    f->s_batch = f->heads * f->s_head;
}

/* Keys or values with their past: input `in` itself, or joined in output `out` or in scratch memory at *made. */
static const void *present(HnEval *e, const Job *j, int in, int out, Form *f, void **made)
{
    const HnTensor *x = hn_eval_in(e, in), *past = hn_eval_in(e, in - K + PAST_K);
    int64_t dims[4] = { f->batch, f->heads, j->total, f->size }, n;
    void *y = NULL;
    if (hn_eval_wants(e, out)) {
        if ((y = hn_eval_out(e, out, x->dtype, 4, dims)) == NULL)
            return NULL;
    } else if (past == NULL) {
        return x->data;
    } else if (!hn_dims_count(4, dims, &n)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the cache is too large");
        return NULL;
    } else if ((y = *made = hn_eval_scratch(e, n, hn_dtype_size(x->dtype))) == NULL) {
        return NULL;
    }
    join(past, x, f, j->past, y);
    return y;
}

/* Values in the queries' type, where the two differ: probabilities and values meet in one product. */
static const void *values_as(HnEval *e, const Job *j, const void *data, void **made)
{
    HnDtype from = hn_eval_in(e, V)->dtype;
    int64_t n = j->v.batch * j->v.s_batch;
    if (from == j->dtype)
        return data;
    if ((*made = hn_eval_scratch(e, n, hn_dtype_size(j->dtype))) == NULL)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        if (from == HN_F64)
            ((float *)*made)[i] = (float)((const double *)data)[i];
        else
            ((double *)*made)[i] = (double)((const float *)data)[i];
    return *made;
}

/* Bias of query i towards all keys. FALSE: it may look at none. */
static gboolean bias_row(const HnAttention *p, const Job *j, int64_t b, int64_t h, int64_t i, double *bias)
{
    const double *mask = NULL;
    gboolean any = FALSE;
    int64_t last = j->nonpad != NULL ? j->nonpad[b] : j->total;
    int64_t at = i + (j->nonpad != NULL ? j->nonpad[b] - j->q.length : j->past); /* the query's place among the keys */
    if (j->mask != NULL)
        mask = j->mask + b * j->mask_strides[0] + h * j->mask_strides[1] + i * j->mask_strides[2];
    for (int64_t k = 0; k < j->total; k++) {
        gboolean hidden = k >= last || (p->causal && k > at) || (p->left >= 0 && at - k > p->left) ||
                          (p->right >= 0 && k - at > p->right) || (mask != NULL && k >= j->mask_length);
        bias[k] = hidden ? -INFINITY : mask != NULL ? mask[k * j->mask_strides[3]] : 0;
        any = any || bias[k] != -INFINITY;
    }
    return any;
}

/*
 * One head. s: [queries, keys], holds Q K' and gets probabilities; qk: the same of the output, or NULL; bias: [keys].
 * What a bias of -inf hides counts for nothing, also where its product is infinite or NaN.
 */
#define DEFINE_SOFTMAX(T)                                                                                        \
    static void softmax_##T(const HnAttention *p, const Job *j, int64_t b, int64_t h, T *s, T *qk, double *bias) \
    {                                                                                                            \
        int64_t n = j->total;                                                                                    \
        for (int64_t i = 0; i < j->q.length; i++, s += n, qk = qk != NULL ? qk + n : NULL) {                     \
            double max = -INFINITY, sum = 0;                                                                     \
            gboolean any = bias_row(p, j, b, h, i, bias);                                                        \
            if (qk != NULL && p->mode == HN_QK_RAW)                                                              \
                memcpy(qk, s, (size_t)n * sizeof *s);                                                            \
            for (int64_t k = 0; k < n; k++) {                                                                    \
                double v = (double)s[k];                                                                         \
                if (p->softcap > 0)                                                                              \
                    v = tanh(v / p->softcap) * p->softcap;                                                       \
                double w = bias[k] == -INFINITY ? bias[k] : v + bias[k];                                         \
                if (qk != NULL && p->mode != HN_QK_RAW)                                                          \
                    qk[k] = (T)(p->mode == HN_QK_CAPPED ? v : w);                                                \
                bias[k] = w;                                                                                     \
                if (w > max || w != w)                                                                           \
                    max = w;                                                                                     \
            }                                                                                                    \
            if (max == -INFINITY)                                                                                \
                any = FALSE;                                                                                     \
            for (int64_t k = 0; any && k < n; k++)                                                               \
                sum += bias[k] = exp(bias[k] - max);                                                             \
            for (int64_t k = 0; k < n; k++)                                                                      \
                s[k] = any ? (T)(bias[k] / sum) : 0;                                                             \
            if (qk != NULL && p->mode == HN_QK_SOFTMAX)                                                          \
                memcpy(qk, s, (size_t)n * sizeof *s);                                                            \
        }                                                                                                        \
    }
DEFINE_SOFTMAX(float)
DEFINE_SOFTMAX(double)

/* s: [queries, keys] and bias: [keys], scratch; y in the layout `out`. */
static void run_head(const HnAttention *p, const Job *j, const void *q, int64_t b, int64_t h, const Form *out, void *y,
                     void *qk, void *s, double *bias)
{
    size_t elem = hn_dtype_size(j->dtype);
    int64_t g = h / (j->q.heads / j->k.heads);
    HnGemm product = {
        .m = j->q.length,
        .n = j->total,
        .k = j->q.size,
        .a = (const char *)q + (size_t)(b * j->q.s_batch + h * j->q.s_head) * elem,
        .a_row = j->q.s_token,
        .a_col = 1,
        .b = (const char *)j->k_data + (size_t)(b * j->k.s_batch + g * j->k.s_head) * elem,
        .b_row = 1,
        .b_col = j->k.s_token,
        .c = s,
        .c_row = j->total,
        .alpha = j->scale,
    };
    hn_gemm(j->dtype, &product);
    if (j->dtype == HN_F32)
        softmax_float(p, j, b, h, s, qk, bias);
    else
        softmax_double(p, j, b, h, s, qk, bias);
    HnGemm mix = {
        .m = j->q.length,
        .n = j->v.size,
        .k = j->total,
        .a = s,
        .a_row = j->total,
        .a_col = 1,
        .b = (const char *)j->v_data + (size_t)(b * j->v.s_batch + g * j->v.s_head) * elem,
        .b_row = j->v.s_token,
        .b_col = 1,
        .c = (char *)y + (size_t)(b * out->s_batch + h * out->s_head) * elem,
        .c_row = out->s_token,
        .alpha = 1,
    };
    hn_gemm(j->dtype, &mix);
}

/* Output Y and its layout: that of Q, with value vectors. */
static void *attention_out(HnEval *e, const Job *j, Form *out)
{
    const HnTensor *q = hn_eval_in(e, Q);
    int64_t dims[4] = { j->q.batch, j->q.heads, j->q.length, j->v.size };
    *out = (Form){ .s_token = j->v.size, .s_head = j->q.length * j->v.size };
    out->s_batch = j->q.heads * out->s_head;
    if (q->ndim == 3) {
        dims[1] = j->q.length;
        if (!hn_dims_count(2, (int64_t[2]){ j->q.heads, j->v.size }, &dims[2])) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "the output is too large");
            return NULL;
        }
        out->s_token = dims[2];
        out->s_head = j->v.size;
        out->s_batch = j->q.length * dims[2];
    }
    return hn_eval_out(e, Y, q->dtype, q->ndim, dims);
}

static void attention_ref(HnEval *e)
{
    const HnAttention *p = e->params;
    const HnTensor *q = hn_eval_in(e, Q);
    void *made[3] = { NULL, NULL, NULL }, *s = NULL, *qk = NULL;
    Job j = { .dtype = q->dtype };
    Form out;
    int64_t cells;
    if (!forms(e, &j))
        return;
    j.scale = isnan(p->scale) ? 1 / sqrt((double)j.q.size) : p->scale;
    void *y = attention_out(e, &j, &out);
    if (y != NULL && hn_eval_wants(e, QK))
        qk = hn_eval_out(e, QK, q->dtype, 4, (int64_t[4]){ j.q.batch, j.q.heads, j.q.length, j.total });
    double *bias = e->error == NULL ? hn_eval_scratch(e, j.total, sizeof *bias) : NULL;
    if (bias == NULL || !load_mask(e, &j) || (j.k_data = present(e, &j, K, PRESENT_K, &j.k, &made[0])) == NULL ||
        (j.v_data = present(e, &j, V, PRESENT_V, &j.v, &made[1])) == NULL ||
        (j.v_data = values_as(e, &j, j.v_data, &made[2])) == NULL)
        goto done;
    if (!hn_dims_count(2, (int64_t[2]){ j.q.length, j.total }, &cells)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " queries times %" PRId64 " keys are too many", j.q.length, j.total);
        goto done;
    }
    s = hn_eval_scratch(e, cells, hn_dtype_size(j.dtype));
    for (int64_t b = 0; s != NULL && j.k.heads > 0 && b < j.q.batch; b++)
        for (int64_t h = 0; h < j.q.heads; h++) {
            run_head(p, &j, q->data, b, h, &out, y, qk, s, bias);
            qk = qk != NULL ? (char *)qk + (size_t)cells * hn_dtype_size(j.dtype) : NULL;
        }
done:
    for (int i = 0; i < 3; i++)
        hn_eval_scratch_free(e, made[i]);
    hn_eval_scratch_free(e, bias);
    hn_eval_scratch_free(e, j.mask);
    hn_eval_scratch_free(e, s);
}

/* --- opsets that cannot say it ----------------------------------------------------------------------------------- */

typedef struct {
    const HnAttention *p;
    HnDtype dtype;        /* that is computed in */
    HnValue *q, *k, *v;   /* [batch, heads, length, size]; k and v with the past in front, as present shows them */
    HnValue *scores;      /* [batch, heads, queries, keys] */
    gboolean may_be_dead; /* a query may look at nothing */
} Parts;

/* Input i as [batch, heads, length, size]. */
static HnValue *part_heads(HnUnbind *u, int i, HnValue *v, int64_t heads)
{
    static const int64_t swap[] = { 0, 2, 1, 3 };
    if (hn_unbind_rank(u, i) == 4)
        return v;
    return hn_unbind_transpose(u, hn_unbind_reshape(u, v, (int64_t[]){ 0, 0, heads, -1 }, 4), swap, 4);
}

static HnValue *part_past(HnUnbind *u, int i, HnValue *v)
{
    return hn_unbind_in(u, i) != NULL ? hn_unbind_concat(u, 2, (HnValue *[]){ hn_unbind_in(u, i), v }, 2) : v;
}

/* Each key head `times` times, next to one another. */
static HnValue *part_repeat(HnUnbind *u, HnValue *v, int64_t times, int64_t heads)
{
    if (times == 1)
        return v;
    HnValue *shape[] = { hn_unbind_list(u, (int64_t[]){ 0, heads }, 2), hn_unbind_shape(u, v, 2, INT64_MAX) };
    HnValue *r = hn_unbind_op2(u, "Unsqueeze", v, hn_unbind_int(u, 2));
    r = hn_unbind_op2(u, "Expand", r, hn_unbind_list(u, (int64_t[]){ 1, 1, times, 1, 1 }, 5));
    return hn_unbind_op2(u, "Reshape", r, hn_unbind_concat(u, 2, shape, 0));
}

/* 0, 1, ... up to a size of v. */
static HnValue *part_count(HnUnbind *u, HnValue *v, int64_t axis)
{
    HnNode *n = hn_unbind_node(u, "Squeeze", 1, (HnValue *[]){ hn_unbind_shape(u, v, axis, axis + 1) }, 1);
    return hn_unbind_op3(u, "Range", hn_unbind_scalar(u, HN_I64, 0), hn_node_out(n, 0), hn_unbind_scalar(u, HN_I64, 1));
}

static HnValue *part_or(HnUnbind *u, HnValue *a, HnValue *b)
{
    return a != NULL ? hn_unbind_op2(u, "Or", a, b) : b;
}

/* Where frontier, window and padding hide keys: bool, broadcast to the scores; NULL: nowhere. */
static HnValue *part_hidden(HnUnbind *u, const Parts *s)
{
    const HnAttention *p = s->p;
    HnValue *nonpad = hn_unbind_in(u, NONPAD), *hidden = NULL;
    if (!p->causal && p->left < 0 && p->right < 0 && nonpad == NULL)
        return NULL;
    HnValue *key = part_count(u, s->k, 2);
    HnValue *at = hn_unbind_op2(u, "Unsqueeze", part_count(u, s->q, 2), hn_unbind_int(u, 1));
    if (nonpad != NULL) {
        nonpad = hn_unbind_reshape(u, nonpad, (int64_t[]){ -1, 1, 1, 1 }, 4);
        at = hn_unbind_op2(u, "Add", at, hn_unbind_op2(u, "Sub", nonpad, hn_unbind_shape(u, s->q, 2, 3)));
        hidden = hn_unbind_op2(u, "GreaterOrEqual", key, nonpad);
    } else if (hn_unbind_in(u, PAST_K) != NULL) {
        at = hn_unbind_op2(u, "Add", at, hn_unbind_shape(u, hn_unbind_in(u, PAST_K), 2, 3));
    }
    if (p->causal)
        hidden = part_or(u, hidden, hn_unbind_op2(u, "Greater", key, at));
    if (p->left >= 0)
        hidden = part_or(u, hidden,
                         hn_unbind_op2(u, "Greater", hn_unbind_op2(u, "Sub", at, key),
                                       hn_unbind_scalar(u, HN_I64, (double)p->left)));
    if (p->right >= 0)
        hidden = part_or(u, hidden,
                         hn_unbind_op2(u, "Greater", hn_unbind_op2(u, "Sub", key, at),
                                       hn_unbind_scalar(u, HN_I64, (double)p->right)));
    return hidden;
}

/* The mask in the type that is computed in, a short one filled up with -inf. */
static HnValue *part_mask(HnUnbind *u, const Parts *s)
{
    HnValue *mask = hn_unbind_in(u, MASK), *low = hn_unbind_scalar(u, s->dtype, -INFINITY);
    int rank = hn_unbind_rank(u, MASK);
    int64_t length = hn_unbind_dim(u, MASK, -1), keys = hn_unbind_dim(u, K, -2);
    if (hn_unbind_dtype(u, MASK) == HN_BOOL)
        mask = hn_unbind_op3(u, "Where", mask, hn_unbind_scalar(u, s->dtype, 0), low);
    else
        mask = hn_unbind_cast(u, mask, s->dtype);
    if (!s->p->short_mask || rank < 1 || (hn_unbind_in(u, PAST_K) == NULL && length == keys && keys >= 0))
        return mask;
    HnValue *given = hn_unbind_shape(u, hn_unbind_in(u, MASK), rank - 1, rank);
    HnValue *rest = hn_unbind_op2(u, "Sub", hn_unbind_shape(u, s->k, 2, 3), given);
    int64_t zeros[2 * HN_MAX_RANK] = { 0 };
    HnValue *pads[] = { hn_unbind_list(u, zeros, 2 * rank - 1), rest };
    return hn_unbind_op3(u, "Pad", mask, hn_unbind_concat(u, 2, pads, 0), low);
}

/* Products, cap, bias and probabilities; output QK is taken on the way. */
static HnValue *part_softmax(HnUnbind *u, Parts *s)
{
    const HnAttention *p = s->p;
    HnValue *r = s->scores, *qk = r, *hidden = part_hidden(u, s);
    if (p->softcap > 0) {
        HnValue *cap = hn_unbind_scalar(u, s->dtype, p->softcap);
        r = hn_unbind_op2(u, "Mul", hn_unbind_op1(u, "Tanh", hn_unbind_op2(u, "Div", r, cap)), cap);
    }
    qk = p->mode == HN_QK_CAPPED ? r : qk;
    if (hn_unbind_in(u, MASK) != NULL)
        r = hn_unbind_op2(u, "Add", r, part_mask(u, s));
    if (hidden != NULL)
        r = hn_unbind_op3(u, "Where", hidden, hn_unbind_scalar(u, s->dtype, -INFINITY), r);
    qk = p->mode == HN_QK_BIASED ? r : qk;
    HnValue *dead = NULL, *zero = s->may_be_dead ? hn_unbind_scalar(u, s->dtype, 0) : NULL;
    if (s->may_be_dead) { /* a row without NaN has gradients without NaN, too */
        HnValue *most = hn_unbind_reduce(u, "ReduceMax", r, (int64_t[]){ -1 }, 1, TRUE);
        dead = hn_unbind_op2(u, "Equal", most, hn_unbind_scalar(u, s->dtype, -INFINITY));
        r = hn_unbind_op3(u, "Where", dead, zero, r);
    }
    HnValue *y = hn_node_out(hn_unbind_node(u, "Softmax", 1, &r, 1), 0);
    if (dead != NULL)
        y = hn_unbind_op3(u, "Where", dead, zero, y);
    qk = p->mode == HN_QK_SOFTMAX ? y : qk;
    if (hn_unbind_wants(u, QK)) {
        HnDtype out = hn_unbind_out_dtype(u, QK);
        s->scores = out == s->dtype ? hn_unbind_op1(u, "Identity", qk) : hn_unbind_cast(u, qk, out);
    }
    return y;
}

/* Query and key heads; FALSE: refused, they are not known. */
static gboolean part_counts(HnUnbind *u, int64_t *q_heads, int64_t *kv_heads)
{
    const HnAttention *p = u->params;
    gboolean flat = hn_unbind_rank(u, Q) == 3;
    *q_heads = flat ? p->q_heads : hn_unbind_dim(u, Q, 1);
    *kv_heads = flat ? p->kv_heads : hn_unbind_dim(u, K, 1);
    for (int i = Q; i <= V; i++)
        if (hn_unbind_rank(u, i) != (flat ? 3 : 4))
            *kv_heads = -1;
    if (*q_heads <= 0 || *kv_heads <= 0 || *q_heads % *kv_heads != 0) {
        hn_unbind_refuse(u, "it has no counterpart in opset %" PRId64 ", and the numbers of heads are not known",
                         u->to);
        return FALSE;
    }
    return TRUE;
}

static void attention_decompose(HnUnbind *u)
{
    const HnAttention *p = u->params;
    static const int64_t swap[] = { 0, 2, 1, 3 }, turn[] = { 0, 1, 3, 2 };
    Parts s = { .p = p };
    int64_t q_heads, kv_heads;
    HnDtype dv = hn_unbind_dtype(u, V);
    if (!part_counts(u, &q_heads, &kv_heads))
        return;
    if (!hn_dtype_in(dv, HN_T_FLOATS)) {
        hn_unbind_refuse(u, "the type of input 2 is not known");
        return;
    }
    HnValue *q = hn_unbind_real(u, Q, &s.dtype);
    if (q == NULL)
        return;
    s.may_be_dead = hn_unbind_in(u, MASK) != NULL || hn_unbind_in(u, NONPAD) != NULL || p->left >= 0 || p->right >= 0;
    s.q = part_heads(u, Q, q, q_heads);
    s.k = part_past(u, PAST_K, part_heads(u, K, hn_unbind_in(u, K), kv_heads));
    s.v = part_past(u, PAST_V, part_heads(u, V, hn_unbind_in(u, V), kv_heads));
    HnDtype dk = hn_unbind_dtype(u, K);
    HnValue *k = part_repeat(u, dk == s.dtype ? s.k : hn_unbind_cast(u, s.k, s.dtype), q_heads / kv_heads, q_heads);
    HnValue *v = part_repeat(u, dv == s.dtype ? s.v : hn_unbind_cast(u, s.v, s.dtype), q_heads / kv_heads, q_heads);
    HnValue *scale;
    if (isnan(p->scale)) {
        HnValue *size = hn_unbind_cast(u, hn_unbind_shape(u, s.q, 3, 4), s.dtype);
        scale = hn_unbind_op1(u, "Reciprocal", hn_unbind_op1(u, "Sqrt", size));
    } else {
        scale = hn_unbind_scalar(u, s.dtype, p->scale);
    }
    HnValue *product = hn_unbind_op2(u, "MatMul", s.q, hn_unbind_transpose(u, k, turn, 4));
    s.scores = hn_unbind_op2(u, "Mul", product, scale);
    HnValue *y = hn_unbind_op2(u, "MatMul", part_softmax(u, &s), v);
    if (hn_unbind_rank(u, Q) == 3)
        y = hn_unbind_reshape(u, hn_unbind_transpose(u, y, swap, 4), (int64_t[]){ 0, 0, -1 }, 3);
    if (hn_unbind_wants(u, PRESENT_K))
        hn_unbind_take(u, PRESENT_K, hn_unbind_op1(u, "Identity", s.k));
    if (hn_unbind_wants(u, PRESENT_V))
        hn_unbind_take(u, PRESENT_V, hn_unbind_op1(u, "Identity", s.v));
    if (hn_unbind_wants(u, QK))
        hn_unbind_take(u, QK, s.scores);
    hn_unbind_give_up(u, PRESENT_K);
    hn_unbind_take_real(u, Y, y);
}

/* Opset 23 has neither windows (25), nor lengths (24), nor masks that end early (24): one of size 1 is for all keys. */
static void attention_unbind(HnUnbind *u)
{
    const HnAttention *p = u->params;
    int64_t length = hn_unbind_dim(u, MASK, -1), keys = hn_unbind_dim(u, K, -2);
    gboolean past = hn_unbind_in(u, PAST_K) != NULL;
    gboolean early = hn_unbind_in(u, MASK) != NULL && length >= 0 && (past || length != keys);
    const gboolean window = u->to < 25 && (p->left >= 0 || p->right >= 0);
    const gboolean nonpad = u->to < 24 && hn_unbind_in(u, NONPAD) != NULL;
    if (u->to < 23 || window || nonpad || (early && p->short_mask != (u->to >= 24)))
        attention_decompose(u);
}

/* Heads go as a whole. */
static gboolean attention_narrow(const HnNarrow *x)
{
    const HnAttention *p = x->params;
    const HnKept *k[3];
    for (int i = 0; i < 3; i++)
        k[i] = hn_narrow_in(x, i);
    if (k[0] == NULL && k[1] == NULL && k[2] == NULL)
        return TRUE;
    if (k[0] == NULL || k[1] == NULL || k[2] == NULL)
        return FALSE;
    if (p->q_heads == 0 || p->kv_heads == 0)
        return p->q_heads == p->kv_heads;
    if (p->q_heads * k[0]->left % k[0]->n != 0 || p->kv_heads * k[1]->left % k[1]->n != 0)
        return FALSE;
    hn_node_set_int(x->node, "q_num_heads", p->q_heads * k[0]->left / k[0]->n);
    hn_node_set_int(x->node, "kv_num_heads", p->kv_heads * k[1]->left / k[1]->n);
    return TRUE;
}

void hn_attention_batch(HnBatch *b)
{
    if (hn_batch_same_along(b, 3, 4))
        hn_batch_first_of(b, 1 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6);
}

const HnOp hn_op_attention = {
    .name = "Attention",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 23, 24, 25 },
    .forms = HN_FORMS({ "left_window_size", HN_ATTR_INT, .since = 25, .number = -1 },
                      { "right_window_size", HN_ATTR_INT, .since = 25, .number = -1 }),
    .in = "TTUVTUi",
    .out = "TTUT",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .V = HN_T_COMPUTE,
    .min_in = 3,
    .unbind = attention_unbind,
    .params_size = sizeof(HnAttention),
    .bind = attention_bind,
    .infer = attention_infer,
    .cost = attention_cost,
    .ref = attention_ref,
    .grad = hn_tape_apart,
    .batch = hn_attention_batch,
    .channels = { HN_CH_ATTENTION },
    .narrow = attention_narrow,
};
