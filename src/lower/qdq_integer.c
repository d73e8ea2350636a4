/*
 * Inside of the pass fuse-qdq: convolutions, products, sums and means that are computed with integers.
 */
#include <math.h>

#include "lower/qdq_value.h"
#include "op/linear.h"
#include "op/quantbinary.h"
#include "op/quantize.h"
#include "op/quantlinear.h"
#include "op/quantpool.h"
#include "op/reduce.h"

#define ALONG 10 /* element-wise nodes between a product and a sum */

/* --- products with constant weights --------------------------------------------------------------------------------
 */

typedef struct {
    HnQdqInputs in;
    HnQuantProduct params;
    const HnOp *op;
    const HnNode *window; /* whose attributes the convolution has; NULL: a product of matrices */
} Product;

/* The constant bytes that v is made of, with scales for all of it or for each index of `axis`. */
static gboolean take_weights(HnRewrite *r, const HnValue *v, int axis, Product *o)
{
    HnQParams q;
    if (v == NULL || !hn_op_qparams(v->producer, hn_qdq_known, r, &q) || !q.back || hn_qdq_dtype(r, v) != HN_F32)
        return FALSE;
    const HnTensor *w = hn_rw_known(r, q.q);
    if (w == NULL || !hn_qdq_is_byte(w->dtype) || w->ndim <= axis || (q.zero != NULL && q.zero->dtype != w->dtype))
        return FALSE;
    hn_qdq_set(r, &o->in, HN_QUANT_W, q.q);
    hn_qdq_set(r, &o->in, HN_QUANT_W_SCALE, q.scale_of);
    hn_qdq_set(r, &o->in, HN_QUANT_W_ZERO, q.zero_of);
    return q.axis < 0 || (q.block == 0 && q.axis == axis && q.scale->n == w->dims[axis]);
}

/* They count steps of the sums. */
static gboolean counts_steps(const HnTensor *ints, const HnQParams *q, float x_scale, const HnTensor *w_scale)
{
    gboolean fits =
        ints != NULL && ints->dtype == HN_I32 && ints->ndim == 1 && (q->scale->n == 1 || q->scale->n == ints->n);
    for (int64_t i = 0; fits && q->zero != NULL && i < q->zero->n; i++)
        fits = hn_tensor_get_i64(q->zero, i) == 0;
    for (int64_t i = 0; fits && i < ints->n; i++) {
        const double step = (double)x_scale * hn_tensor_get_f64(w_scale, w_scale->n > 1 ? i : 0);
        fits = (w_scale->n == 1 || w_scale->n == ints->n) &&
               fabs(hn_tensor_get_f64(q->scale, q->scale->n > 1 ? i : 0) - step) <= 1e-5 * step;
    }
    return fits;
}

/* The bias as integers where they count steps of the sums, else as numbers. FALSE: neither is known. */
static gboolean take_bias(HnRewrite *r, HnValue *v, float x_scale, Product *o)
{
    if (v == NULL)
        return TRUE;
    HnQParams q;
    const gboolean back = hn_op_qparams(v->producer, hn_qdq_known, r, &q) && q.back;
    if (back && counts_steps(hn_rw_known(r, q.q), &q, x_scale, o->in.t[HN_QUANT_W_SCALE]))
        v = q.q;
    HnTensor *t = hn_rw_known(r, v);
    if (t == NULL || (t->dtype != HN_F32 && t->dtype != HN_I32) || t->ndim < 1 || t->n != t->dims[t->ndim - 1])
        return FALSE;
    if (t->ndim == 1)
        hn_qdq_set(r, &o->in, HN_QUANT_BIAS, v);
    else
        hn_qdq_set_tensor(&o->in, HN_QUANT_BIAS, hn_tensor_reshaped(t, 1, &t->n));
    return TRUE;
}

/* What adds a vector along the product's columns, where that is all that reads v, the result without a bias; the vector
 * becomes one. NULL: nothing does. */
static HnNode *adding_reader(HnRewrite *r, const HnValue *v, float x_scale, Product *o)
{
    HnNode *u = hn_qdq_elementwise_reader(r, v);
    const HnTensor *w = o->in.t[HN_QUANT_W];
    if (u == NULL || u->op != &hn_op_add || o->window != NULL || o->in.t[HN_QUANT_BIAS] != NULL || u->version < 7)
        return NULL;
    HnValue *other = hn_node_in(u, hn_node_in(u, 0) == v ? 1 : 0);
    if (other == v || !take_bias(r, other, x_scale, o))
        return NULL;
    if (o->in.t[HN_QUANT_BIAS]->n == w->dims[o->params.turned ? 0 : 1])
        return u;
    hn_qdq_set(r, &o->in, HN_QUANT_BIAS, NULL);
    return NULL;
}

/* n multiplies input 0 by constant bytes. */
static gboolean product_of(HnRewrite *r, const HnNode *n, float x_scale, Product *o)
{
    HnLinearView l;
    if (!hn_op_linear(n, &l) || l.adjoint || l.x_turned || l.alpha != 1 || (l.beta != 1 && l.b != NULL))
        return FALSE;
    o->op = l.window != NULL ? &hn_op_quantconv : &hn_op_quantmatmul;
    o->params = (HnQuantProduct){ .lo = -INFINITY, .hi = INFINITY, .turned = l.w_turned };
    o->window = l.window != NULL ? n : NULL;
    if (l.window != NULL)
        o->params.conv = (HnConv){ .window = *l.window, .group = l.groups };
    return take_weights(r, l.w, l.out < 0 ? l.out + 2 : l.out, o) &&
           (l.window != NULL || o->in.t[HN_QUANT_W]->ndim == 2) && take_bias(r, l.b, x_scale, o);
}

/* The only consumer of v, where it does nothing but limit it. */
static HnNode *limiting_reader(const HnRewrite *r, const HnValue *v, float *lo, float *hi)
{
    HnNode *u = hn_rw_single(v) ? v->users->pdata[0] : NULL;
    return u != NULL && u->op != NULL && hn_node_in(u, 0) == v && hn_qdq_dtype(r, hn_node_out(u, 0)) == HN_F32 &&
                   hn_qdq_limits(r, u, lo, hi)
               ? u
               : NULL;
}

/* Limits, and what the result is quantized by. */
static void take_want(HnRewrite *r, HnQdqInputs *in, int scale, const HnQdqWant *want, float *lo, float *hi)
{
    *lo = MAX(*lo, want->lo);
    *hi = MIN(*hi, want->hi);
    hn_qdq_set_step(r, in, scale, &want->step);
}

gboolean hn_qdq_product(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    HnQdqReal h;
    HnQdqWant want;
    uint8_t map[HN_QDQ_BYTES];
    Product o = { .op = NULL };
    if (hn_qdq_dtype(r, v) != HN_F32 || !hn_qdq_real(r, x, &h))
        return FALSE;
    gboolean ok = hn_qdq_fits(&h, map) && product_of(r, n, h.step.scale, &o);
    const HnNode *add = ok ? adding_reader(r, v, h.step.scale, &o) : NULL;
    v = add != NULL ? hn_node_out(add, 0) : v;
    const gboolean bytes = ok && hn_qdq_wanted(r, v, &want);
    const HnNode *limit = ok && !bytes ? limiting_reader(r, v, &o.params.lo, &o.params.hi) : NULL;
    HnValue *to = limit != NULL ? hn_node_out(limit, 0) : v;
    if (ok) {
        hn_qdq_set_bytes(r, &o.in, HN_QUANT_X, &h);
        hn_qdq_set_step(r, &o.in, HN_QUANT_X_SCALE, &h.step);
        if (bytes)
            take_want(r, &o.in, HN_QUANT_Y_SCALE, &want, &o.params.lo, &o.params.hi);
        ok = hn_qdq_runs(r, o.op, &o.params, &o.in, to, bytes ? want.step.dtype : HN_F32) && hn_rw_go(r, n);
    }
    if (ok) {
        o.in.v[HN_QUANT_X] = hn_qdq_as_bytes(r, n, x, &h);
        HnNode *m = hn_qdq_add(r, n, o.op, &o.in, o.window);
        hn_qdq_set_limits(m, o.params.lo, o.params.hi);
        if (o.params.turned)
            hn_node_set_int(m, "turned", 1);
        hn_qdq_put(r, m, n, to, bytes ? &want : NULL);
    }
    hn_qdq_clear(&o.in);
    return ok;
}

gboolean hn_qdq_requantize(HnRewrite *r, HnNode *n)
{
    HnValue *v = hn_node_out(n, 0);
    HnQuantProduct params = *(const HnQuantProduct *)n->params;
    HnQdqInputs in = { .n = 0 };
    HnQdqWant want;
    if (hn_node_in(n, HN_QUANT_Y_SCALE) != NULL || hn_rw_known(r, hn_node_in(n, HN_QUANT_X_SCALE)) == NULL ||
        !hn_qdq_wanted(r, v, &want))
        return FALSE;
    for (int i = 0; i < (int)n->in->len; i++)
        hn_qdq_set(r, &in, i, hn_node_in(n, i));
    take_want(r, &in, HN_QUANT_Y_SCALE, &want, &params.lo, &params.hi);
    const gboolean ok = hn_qdq_runs(r, n->op, &params, &in, v, want.step.dtype) && hn_rw_go(r, n);
    if (ok) {
        HnNode *m = hn_qdq_add(r, n, n->op, &in, n);
        hn_qdq_set_limits(m, params.lo, params.hi);
        hn_qdq_put(r, m, n, v, &want);
    }
    hn_qdq_clear(&in);
    return ok;
}

/* --- two operands --------------------------------------------------------------------------------------------------
 */

HnNode *hn_qdq_elementwise_reader(const HnRewrite *r, const HnValue *v)
{
    if (v->is_output || v->users->len == 0)
        return NULL;
    HnNode *u = v->users->pdata[0];
    for (guint i = 1; i < v->users->len; i++)
        if (v->users->pdata[i] != u)
            return NULL;
    if (u->op == NULL || (u->op->flags & HN_OP_ELEMENTWISE) == 0 ||
        (u->op->flags & (HN_OP_VIEW | HN_OP_RANDOM | HN_OP_CONTROL)) != 0 ||
        hn_qdq_dtype(r, hn_node_out(u, 0)) != HN_F32)
        return NULL;
    for (guint k = 1; k < u->out->len; k++)
        if (u->out->pdata[k] != NULL)
            return NULL;
    return hn_rw_same_shape(r, v, hn_node_out(u, 0)) ? u : NULL;
}

/* Nodes behind n only limit its result, up to the last that computes element by element with it; what that makes. NULL:
 * there are others. */
static HnValue *limited(const HnRewrite *r, const HnNode *n, float *lo, float *hi)
{
    HnValue *v = hn_node_out(n, 0);
    *lo = -INFINITY;
    *hi = INFINITY;
    for (const HnNode *u; (u = hn_qdq_elementwise_reader(r, v)) != NULL; v = hn_node_out(u, 0)) {
        float from, to;
        if (hn_node_in(u, 0) != v || !hn_qdq_limits(r, u, &from, &to))
            return NULL;
        *lo = MAX(*lo, from);
        *hi = MIN(*hi, to);
    }
    return *lo <= *hi ? v : NULL;
}

/* An f32 kernel makes v, and can compute n along with it: a node of a group, or a product before which `bytes` are
 * there. */
static gboolean is_along(const HnRewrite *r, const HnValue *v, const HnNode *n, const HnValue *bytes)
{
    const HnNode *m = v->producer;
    if (hn_qdq_elementwise_reader(r, v) != n || m == NULL || m->op == NULL)
        return FALSE;
    if ((m->op->flags & HN_OP_ELEMENTWISE) != 0)
        return TRUE;
    return m->op->quant.kind == HN_Q_WEIGHTED &&
           (bytes->producer == NULL || hn_graph_index(n->graph, bytes->producer) < hn_graph_index(n->graph, m));
}

/* An operand at input i, whose scale and zero point are two others: bytes, or numbers. */
static gboolean set_operand(HnRewrite *r, HnQdqInputs *in, int i, int scale, HnValue *v, gboolean real,
                            const HnQdqReal *h)
{
    uint8_t map[HN_QDQ_BYTES];
    if (!real) {
        hn_qdq_set(r, in, i, v);
        return TRUE;
    }
    hn_qdq_set_bytes(r, in, i, h);
    hn_qdq_set_step(r, in, scale, &h->step);
    return hn_qdq_fits(h, map);
}

typedef struct {
    HnValue *v;
    gboolean real;
    HnQdqReal h;
} Operand;

static void read_operand(const HnRewrite *r, HnValue *v, Operand *o)
{
    o->v = v;
    o->real = hn_qdq_real(r, v, &o->h);
}

gboolean hn_qdq_binary(HnRewrite *r, HnNode *n)
{
    HnQuantBinary p = { .lo = 0 };
    HnQdqInputs in = { .n = 0 };
    HnQdqWant want;
    Operand a, b;
    if (n->op->quant.bytes != HN_QB_PAIR || n->version < 7)
        return FALSE;
    HnValue *to = limited(r, n, &p.lo, &p.hi);
    if (to == NULL || hn_qdq_dtype(r, to) != HN_F32)
        return FALSE;
    read_operand(r, hn_node_in(n, 0), &a);
    const gboolean turned = !a.real || !hn_rw_same_shape(r, a.v, to);
    if (turned)
        read_operand(r, hn_node_in(n, 1), &a);
    read_operand(r, hn_node_in(n, turned ? 0 : 1), &b);
    if (!a.real || !hn_rw_same_shape(r, a.v, to) || hn_qdq_dtype(r, b.v) != HN_F32 ||
        (!b.real && is_along(r, b.v, n, a.h.bytes)))
        return FALSE;
    p.minus_a = n->op == &hn_op_sub && turned;
    p.minus_b = n->op == &hn_op_sub && !turned;
    const HnOp *op = n->op == &hn_op_mul ? &hn_op_quantmul : &hn_op_quantadd;
    const gboolean bytes = hn_qdq_wanted(r, to, &want);
    gboolean ok = set_operand(r, &in, HN_QUANTBINARY_A, HN_QUANTBINARY_A_SCALE, a.v, a.real, &a.h) &&
                  set_operand(r, &in, HN_QUANTBINARY_B, HN_QUANTBINARY_B_SCALE, b.v, b.real, &b.h);
    if (bytes)
        take_want(r, &in, HN_QUANTBINARY_Y_SCALE, &want, &p.lo, &p.hi);
    ok = ok && hn_qdq_runs(r, op, &p, &in, to, bytes ? want.step.dtype : HN_F32) && hn_rw_go(r, n);
    if (ok) {
        in.v[HN_QUANTBINARY_A] = hn_qdq_as_bytes(r, n, a.v, &a.h);
        if (b.real)
            in.v[HN_QUANTBINARY_B] = hn_qdq_as_bytes(r, n, b.v, &b.h);
        HnNode *m = hn_qdq_add(r, n, op, &in, NULL);
        hn_lower_credit(r, m, to->producer);
        hn_qdq_set_limits(m, p.lo, p.hi);
        if (p.minus_a)
            hn_node_set_int(m, "minus_a", 1);
        if (p.minus_b)
            hn_node_set_int(m, "minus_b", 1);
        hn_qdq_put(r, m, n, to, bytes ? &want : NULL);
    }
    hn_qdq_clear(&in);
    return ok;
}

/* --- means ---------------------------------------------------------------------------------------------------------
 */

/* The mean over all axes from 2 on. */
static gboolean is_spatial_mean(const HnRewrite *r, const HnNode *n, int rank)
{
    const HnReduce *p = n->params;
    const HnTensor *t = hn_rw_known(r, hn_node_in(n, 1));
    const int64_t count = t != NULL ? t->n : p->axes != NULL ? p->n_axes : 0;
    unsigned seen = 0;
    for (int64_t i = 0; i < count && i < HN_MAX_RANK; i++) {
        const int64_t axis = t != NULL ? hn_tensor_get_i64(t, i) : p->axes[i];
        const int64_t at = axis < 0 ? axis + rank : axis;
        if (at < 2 || at >= rank)
            return FALSE;
        seen |= 1u << at;
    }
    return rank >= 3 && count == rank - 2 && seen == (1u << rank) - 4;
}

static gboolean mean_of(const HnRewrite *r, const HnNode *n, HnQuantPool *q)
{
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    const gboolean windows = n->op == &hn_op_averagepool, reduces = n->op == &hn_op_reducemean;
    *q = (HnQuantPool){ .whole = !windows, .lo = -INFINITY, .hi = INFINITY };
    if (windows)
        q->pool = *(const HnPool *)n->params;
    else if (reduces)
        q->flat = !((const HnReduce *)n->params)->keepdims;
    else if (n->op != &hn_op_globalaveragepool)
        return FALSE;
    return rank >= 3 && (!reduces || is_spatial_mean(r, n, rank));
}

gboolean hn_qdq_mean(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    HnQdqInputs in = { .n = 0 };
    HnQuantPool q;
    HnQdqReal h;
    HnQdqWant want;
    if (hn_qdq_dtype(r, v) != HN_F32 || !mean_of(r, n, &q) || !hn_qdq_real(r, x, &h))
        return FALSE;
    const gboolean bytes = hn_qdq_wanted(r, v, &want);
    gboolean ok = set_operand(r, &in, HN_MEAN_X, HN_MEAN_X_SCALE, x, TRUE, &h);
    if (bytes)
        take_want(r, &in, HN_MEAN_Y_SCALE, &want, &q.lo, &q.hi);
    ok = ok && hn_qdq_runs(r, &hn_op_quantaveragepool, &q, &in, v, bytes ? want.step.dtype : HN_F32) && hn_rw_go(r, n);
    if (ok) {
        in.v[HN_MEAN_X] = hn_qdq_as_bytes(r, n, x, &h);
        HnNode *m = hn_qdq_add(r, n, &hn_op_quantaveragepool, &in, q.whole ? NULL : n);
        hn_qdq_set_limits(m, q.lo, q.hi);
        if (q.whole)
            hn_node_set_int(m, "whole", 1);
        if (q.flat)
            hn_node_set_int(m, "flat", 1);
        hn_qdq_put(r, m, n, v, bytes ? &want : NULL);
    }
    hn_qdq_clear(&in);
    return ok;
}
