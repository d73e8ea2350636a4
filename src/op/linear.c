#include "op/linear.h"

#include "op/ops.h"

static int rank_of(const HnValue *v)
{
    if (v->weight != NULL)
        return v->weight->ndim;
    return hn_type_rank(v->type);
}

static gboolean read_linear(const HnNode *n, int weight, HnLinearView *v)
{
    const HnLinearRule *r = n->op != NULL ? &n->op->linear : NULL;
    if (r == NULL || r->weight == 0 || hn_node_in(n, weight) == NULL)
        return FALSE;
    *v = (HnLinearView){ .x = hn_node_in(n, weight == 0 ? r->weight : 0),
                         .w = hn_node_in(n, weight),
                         .b = r->bias != 0 ? hn_node_in(n, r->bias) : NULL,
                         .x_in = weight == 0 ? r->weight : 0,
                         .w_in = weight,
                         .b_in = r->bias != 0 ? r->bias : -1,
                         .out = r->out,
                         .in = r->in,
                         .x_axis = r->x_axis,
                         .y_axis = r->y_axis,
                         .groups = 1,
                         .alpha = 1,
                         .beta = 1 };
    if (weight == 0) { /* columns of the data, rows of the weights */
        v->out = v->y_axis = -2;
        v->in = -1;
        v->x_axis = -2;
    } else if (r->read != NULL) {
        r->read(n->params, v);
    }
    const int rank = rank_of(v->w);
    if (rank >= 0 && rank < 2)
        return FALSE;
    v->out += v->out < 0 && rank >= 0 ? rank : 0;
    v->in += v->in < 0 && rank >= 0 ? rank : 0;
    return v->groups > 0;
}

gboolean hn_op_linear(const HnNode *n, HnLinearView *v)
{
    return read_linear(n, n->op != NULL ? n->op->linear.weight : 1, v);
}

gboolean hn_op_linear_first(const HnNode *n, HnLinearView *v)
{
    return n->op != NULL && n->op->linear.either && read_linear(n, 0, v);
}

/* It is of one element for each of the columns of v. */
static gboolean is_along(const HnValue *v, const HnTensor *t)
{
    const int rank = hn_type_rank(v->type);
    return t->ndim > 0 && t->n == t->dims[t->ndim - 1] && t->ndim <= rank && hn_dim_is(v->type->dims[rank - 1], t->n);
}

gboolean hn_op_is_bias(const HnNode *n)
{
    HnLinearView l;
    if (n->op != &hn_op_add || n->version < 7)
        return FALSE;
    const HnValue *v = hn_node_in(n, 0), *b = hn_node_in(n, 1);
    if (v->weight != NULL) {
        b = v;
        v = hn_node_in(n, 1);
    }
    if (b->weight == NULL || v->producer == NULL || v->producer->graph != n->graph || v->is_output ||
        v->users->len != 1)
        return FALSE;
    return hn_op_linear(v->producer, &l) && l.window == NULL && l.b == NULL && is_along(v, b->weight);
}

int64_t hn_linear_channels(const HnLinearView *v, const HnTensor *w)
{
    if (w->dims[0] % v->groups != 0)
        return 0;
    return v->out == 0 ? w->dims[0] : w->dims[v->out] * v->groups;
}
