/*
 * BatchNormalization, Add, Sub, Mul, Div by constants in front of a product with constant weights go into these: a
 * factor for each input channel into the weights, a summand, through the weights, into the bias. Padding is not
 * shifted, so that summands only go into convolutions without. What ends a function that others know as a whole
 * (LayerNormalization, Gelu written out) stays in front.
 */
#include "pass/lib/weights.h"

/* Where the data of a product has its channels. */
typedef struct {
    int in; /* input with the data */
    int rank, axis;
    int64_t channels;
    HnWeightsView view; /* of the weights: b are the channels */
} Entry;

static gboolean entry_of(const HnRewrite *r, const HnLinear *l, const HnValue *y, Entry *e)
{
    const HnLinearView *v = &l->view;
    *e = (Entry){ .in = v->x_in, .rank = v->b_in < 0 ? hn_rw_rank(r, y) : l->w->ndim };
    e->axis = v->x_axis < 0 ? v->x_axis + e->rank : v->x_axis;
    e->view = hn_linear_weights(l, v->in);
    e->channels = e->view.b * e->view.g;
    return e->axis >= 0 && e->view.a > 0;
}

static gboolean is_padded(const HnWindow *w)
{
    for (int i = 0; w->pad_mode == HN_PAD_EXPLICIT && w->pads != NULL && i < 2 * w->n; i++)
        if (w->pads[i] != 0)
            return TRUE;
    return w->pad_mode == HN_PAD_SAME_UPPER || w->pad_mode == HN_PAD_SAME_LOWER;
}

/* NULL: the product can take up summands. */
static const char *shift_obstacle(const HnLinear *l)
{
    if (l->view.adjoint)
        return "the borders of a transposed convolution get fewer summands";
    if (l->view.window != NULL && is_padded(l->view.window))
        return "the padding behind it is not shifted";
    if (l->view.b_in < 0 && (l->add == NULL || l->w->ndim != 2))
        return "the product has no bias to take up a summand";
    return l->b != NULL && l->bias == NULL ? "the bias is not one constant for each channel" : NULL;
}

static gboolean made_by(const HnValue *v, const HnOp *op)
{
    return v != NULL && v->producer != NULL && v->producer->op == op;
}

/* v is 1 + erf() or tanh(), or one of these. */
static gboolean is_gate(const HnValue *v)
{
    for (int depth = 0; depth < 3 && v != NULL && v->producer != NULL; depth++) {
        const HnNode *n = v->producer;
        if (n->op == &hn_op_erf || n->op == &hn_op_tanh)
            return TRUE;
        if (n->op != &hn_op_add && n->op != &hn_op_mul)
            return FALSE;
        v = hn_node_in(n, 0)->producer != NULL ? hn_node_in(n, 0) : hn_node_in(n, 1);
    }
    return FALSE;
}

/* What is affine behind x ends a normalization or Gelu. */
static gboolean is_end_of_function(const HnRewrite *r, const HnValue *x)
{
    for (int depth = 0; depth < 3 && x->producer != NULL; depth++) {
        const HnNode *n = x->producer;
        const HnValue *data = hn_affine_data(r, n);
        if (data != NULL) {
            x = data;
            continue;
        }
        if (n->op == &hn_op_div)
            return TRUE;
        if (n->op != &hn_op_mul)
            return FALSE;
        for (int i = 0; i < 2; i++) {
            const HnValue *v = hn_node_in(n, i);
            if (made_by(v, &hn_op_reciprocal) || made_by(v, &hn_op_sqrt) || made_by(v, &hn_op_pow) ||
                made_by(v, &hn_op_div) || is_gate(v))
                return TRUE;
        }
        return FALSE;
    }
    return FALSE;
}

/* The bias with what the summands make of it; NULL: no memory. */
static HnTensor *shifted_bias(const HnRewrite *r, const HnLinear *l, const Entry *e, const HnAffine *a)
{
    g_autofree double *dot = hn_weights_dot(l->w, &e->view, a->shift);
    const int64_t taps = l->view.window != NULL ? e->view.inner : 1;
    g_autofree double *sum = g_new0(double, (gsize)l->channels);
    for (int64_t i = 0; i < l->channels; i++) {
        for (int64_t t = 0; t < taps; t++)
            sum[i] += dot[i * taps + t];
        sum[i] = l->view.alpha * sum[i] + (l->bias != NULL ? l->view.beta * l->bias[i] : 0);
    }
    return hn_linear_bias(r, l, sum);
}

static gboolean fuse_into_next_weights(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_affine_data(r, n), *y = hn_node_out(n, 0);
    HnNode *next = x != NULL && hn_rw_single(y) ? y->users->pdata[0] : NULL;
    g_auto(HnLinear) l = { 0 };
    g_auto(HnAffine) a = { 0 };
    g_autoptr(HnTensor) w = NULL, b = NULL;
    Entry e;
    if (next == NULL || next->graph != n->graph || !hn_linear_from(r, next, &l) || l.w == NULL)
        return FALSE;
    if (!entry_of(r, &l, y, &e) || hn_node_in(next, e.in) != y)
        return FALSE;
    const char *label = hn_node_label(next);
    if (hn_rw_rank(r, x) != e.rank || !hn_dim_is(hn_rw_dim(r, x, e.axis), e.channels) ||
        !hn_affine_read(r, n, e.rank, e.axis, e.channels, &a))
        return hn_rw_miss(r, n, "its constant is not one number for each input channel of '%s'", label);
    if (!a.scales && !a.shifts)
        return FALSE;
    const char *obstacle = a.shifts ? shift_obstacle(&l) : NULL;
    if (obstacle != NULL)
        return hn_rw_miss(r, n, "%s", obstacle);
    if (is_end_of_function(r, x))
        return hn_rw_miss(r, n, "it ends a function that is known as a whole");
    HnValue *weight = l.view.w;
    if (a.scales && !hn_weights_own(r, weight))
        return hn_rw_miss(r, n, "the weights of '%s' are used by others too", label);
    w = a.scales ? hn_weights_scaled(l.w, &e.view, a.scale, hn_rw_budget(r)) : NULL;
    b = a.shifts ? shifted_bias(r, &l, &e, &a) : NULL;
    const gboolean good_w = !a.scales || (w != NULL && hn_weights_good(w, l.w));
    if (!good_w || (a.shifts && (b == NULL || !hn_weights_good(b, NULL))))
        return hn_rw_miss(r, n, "the weights of '%s' would not be finite, or lose digits", label);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, next, e.in, x);
    if (w != NULL)
        hn_rw_set_in(r, next, l.view.w_in, hn_rw_weight(r, next->graph, weight->name, g_steal_pointer(&w)));
    if (b != NULL)
        hn_linear_set_bias(r, &l, g_steal_pointer(&b));
    if (l.add != NULL)
        hn_rw_done(r, l.add);
    return hn_rw_done(r, next);
}

const HnPass hn_pass_fuse_into_next_weights = {
    .name = "fuse-into-next-weights",
    .summary = "BatchNormalization, Add, Sub, Mul, Div by constants into the weights of the product behind them",
    .level = 1,
    .node = fuse_into_next_weights,
};
