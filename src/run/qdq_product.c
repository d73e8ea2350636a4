/*
 * Planning: products of numbers that are held as bytes with constant weights, in integers.
 */
#include <math.h>
#include <string.h>

#include "op/linear.h"
#include "op/ops.h"
#include "op/quantize.h"
#include "op/quantlinear.h"
#include "run/qdq_fusion.h"

/* --- products with constant weights --------------------------------------------------------------------------------
 */

typedef struct {
    HnTensor *w, *scale, *zero, *bias; /* zero, bias: NULL where absent */
    HnQuantProduct params;
    const HnOp *op;
} Product;

/* The constant bytes that v is made of, with scales for all of it or for each index of `axis`. */
static gboolean weights_of(const HnPlan *p, const HnValue *v, int axis, Product *o)
{
    HnQParams q;
    if (v == NULL || !hn_op_qparams(v->producer, hn_qdq_known, p->types, &q) || !q.back || hn_qdq_dtype(p, v) != HN_F32)
        return FALSE;
    o->w = hn_types_value(p->types, q.q);
    o->scale = q.scale;
    o->zero = q.zero;
    if (o->w == NULL || !hn_qdq_is_byte(o->w->dtype) || o->w->ndim <= axis)
        return FALSE;
    if (o->zero != NULL && o->zero->dtype != o->w->dtype)
        return FALSE;
    return q.axis < 0 || (q.block == 0 && q.axis == axis && q.scale->n == o->w->dims[axis]);
}

/* The bias as integers where they count steps of the sums, else as numbers. FALSE: neither is known. */
static gboolean bias_of(const HnPlan *p, const HnValue *v, float x_scale, Product *o)
{
    if (v == NULL)
        return TRUE;
    HnQParams q;
    const gboolean back = hn_op_qparams(v->producer, hn_qdq_known, p->types, &q) && q.back;
    HnTensor *ints = back ? hn_types_value(p->types, q.q) : NULL;
    const HnTensor *scale = back ? q.scale : NULL, *zero = back ? q.zero : NULL;
    gboolean fits = ints != NULL && ints->dtype == HN_I32 && ints->ndim == 1 && (scale->n == 1 || scale->n == ints->n);
    for (int64_t i = 0; fits && zero != NULL && i < zero->n; i++)
        fits = hn_tensor_get_i64(zero, i) == 0;
    for (int64_t i = 0; fits && i < ints->n; i++) {
        const double step = (double)x_scale * hn_tensor_get_f64(o->scale, o->scale->n > 1 ? i : 0);
        fits = (o->scale->n == 1 || o->scale->n == ints->n) &&
               fabs(hn_tensor_get_f64(scale, scale->n > 1 ? i : 0) - step) <= 1e-5 * step;
    }
    HnTensor *t = fits ? ints : hn_types_value(p->types, v);
    if (t == NULL || (t->dtype != HN_F32 && t->dtype != HN_I32) || t->ndim < 1 || t->n != t->dims[t->ndim - 1])
        return FALSE;
    o->bias = t;
    return TRUE;
}

/* n multiplies input 0 by constant bytes. */
static gboolean product_of(const HnPlan *p, const HnNode *n, float x_scale, Product *o)
{
    *o = (Product){ .params = { .lo = -INFINITY, .hi = INFINITY } };
    HnLinearView l;
    if (!hn_op_linear(n, &l) || l.adjoint || l.x_turned || l.alpha != 1 || (l.beta != 1 && l.b != NULL))
        return FALSE;
    o->op = l.window != NULL ? &hn_op_quantconv : &hn_op_quantmatmul;
    o->params.turned = l.w_turned;
    if (l.window != NULL)
        o->params.conv = (HnConv){ .window = *l.window, .group = l.groups };
    return weights_of(p, l.w, l.out < 0 ? l.out + 2 : l.out, o) && (l.window != NULL || o->w->ndim == 2) &&
           bias_of(p, l.b, x_scale, o);
}

/* The only reader of v, where it does nothing but limit it. */
static HnNode *limiting_reader(const HnPlan *p, const HnValue *v, float *lo, float *hi)
{
    HnNode *u = hn_qdq_stay(v) && v->users->len == 1 ? v->users->pdata[0] : NULL;
    return u != NULL && u->op != NULL && hn_node_in(u, 0) == v && hn_qdq_dtype(p, hn_node_out(u, 0)) == HN_F32 &&
                   hn_qdq_limits(p, u, lo, hi)
               ? u
               : NULL;
}

/* s, with these parameters, makes bytes in steps of `want`, limited as that says; what they stand for. */
static HnQdqValue *wanted_result(HnPlan *p, HnStep *s, HnQuantProduct *params, const HnRequantize *want)
{
    const HnQparams *to = &want->step;
    params->lo = MAX(params->lo, want->lo);
    params->hi = MIN(params->hi, want->hi);
    s->in[HN_QUANT_Y_SCALE].slot = hn_qdq_scalar(p, to->scale_of, HN_F32);
    s->in[HN_QUANT_Y_ZERO].slot = hn_qdq_scalar(p, to->zero_of, to->dtype);
    const HnQuantBounds b = hn_quant_bounds(params, to->dtype, to->scale, to->zero);
    return hn_qdq_held(to, (int)b.lo + to->zero, (int)b.hi + to->zero);
}

gboolean hn_qdq_add_product(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    HnValue *x = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    const HnQdqValue *h = hn_plan_quantized_as(p, x);
    const HnRequantize *want = g_hash_table_lookup(p->wants, v);
    Product o;
    if (h == NULL || hn_qdq_dtype(p, v) != HN_F32 || !product_of(p, n, h->step.scale, &o))
        return TRUE;
    GError *failure = NULL;
    HnSlot *from = hn_qdq_as_step(p, n, x, &failure);
    if (from == NULL) {
        if (failure != NULL)
            g_propagate_error(error, failure);
        return failure == NULL;
    }
    const HnQparams step = ((const HnQdqValue *)hn_plan_quantized_as(p, x))->step;
    HnStep *s = hn_step_new(p, n, HN_QUANT_INPUTS, 0, 1);
    s->op = o.op;
    s->in[HN_QUANT_X].slot = from;
    s->in[HN_QUANT_X_SCALE].slot = hn_qdq_scalar(p, step.scale_of, HN_F32);
    s->in[HN_QUANT_X_ZERO].slot = hn_qdq_scalar(p, step.zero_of, step.dtype);
    s->in[HN_QUANT_W].slot = hn_qdq_constant(p, hn_tensor_ref(o.w));
    s->in[HN_QUANT_W_SCALE].slot = hn_qdq_constant(p, hn_tensor_ref(o.scale));
    if (o.zero != NULL)
        s->in[HN_QUANT_W_ZERO].slot = hn_qdq_constant(p, hn_tensor_ref(o.zero));
    if (o.bias != NULL)
        s->in[HN_QUANT_BIAS].slot = hn_qdq_constant(p, hn_tensor_reshaped(o.bias, 1, &o.bias->n));
    HnQdqValue *made = NULL;
    HnNode *limit = want == NULL ? limiting_reader(p, v, &o.params.lo, &o.params.hi) : NULL;
    const HnValue *to = limit != NULL ? hn_node_out(limit, 0) : v;
    if (want != NULL) {
        made = wanted_result(p, s, &o.params, want);
    }
    gpointer params = g_memdup2(&o.params, sizeof o.params);
    g_ptr_array_add(p->owned, params);
    s->params = params;
    s->out[0].slot = want != NULL ? hn_qdq_slot(p, v, want->step.dtype, error)
                                  : hn_plan_result_slot(p, to, hn_types_get(p->types, to), error);
    if (s->out[0].slot == NULL || s->in[HN_QUANT_X_ZERO].slot == NULL) {
        g_free(made);
        hn_step_free(s);
        return FALSE;
    }
    const gboolean ok = hn_qdq_finish(p, s, done, error);
    if (ok && *done && made != NULL)
        g_hash_table_insert(p->held, v, made);
    else
        g_free(made);
    if (ok && *done && limit != NULL)
        g_hash_table_add(p->fused, limit);
    return ok;
}

gboolean hn_qdq_requantize(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    const HnValue *v = hn_node_out(n, 0);
    const HnRequantize *want = g_hash_table_lookup(p->wants, v);
    if (want == NULL || hn_types_value(p->types, hn_node_in(n, HN_QUANT_X_SCALE)) == NULL)
        return TRUE;
    HnQuantProduct *params = g_memdup2(n->params, sizeof *params);
    HnStep *s = hn_step_new(p, n, HN_QUANT_INPUTS, 0, 1);
    g_ptr_array_add(p->owned, params);
    s->params = params;
    gboolean ok = TRUE;
    for (int i = 0; i < (int)n->in->len && ok; i++)
        ok = hn_node_in(n, i) == NULL || (s->in[i].slot = hn_plan_slot(p, hn_node_in(n, i), error)) != NULL;
    HnQdqValue *made = ok ? wanted_result(p, s, params, want) : NULL;
    if (!ok || (s->out[0].slot = hn_qdq_slot(p, v, want->step.dtype, error)) == NULL) {
        g_free(made);
        hn_step_free(s);
        return FALSE;
    }
    ok = hn_qdq_finish(p, s, done, error);
    if (ok && *done)
        g_hash_table_insert(p->held, (gpointer)v, made);
    else
        g_free(made);
    return ok;
}
