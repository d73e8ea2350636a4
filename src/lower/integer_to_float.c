/*
 * hone.QuantConv and hone.QuantMatMul for ConvInteger and MatMulInteger with the nodes behind them that make numbers of
 * their sums: Cast, Mul by the scales, Add of a bias, Relu or Clip. The scale and zero point of the activations may be
 * known at run time only (DynamicQuantizeLinear).
 */
#include <math.h>

#include "lower/lower.h"
#include "op/quantlinear.h"
#include "pass/pattern.h"

typedef struct {
    HnRewrite *r;
    HnNode *last; /* of those behind the product */
    HnValue *end; /* its result */
    int64_t channels;
    gboolean is_conv;
    HnTensor *scale, *bias; /* constant: of the weights, or of both operands; NULL: none */
    HnValue *x_scale;       /* known at run time; NULL: `scale` is of both */
    double lo, hi;
} Chain;

/* v's type where it is a tensor of numbers of fixed shape: its rank; else -1. */
static int fixed_rank(const Chain *c, const HnValue *v)
{
    int64_t dims[HN_MAX_RANK];
    return hn_rw_dtype(c->r, v) == HN_F32 && hn_rw_fixed(c->r, v, dims) ? hn_rw_rank(c->r, v) : -1;
}

/* The next node, the only reader of what there is so far; NULL: there is none, or not of `op` (NULL: any). */
static HnNode *next_of(const Chain *c, const HnOp *op)
{
    HnNode *u = hn_rw_single(c->end) ? c->end->users->pdata[0] : NULL;
    return u != NULL && u->op != NULL && (op == NULL || u->op == op) && fixed_rank(c, hn_node_out(u, 0)) >= 0 ? u
                                                                                                              : NULL;
}

static void take(Chain *c, HnNode *u)
{
    c->last = u;
    c->end = hn_node_out(u, 0);
}

/* t has one element, or one for each channel of the product's result, and broadcasts along it. */
static gboolean is_by_channel(const Chain *c, const HnTensor *t)
{
    const int rank = hn_rw_rank(c->r, c->end);
    if (t == NULL || t->dtype != HN_F32 || t->ndim > rank)
        return FALSE;
    const int axis = (c->is_conv ? 1 : rank - 1) - (rank - t->ndim);
    return t->n == 1 || (t->n == c->channels && axis >= 0 && t->dims[axis] == c->channels);
}

static HnTensor *known(const Chain *c, const HnValue *v)
{
    return v != NULL ? hn_rw_known(c->r, v) : NULL;
}

static HnValue *other_than(const HnNode *n, const HnValue *v)
{
    return hn_node_in(n, 0) == v ? hn_node_in(n, 1) : hn_node_in(n, 0);
}

/* v, by which sums are multiplied: constant, or a number times a constant. */
static gboolean take_scale(Chain *c, HnValue *v)
{
    c->scale = known(c, v);
    if (c->scale != NULL)
        return is_by_channel(c, c->scale);
    const HnNode *both = hn_rw_maker(v, &hn_op_mul);
    if (both == NULL || both->version < 7)
        return FALSE;
    for (int i = 0; i < 2 && c->x_scale == NULL; i++) {
        HnValue *x = hn_node_in(both, i);
        c->scale = known(c, hn_node_in(both, 1 - i));
        if (c->scale != NULL && known(c, x) == NULL && fixed_rank(c, x) >= 0 && hn_type_count(hn_rw_type(c->r, x)) == 1)
            c->x_scale = x;
    }
    return c->x_scale != NULL && is_by_channel(c, c->scale);
}

static gboolean follow(Chain *c, const HnNode *n)
{
    double lo, hi;
    HnNode *u;
    c->end = hn_node_out(n, 0);
    if ((u = next_of(c, &hn_op_cast)) == NULL)
        return FALSE;
    take(c, u);
    if ((u = next_of(c, &hn_op_mul)) == NULL || u->version < 7 || !take_scale(c, other_than(u, c->end)))
        return hn_rw_miss(c->r, n, "the sums are not multiplied by known scales of the weights");
    take(c, u);
    if ((u = next_of(c, &hn_op_add)) != NULL && u->version >= 7 && is_by_channel(c, known(c, other_than(u, c->end)))) {
        c->bias = known(c, other_than(u, c->end));
        take(c, u);
    }
    for (int i = 0; i < 2; i++)
        if ((u = next_of(c, NULL)) != NULL && hn_node_in(u, 0) == c->end && hn_pattern_bounds(c->r, u, &lo, &hi) &&
            MAX(lo, c->lo) <= MIN(hi, c->hi)) {
            c->lo = MAX(lo, c->lo);
            c->hi = MIN(hi, c->hi);
            take(c, u);
        }
    return TRUE;
}

/* One element, or one for each channel, of t; NULL: 1. */
static HnTensor *row_of(const Chain *c, const HnTensor *t, gboolean each)
{
    HnTensor *row = hn_tensor_new(HN_F32, each ? 1 : 0, &c->channels, hn_rw_budget(c->r), NULL);
    for (int64_t i = 0; row != NULL && i < row->n; i++)
        ((float *)row->data)[i] = t != NULL ? (float)hn_tensor_get_f64(t, t->n > 1 ? i : 0) : 1;
    return row;
}

/* The inputs of the operator: values that are there, or tensors that have to become some. */
typedef struct {
    HnValue *v[HN_QUANT_INPUTS];
    HnTensor *t[HN_QUANT_INPUTS]; /* owned */
} Inputs;

static void set_inputs(const Chain *c, const HnNode *n, Inputs *in)
{
    *in = (Inputs){ .v = { [HN_QUANT_X] = hn_node_in(n, 0),
                           [HN_QUANT_X_SCALE] = c->x_scale,
                           [HN_QUANT_X_ZERO] = hn_node_in(n, 2),
                           [HN_QUANT_W] = hn_node_in(n, 1),
                           [HN_QUANT_W_ZERO] = hn_node_in(n, 3) } };
    for (int i = 0; i < HN_QUANT_INPUTS; i++)
        in->t[i] = in->v[i] != NULL ? hn_rw_tensor(c->r, in->v[i]) : NULL;
    in->t[HN_QUANT_W_SCALE] = row_of(c, c->scale, c->scale->n > 1);
    if (c->x_scale == NULL)
        in->t[HN_QUANT_X_SCALE] = row_of(c, NULL, FALSE);
    if (in->v[HN_QUANT_X_ZERO] == NULL)
        in->t[HN_QUANT_X_ZERO] = hn_tensor_new(in->t[HN_QUANT_X]->dtype, 0, NULL, NULL, NULL);
    if (c->bias != NULL)
        in->t[HN_QUANT_BIAS] = row_of(c, c->bias, TRUE);
}

static gboolean runs(const Chain *c, const HnNode *n, const HnOp *op, const Inputs *in)
{
    HnQuantProduct params = { .lo = (float)c->lo, .hi = (float)c->hi };
    HnTensor *y = hn_rw_tensor(c->r, c->end);
    if (c->is_conv)
        params.conv = *(const HnConv *)n->params;
    const gboolean ok = hn_rw_runs(c->r, &(HnDraft){ op, &params, in->t, HN_QUANT_INPUTS, y });
    hn_tensor_unref(y);
    return ok || hn_rw_miss(c->r, n, "no kernel takes the product");
}

static gboolean replace(const Chain *c, const HnNode *n, const HnOp *op, Inputs *in)
{
    for (int i = 0; i < HN_QUANT_INPUTS; i++)
        if (in->v[i] == NULL && in->t[i] != NULL)
            in->v[i] = hn_rw_weight(c->r, n->graph, "step", hn_tensor_ref(in->t[i]));
    HnNode *m = hn_rw_add_internal(c->r, c->last, op, in->v, HN_QUANT_INPUTS);
    hn_node_share_attrs(m, n);
    if (isfinite(c->lo))
        hn_node_set_float(m, "lo", (float)c->lo);
    if (isfinite(c->hi))
        hn_node_set_float(m, "hi", (float)c->hi);
    return hn_rw_take(c->r, m, c->last);
}

static gboolean integer_to_float(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_convinteger && n->op != &hn_op_matmulinteger)
        return FALSE;
    Chain c = { .r = r, .is_conv = n->op == &hn_op_convinteger, .lo = -(double)INFINITY, .hi = (double)INFINITY };
    const HnTensor *w = known(&c, hn_node_in(n, 1));
    int64_t dims[HN_MAX_RANK];
    if (w == NULL || w->ndim < 2 || (!c.is_conv && w->ndim != 2) || !hn_rw_fixed(r, hn_node_in(n, 0), dims))
        return FALSE;
    c.channels = c.is_conv ? w->dims[0] : w->dims[1];
    if (!follow(&c, n))
        return FALSE;
    const HnOp *op = c.is_conv ? &hn_op_quantconv : &hn_op_quantmatmul;
    Inputs in;
    set_inputs(&c, n, &in);
    const gboolean ok = runs(&c, n, op, &in) && hn_rw_go(r, n) && replace(&c, n, op, &in);
    for (int i = 0; i < HN_QUANT_INPUTS; i++)
        hn_tensor_unref(in.t[i]);
    return ok;
}

const HnPass hn_pass_integer_to_float = {
    .name = "integer-to-float",
    .summary = "a product of integers and what makes numbers of its sums as one",
    .level = 2,
    .node = integer_to_float,
};
