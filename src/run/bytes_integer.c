/*
 * Planning: ConvInteger and MatMulInteger with the nodes behind them that make numbers of their sums: Cast, Mul by the
 * scales, Add of a bias, Relu or Clip. All of these are one step, whose scale and zero point of the activations may be
 * known at run time only (DynamicQuantizeLinear). Where all readers quantize the result, it is bytes at once.
 */
#include <math.h>

#include "op/ops.h"
#include "op/quantlinear.h"
#include "run/bytes.h"

typedef struct {
    HnPlan *p;
    HnNode *node[5]; /* behind the product */
    int n;
    HnValue *end; /* result of the last one */
    int64_t channels;
    gboolean is_conv;
    HnTensor *scale, *bias; /* constant: of the weights, or of both operands; NULL: none */
    HnValue *x_scale;       /* known at run time; NULL: `scale` is of both */
    HnNode *both;           /* makes the product of scales; NULL: a constant */
    float lo, hi;
} Chain;

/* The next node, the only reader of what there is so far. */
static HnNode *next_of(const Chain *c, const HnOp *op)
{
    HnNode *u = hn_bytes_stay(c->end) && c->end->users->len == 1 ? c->end->users->pdata[0] : NULL;
    return u != NULL && u->op != NULL && (op == NULL || u->op == op) && u->in->len <= 3 &&
                   !g_hash_table_contains(c->p->fused, u) && hn_bytes_dtype(c->p, hn_node_out(u, 0)) == HN_F32
               ? u
               : NULL;
}

static void take(Chain *c, HnNode *u)
{
    c->node[c->n++] = u;
    c->end = hn_node_out(u, 0);
}

/* t has one element, or one for each channel of the product's result, and broadcasts along it. */
static gboolean is_by_channel(const Chain *c, const HnTensor *t)
{
    const HnType *y = hn_types_get(c->p->types, c->end);
    if (t == NULL || t->dtype != HN_F32 || y == NULL || t->ndim > y->rank)
        return FALSE;
    if (t->n == 1)
        return TRUE;
    const int axis = (c->is_conv ? 1 : y->rank - 1) - (y->rank - t->ndim);
    return t->n == c->channels && axis >= 0 && t->dims[axis] == c->channels;
}

static HnTensor *known(const Chain *c, const HnValue *v)
{
    return v != NULL ? hn_types_value(c->p->types, v) : NULL;
}

static HnValue *other_than(const HnNode *n, const HnValue *v)
{
    HnValue *a = hn_node_in(n, 0), *b = hn_node_in(n, 1);
    return a == v ? b : b == v ? a : NULL;
}

static gboolean is_number(const Chain *c, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(c->p->types, v) : NULL;
    return hn_bytes_dtype(c->p, v) == HN_F32 && hn_type_count(t) == 1;
}

/* v, by which sums are multiplied: constant, or a number times a constant. */
static gboolean take_scale(Chain *c, HnValue *v)
{
    HnTensor *t = known(c, v);
    if (t != NULL) {
        c->scale = t;
        return is_by_channel(c, t);
    }
    HnNode *both = v != NULL ? v->producer : NULL;
    if (both == NULL || both->op != &hn_op_mul || both->version < 7)
        return FALSE;
    for (int i = 0; i < 2; i++) {
        HnValue *x = hn_node_in(both, i), *w = hn_node_in(both, 1 - i);
        if (known(c, w) == NULL || known(c, x) != NULL || !is_number(c, x) || hn_plan_held_as(c->p, x) != NULL)
            continue;
        c->scale = known(c, w);
        c->x_scale = x;
        c->both = both;
        return is_by_channel(c, c->scale);
    }
    return FALSE;
}

/* The product's zero point may be a number that is known at run time. */
static gboolean follow(Chain *c, const HnNode *n)
{
    HnNode *u;
    c->end = hn_node_out(n, 0);
    if ((u = next_of(c, &hn_op_cast)) == NULL)
        return FALSE;
    take(c, u);
    if ((u = next_of(c, &hn_op_mul)) == NULL || u->version < 7 || !take_scale(c, other_than(u, c->end)))
        return FALSE;
    take(c, u);
    if ((u = next_of(c, &hn_op_add)) != NULL && u->version >= 7 && is_by_channel(c, known(c, other_than(u, c->end)))) {
        c->bias = known(c, other_than(u, c->end));
        take(c, u);
    }
    c->lo = -INFINITY;
    c->hi = INFINITY;
    float lo, hi;
    for (int i = 0; i < 2; i++)
        if ((u = next_of(c, NULL)) != NULL && hn_node_in(u, 0) == c->end && hn_bytes_limits(c->p, u, &lo, &hi) &&
            MAX(lo, c->lo) <= MIN(hi, c->hi)) {
            c->lo = MAX(lo, c->lo);
            c->hi = MIN(hi, c->hi);
            take(c, u);
        }
    return TRUE;
}

/* One element, or one for each channel. */
static HnSlot *row_slot(const Chain *c, const HnTensor *t, gboolean each, GError **error)
{
    HnTensor *row = hn_tensor_new(HN_F32, each ? 1 : 0, &c->channels, NULL, error);
    if (row == NULL)
        return NULL;
    for (int64_t i = 0; i < row->n; i++)
        ((float *)row->data)[i] = t != NULL ? (float)hn_tensor_get_f64(t, t->n > 1 ? i : 0) : 1;
    return hn_bytes_constant(c->p, row);
}

static gboolean set_ports(const Chain *c, HnStep *s, const HnNode *n, GError **error)
{
    HnPlan *p = c->p;
    HnPort *in = s->in;
    if ((in[HN_QUANT_X].slot = hn_plan_slot(p, hn_node_in(n, 0), error)) == NULL ||
        (in[HN_QUANT_W].slot = hn_plan_slot(p, hn_node_in(n, 1), error)) == NULL)
        return FALSE;
    in[HN_QUANT_X_SCALE].slot =
        c->x_scale != NULL ? hn_plan_slot(p, c->x_scale, error) : row_slot(c, NULL, FALSE, error);
    in[HN_QUANT_W_SCALE].slot = row_slot(c, c->scale, c->scale->n > 1, error);
    if (in[HN_QUANT_X_SCALE].slot == NULL || in[HN_QUANT_W_SCALE].slot == NULL)
        return FALSE;
    in[HN_QUANT_X_ZERO].slot = hn_node_in(n, 2) != NULL ? hn_plan_slot(p, hn_node_in(n, 2), error)
                                                        : hn_bytes_scalar(p, NULL, hn_bytes_dtype(p, hn_node_in(n, 0)));
    if (in[HN_QUANT_X_ZERO].slot == NULL ||
        (hn_node_in(n, 3) != NULL && (in[HN_QUANT_W_ZERO].slot = hn_plan_slot(p, hn_node_in(n, 3), error)) == NULL))
        return FALSE;
    return c->bias == NULL || (in[HN_QUANT_BIAS].slot = row_slot(c, c->bias, TRUE, error)) != NULL;
}

gboolean hn_bytes_add_integer(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    Chain c = { .p = p, .is_conv = n->op == &hn_op_convinteger };
    const HnTensor *w = known(&c, hn_node_in(n, 1));
    if (w == NULL || w->ndim < 2 || (!c.is_conv && w->ndim != 2))
        return TRUE;
    c.channels = c.is_conv ? w->dims[0] : w->dims[1];
    if (!follow(&c, n))
        return TRUE;
    const HnWant *want = c.x_scale == NULL ? g_hash_table_lookup(p->wants, c.end) : NULL;
    HnQuantProduct params = { .lo = c.lo, .hi = c.hi };
    HnHeld *held = NULL;
    if (c.is_conv)
        params.conv = *(const HnConv *)n->params;
    if (want != NULL) {
        params.lo = MAX(params.lo, want->lo);
        params.hi = MIN(params.hi, want->hi);
    }
    HnStep *s = hn_step_new(p, n, HN_QUANT_INPUTS, 0, 1);
    s->op = c.is_conv ? &hn_op_quantconv : &hn_op_quantmatmul;
    s->params = g_memdup2(&params, sizeof params);
    g_ptr_array_add(p->owned, (gpointer)s->params);
    gboolean ok = set_ports(&c, s, n, error);
    if (ok && want != NULL) {
        s->in[HN_QUANT_Y_SCALE].slot = hn_bytes_scalar(p, want->step.scale_of, HN_F32);
        s->in[HN_QUANT_Y_ZERO].slot = hn_bytes_scalar(p, want->step.zero_of, want->step.dtype);
        const HnQuantBounds b = hn_quant_bounds(&params, want->step.dtype, want->step.scale, want->step.zero);
        held = hn_bytes_held(&want->step, (int)b.lo + want->step.zero, (int)b.hi + want->step.zero);
        s->out[0].slot = hn_bytes_slot(p, c.end, want->step.dtype, error);
    } else if (ok) {
        s->out[0].slot = hn_plan_result_slot(p, c.end, hn_types_get(p->types, c.end), error);
    }
    if (!ok || s->out[0].slot == NULL) {
        g_free(held);
        hn_step_free(s);
        return FALSE;
    }
    ok = hn_bytes_finish(p, s, done, error);
    if (!ok || !*done) {
        g_free(held);
        return ok;
    }
    if (held != NULL)
        g_hash_table_insert(p->held, c.end, held);
    for (int i = 0; i < c.n; i++)
        g_hash_table_add(p->fused, c.node[i]);
    if (c.both != NULL && hn_node_out(c.both, 0)->users->len == 1 && hn_bytes_stay(hn_node_out(c.both, 0)))
        g_hash_table_add(p->fused, c.both);
    return TRUE;
}
