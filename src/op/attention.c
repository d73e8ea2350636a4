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
#include "op/gemm.h"
#include "op/index.h"
#include "op/types.h"

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

static gboolean forms(HnEval *e, Job *j)
{
    const HnAttention *p = e->params;
    const HnTensor *x = hn_eval_in(e, Q), *nonpad = hn_eval_in(e, NONPAD);
    if (!form_of(e, Q, p->q_heads, &j->q) || !form_of(e, K, p->kv_heads, &j->k) || !form_of(e, V, p->kv_heads, &j->v))
        return FALSE;
    if (x->ndim != hn_eval_in(e, K)->ndim || x->ndim != hn_eval_in(e, V)->ndim || j->q.batch != j->k.batch ||
        j->q.batch != j->v.batch || j->k.heads != j->v.heads || j->k.length != j->v.length || j->q.size != j->k.size ||
        (j->k.heads > 0 ? j->q.heads % j->k.heads != 0 : j->q.heads != 0)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shapes of query, key and value do not fit");
        return FALSE;
    }
    for (int i = PAST_K; i <= PAST_V; i++) {
        const HnTensor *t = hn_eval_in(e, i), *k = hn_eval_in(e, PAST_K);
        const Form *f = i == PAST_K ? &j->k : &j->v;
        if (t != NULL && (t->ndim != 4 || t->dims[0] != f->batch || t->dims[1] != f->heads || t->dims[3] != f->size ||
                          t->dims[2] != k->dims[2])) {
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

const HnOp hn_op_attention = {
    .name = "Attention",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 23, 24, 25 },
    .in = "TTUVTUi",
    .out = "TTUT",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .V = HN_T_COMPUTE,
    .min_in = 3,
    .params_size = sizeof(HnAttention),
    .bind = attention_bind,
    .infer = attention_infer,
    .cost = attention_cost,
    .ref = attention_ref,
};
