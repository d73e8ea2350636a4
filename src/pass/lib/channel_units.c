/*
 * Channels that share a unit: how operators pass factors on.
 */
#include <math.h>

#include "op/clip.h"
#include "op/linear.h"
#include "pass/lib/channel_place.h"

/* A linear layer: channels that are read are along l->in of the weight, those that are made along l->out. */
static const char *multiply(HnChannels *c, const HnNode *n, const HnLinearView *l)
{
    const HnTensor *w = hn_channels_weight(c, l->w), *bias = hn_channels_weight(c, l->b);
    const HnChannelPlace *p = hn_channels_place(c, l->x);
    if (l->adjoint || l->x_turned || (l->window == NULL && w->ndim != 2))
        return "its weights are not read channel by channel";
    if (l->b != NULL && (bias == NULL || bias->ndim != 1))
        return "its bias is not a list of constants";
    int from_front = l->x_axis;
    if (p != NULL && p->at != NULL &&
        (hn_channels_size(c, l->x, &from_front) != p->n || from_front != p->axis || p->n != w->dims[l->in] * l->groups))
        return "it reads channels along another axis";
    const HnChannelPlace *q = hn_channels_make(c, hn_node_out(n, 0), l->y_axis, w->dims[l->out]);
    if (q == NULL || q->n % l->groups != 0 || (bias != NULL && bias->n != q->n))
        return "its result has other channels than its weights";
    HnChannelMember *m = hn_channels_member(c, n, l->w_in);
    hn_channels_makes(m, l->out, q->n, q->at);
    if (p != NULL && p->at != NULL)
        hn_channels_reads(m, l->in, l->groups, p->n, p->at);
    else
        hn_channels_lock_value(c, l->x, n, "its elements are of several channels");
    if (bias != NULL)
        hn_channels_makes(hn_channels_member(c, n, l->b_in), 0, q->n, q->at);
    return NULL;
}

/* A constant operand of an element-wise node lies along the channels of v: its axis; -1: it does not. */
static int along(const HnChannels *c, const HnTensor *t, const HnValue *v, const HnChannelPlace *p)
{
    const int axis = p->axis - (hn_channels_type(c, v)->rank - t->ndim);
    return axis >= 0 && axis < t->ndim && t->dims[axis] == p->n && t->n == p->n ? axis : -1;
}

/* x + constant. */
static const char *add_constant(HnChannels *c, const HnNode *n, int i)
{
    const HnValue *x = hn_node_in(n, 1 - i), *y = hn_node_out(n, 0);
    const HnTensor *t = hn_channels_weight(c, hn_node_in(n, i));
    const HnChannelPlace *p = hn_channels_place(c, x);
    const int axis = t != NULL && p != NULL && p->at != NULL ? along(c, t, x, p) : -1;
    if (axis < 0 || hn_channels_pass(c, x, y) == NULL)
        return "the constant has no number for each channel";
    hn_channels_makes(hn_channels_member(c, n, i), axis, p->n, p->at);
    return NULL;
}

/* x * constant: may take any units on. */
static const char *multiply_constant(HnChannels *c, const HnNode *n, int i)
{
    const char *const reason = "the constant has no number for each channel";
    const HnValue *x = hn_node_in(n, 1 - i), *y = hn_node_out(n, 0);
    const HnTensor *t = hn_channels_weight(c, hn_node_in(n, i));
    if (t == NULL || t->ndim == 0 || !hn_channels_is_data(c, x) || !hn_channels_is_data(c, y) ||
        hn_channels_type(c, x)->rank != hn_channels_type(c, y)->rank)
        return reason;
    hn_channels_lock_value(c, x, n, "it is multiplied by numbers that take other units on");
    int axis = -1;
    for (int k = 0; k < t->ndim; k++)
        if (t->dims[k] == t->n)
            axis = k - t->ndim;
    const HnChannelPlace *p = t->n > 1 ? hn_channels_make(c, y, axis, t->n) : NULL;
    if (p == NULL)
        return reason;
    hn_channels_makes(hn_channels_member(c, n, i), axis + t->ndim, p->n, p->at);
    return NULL;
}

static const char *normalize(HnChannels *c, const HnNode *n)
{
    const HnValue *y = hn_node_out(n, 0);
    const HnTensor *scale = hn_channels_weight(c, hn_node_in(n, 1)), *bias = hn_channels_weight(c, hn_node_in(n, 2));
    hn_channels_lock_value(c, hn_node_in(n, 0), n, "it is normalized");
    if (scale == NULL || scale->ndim != 1 || n->out->len > 1)
        return "its parameters are no lists of constants";
    if (hn_node_in(n, 2) != NULL && (bias == NULL || bias->n != scale->n || bias->ndim != 1))
        return "its parameters are no lists of constants";
    const HnChannelPlace *p = hn_channels_make(c, y, -1, scale->n);
    if (p == NULL)
        return "its result has other channels than its parameters";
    hn_channels_makes(hn_channels_member(c, n, 1), 0, p->n, p->at);
    if (bias != NULL)
        hn_channels_makes(hn_channels_member(c, n, 2), 0, p->n, p->at);
    return NULL;
}

/* All inputs have one unit, which the result has too. */
static const char *sum(HnChannels *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const HnChannelPlace *p = hn_channels_place(c, x);
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        const HnChannelPlace *q = hn_channels_place(c, v);
        if (!hn_channels_is_data(c, v) || q == NULL || q->at == NULL || p == NULL || p->at == NULL)
            return "it adds what has other channels";
        if (q->n != p->n || q->axis != p->axis || hn_channels_type(c, v)->rank != hn_channels_type(c, x)->rank)
            return "it adds what has other channels";
    }
    for (guint i = 1; i < n->in->len; i++)
        for (int64_t k = 0; k < p->n; k++)
            hn_channels_unite(c, p->at[k], hn_channels_place(c, n->in->pdata[i])->at[k]);
    return hn_channels_pass(c, x, y) != NULL ? NULL : "its result has other channels";
}

typedef struct {
    const HnChannels *c;
    const HnNode *n;
} Reader;

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const Reader *r = of;
    const HnValue *v = hn_node_in(r->n, i);
    const HnTensor *t = hn_channels_weight(r->c, v);
    if (t != NULL && t->n == 1)
        *x = hn_tensor_get_f64(t, 0);
    return v == NULL || (t != NULL && t->n == 1);
}

static const char *clip(HnChannels *c, const HnNode *n)
{
    HnClipped clipped = { hn_node_in(n, 0), INFINITY };
    double lo = -INFINITY;
    if (!hn_op_bounds(n->op, n->params, read_bound, &(Reader){ c, n }, &lo, &clipped.most) || lo != 0 ||
        clipped.most <= 0 || hn_channels_pass(c, clipped.v, hn_node_out(n, 0)) == NULL)
        return "it does not hold numbers between 0 and a bound";
    if (!isinf(clipped.most))
        g_array_append_val(c->clips, clipped);
    return NULL;
}

/* An input that is a weight; -1: none. */
static int constant_of(const HnNode *n)
{
    for (int i = 0; i < (int)n->in->len && i < 2; i++)
        if (hn_node_in(n, i) != NULL && hn_node_in(n, i)->weight != NULL)
            return i;
    return -1;
}

static const char *same_unit(HnChannels *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0);
    const HnChannelPlace *p = hn_channels_place(c, x);
    if (n->op->channels.kind == HN_CH_PLANES && (n->out->len != 1 || p == NULL || p->axis != 1))
        return "it does not work on each channel by itself";
    return hn_channels_pass(c, x, hn_node_out(n, 0)) != NULL ? NULL : "its result has other channels";
}

const char *hn_channels_follow_unit(HnChannels *c, HnNode *n)
{
    const HnChannelRule *rule = &n->op->channels;
    const int constant = constant_of(n);
    HnLinearView l;
    if (rule->unit == HN_UNIT_SAME)
        return same_unit(c, n);
    if (n->op->quant.clamps)
        return clip(c, n);
    if (rule->unit == HN_UNIT_NONE)
        return normalize(c, n);
    if (rule->unit == HN_UNIT_SUM)
        return constant >= 0 && n->in->len == 2 ? add_constant(c, n, constant) : sum(c, n);
    if (rule->unit == HN_UNIT_CONSTANT)
        return constant >= 0 ? multiply_constant(c, n, constant) : "it is multiplied by other channels";
    if (hn_op_is_linear(n->op))
        return hn_op_linear(n, &l) && hn_channels_weight(c, l.w) != NULL ? multiply(c, n, &l)
                                                                         : "its weights are not constant";
    if (n->op->quant.bytes == HN_QB_MOVES || (n->op->flags & HN_OP_VIEW) != 0)
        return hn_channels_move(c, n) ? NULL : "where it moves channels is not known";
    return "its result is in no unit of its input";
}
