/*
 * RotaryEmbedding: pairs of elements of each head's vector turned by an angle that depends on the token's position;
 * cosines and sines come from caches, looked up by position_ids where those are given. Element i pairs with i + half,
 * or, interleaved, 2i with 2i + 1.
 */
#include "op/rotary.h"
#include "op/tape.h"
#include "op/unbind.h"

static void rotary_bind(HnBind *b, void *params)
{
    HnRotary *p = params;
    p->heads = hn_bind_int(b, "num_heads", 0);
    p->dim = hn_bind_int(b, "rotary_embedding_dim", 0);
    p->interleaved = hn_bind_bool(b, "interleaved", FALSE);
    if (p->heads < 0 || p->dim < 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is negative",
                     p->heads < 0 ? "num_heads" : "rotary_embedding_dim");
    else if (p->dim % 2 != 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'rotary_embedding_dim' is %" PRId64 ", which is odd", p->dim);
}

static void rotary_infer(HnInfer *x)
{
    const HnRotary *p = x->params;
    int rank = hn_infer_rank(x, 0), cache = hn_infer_has(x, 3) ? 2 : 3;
    if (rank >= 0 && rank != 3 && rank != 4)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has %d dimensions, neither 3 nor 4", rank);
    else if (rank == 3 && p->heads == 0)
        hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "attribute 'num_heads' is missing");
    for (int i = 1; i < 3; i++)
        if (hn_infer_rank(x, i) >= 0 && hn_infer_rank(x, i) != cache)
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, not %d", i, hn_infer_rank(x, i), cache);
    hn_infer_same(x);
}

static void rotary_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 3 * hn_type_count(x->in[0]);
}

static const char *heads_of(const HnRotary *p, const HnTensor *x, HnRotaryForm *f)
{
    if (x->ndim == 4) {
        *f = (HnRotaryForm){ .batch = x->dims[0], .heads = x->dims[1], .length = x->dims[2], .head = x->dims[3] };
        f->s_token = f->head;
        f->s_head = f->length * f->head;
        f->s_batch = f->heads * f->s_head;
    } else if (x->ndim == 3 && p->heads > 0 && x->dims[2] % p->heads == 0) {
        *f = (HnRotaryForm){ .batch = x->dims[0], .heads = p->heads, .length = x->dims[1] };
        f->head = x->dims[2] / p->heads;
        f->s_token = x->dims[2];
        f->s_head = f->head;
        f->s_batch = f->length * f->s_token;
    } else {
        return "input 0 does not consist of that many heads";
    }
    const int64_t dim = p->dim > 0 ? p->dim : f->head;
    f->half = dim / 2;
    return dim > f->head || dim % 2 != 0 ? "so many elements of a head cannot be turned" : NULL;
}

static gboolean cache_fits(const HnRotaryForm *f, const HnTensor *t, const HnTensor *ids, int64_t positions)
{
    const int64_t by_id[] = { positions, f->half }, by_token[] = { f->batch, f->length, f->half };
    return ids != NULL ? hn_tensor_has_dims(t, 2, by_id) : hn_tensor_has_dims(t, 3, by_token);
}

const char *hn_rotary_form(const HnRotary *p, const HnTensor *x, const HnTensor *cosine, const HnTensor *sine,
                           const HnTensor *ids, HnRotaryForm *f)
{
    const char *reason = heads_of(p, x, f);
    if (reason != NULL)
        return reason;
    const int64_t positions = cosine->ndim > 0 ? cosine->dims[0] : 0, tokens[] = { f->batch, f->length };
    if (!cache_fits(f, cosine, ids, positions) || !cache_fits(f, sine, ids, positions))
        return "the shape of a cache does not fit input 0";
    return ids != NULL && !hn_tensor_has_dims(ids, 2, tokens) ? "input 3 does not hold a position per token" : NULL;
}

static gboolean check_ids(HnEval *e, const HnTensor *ids, int64_t positions)
{
    for (int64_t i = 0; i < ids->n; i++) {
        const int64_t id = ((const int64_t *)ids->data)[i];
        if (id >= 0 && id < positions)
            continue;
        hn_eval_fail(e, HN_ERROR_VALUE, "position %" PRId64 " is outside [0, %" PRId64 ")", id, positions);
        return FALSE;
    }
    return TRUE;
}

static void turn(const HnRotaryForm *f, gboolean interleaved, const float *x, float *y, const float *cos_cache,
                 const float *sin_cache, const int64_t *ids)
{
    for (int64_t b = 0; b < f->batch; b++)
        for (int64_t h = 0; h < f->heads; h++)
            for (int64_t t = 0; t < f->length; t++) {
                int64_t at = b * f->s_batch + h * f->s_head + t * f->s_token, token = b * f->length + t;
                const float *c = cos_cache + (ids != NULL ? ids[token] : token) * f->half;
                const float *s = sin_cache + (ids != NULL ? ids[token] : token) * f->half;
                for (int64_t i = 0; i < f->half; i++) {
                    int64_t j = at + (interleaved ? 2 * i : i), k = j + (interleaved ? 1 : f->half);
                    double u = (double)x[j], v = (double)x[k];
                    y[j] = (float)((double)c[i] * u - (double)s[i] * v);
                    y[k] = (float)((double)s[i] * u + (double)c[i] * v);
                }
                for (int64_t i = 2 * f->half; i < f->head; i++)
                    y[at + i] = x[at + i];
            }
}

static void rotary_ref(HnEval *e)
{
    const HnRotary *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *cosine = hn_eval_in(e, 1), *sine = hn_eval_in(e, 2), *ids = hn_eval_in(e, 3);
    HnRotaryForm f;
    void *y;
    const char *reason = hn_rotary_form(p, x, cosine, sine, ids, &f);
    if (reason != NULL) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%s", reason);
        return;
    }
    if ((ids != NULL && !check_ids(e, ids, cosine->dims[0])) || (y = hn_eval_out_like(e, 0, x)) == NULL || x->n == 0)
        return;
    turn(&f, p->interleaved, x->data, y, cosine->data, sine->data, ids != NULL ? ids->data : NULL);
}

static HnValue *turned(HnUnbind *u, const char *op, HnValue *a, HnValue *b, HnValue *c, HnValue *d)
{
    return hn_unbind_op2(u, op, hn_unbind_op2(u, "Mul", a, b), hn_unbind_op2(u, "Mul", c, d));
}

/* Cosines or sines as [batch, length, 1, half], in the type that is computed in. */
static HnValue *rotary_cache(HnUnbind *u, int i)
{
    HnDtype dtype;
    HnValue *v = hn_unbind_real(u, i, &dtype);
    if (v != NULL && hn_unbind_in(u, 3) != NULL)
        v = hn_unbind_op2(u, "Gather", v, hn_unbind_in(u, 3));
    return v != NULL ? hn_unbind_op2(u, "Unsqueeze", v, hn_unbind_int(u, 2)) : NULL;
}

/* On [batch, length, heads, size]: slices, products and sums. */
static void rotary_unbind(HnUnbind *u)
{
    const HnRotary *p = u->params;
    static const int64_t swap[] = { 0, 2, 1, 3 };
    int rank = hn_unbind_rank(u, 0);
    int64_t half = p->dim > 0 ? p->dim / 2 : hn_unbind_dim(u, 1, -1);
    HnDtype dtype;
    if (u->to >= 23)
        return;
    if (half < 0 || (rank != 3 && rank != 4)) {
        hn_unbind_refuse(u, "the operator exists since opset 23, and dimensions of input 0 or 1 are not known");
        return;
    }
    HnValue *x = hn_unbind_real(u, 0, &dtype), *cos = x != NULL ? rotary_cache(u, 1) : NULL;
    HnValue *sin = cos != NULL ? rotary_cache(u, 2) : NULL, *a, *b;
    if (sin == NULL)
        return;
    x = rank == 4 ? hn_unbind_transpose(u, x, swap, 4) : hn_unbind_reshape(u, x, (int64_t[]){ 0, 0, p->heads, -1 }, 4);
    HnValue *turn = p->dim > 0 ? hn_unbind_slice(u, x, 3, 0, 2 * half) : x;
    if (p->interleaved) {
        turn = hn_unbind_reshape(u, turn, (int64_t[]){ 0, 0, 0, half, 2 }, 5);
        a = hn_unbind_reshape(u, hn_unbind_slice(u, turn, 4, 0, 1), (int64_t[]){ 0, 0, 0, half }, 4);
        b = hn_unbind_reshape(u, hn_unbind_slice(u, turn, 4, 1, 2), (int64_t[]){ 0, 0, 0, half }, 4);
    } else {
        a = hn_unbind_slice(u, turn, 3, 0, half);
        b = hn_unbind_slice(u, turn, 3, half, 2 * half);
    }
    HnValue *real = turned(u, "Sub", a, cos, b, sin), *imaginary = turned(u, "Add", a, sin, b, cos);
    if (p->interleaved) {
        HnValue *axis = hn_unbind_int(u, 4);
        HnValue *pair[] = { hn_unbind_op2(u, "Unsqueeze", real, axis), hn_unbind_op2(u, "Unsqueeze", imaginary, axis) };
        turn = hn_unbind_reshape(u, hn_unbind_concat(u, 2, pair, 4), (int64_t[]){ 0, 0, 0, 2 * half }, 4);
    } else {
        turn = hn_unbind_concat(u, 2, (HnValue *[]){ real, imaginary }, 3);
    }
    if (p->dim > 0)
        turn = hn_unbind_concat(u, 2, (HnValue *[]){ turn, hn_unbind_slice(u, x, 3, 2 * half, INT64_MAX) }, 3);
    hn_unbind_take_real(u, 0,
                        rank == 4 ? hn_unbind_transpose(u, turn, swap, 4)
                                  : hn_unbind_reshape(u, turn, (int64_t[]){ 0, 0, -1 }, 3));
}

/* Gradients are turned back; those of the caches are sums over heads, and over tokens at one position. */
static void rotary_grad(HnTape *t)
{
    if (hn_tape_needs(t, 1) || hn_tape_needs(t, 2)) {
        hn_tape_apart(t);
        return;
    }
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, 1), hn_build_op1(t->build, "Neg", hn_tape_in(t, 2)),
                      hn_tape_in(t, 3) };
    HnNode *back = hn_build_node(t->build, "RotaryEmbedding", NULL, 4, in, 1);
    hn_node_share_attrs(back, t->node);
    hn_tape_give(t, 0, hn_node_out(back, 0));
}

const HnOp hn_op_rotaryembedding = {
    .name = "RotaryEmbedding",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 23 },
    .in = "TTTi",
    .out = "T",
    .T = HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16),
    .min_in = 3,
    .unbind = rotary_unbind,
    .params_size = sizeof(HnRotary),
    .bind = rotary_bind,
    .infer = rotary_infer,
    .cost = rotary_cost,
    .ref = rotary_ref,
    .grad = rotary_grad,
};
