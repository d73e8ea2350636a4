/*
 * Expand, Tile or a filled tensor in front of an operator that broadcasts: it does that itself, where the other
 * operands are as large as the result. And recurrent operators begin with zeros all by themselves.
 */
#include "op/constant.h"
#include "pass/shapes.h"

#define MOST_OPERANDS 3

static const HnOp *const broadcasting[] = {
    &hn_op_add,
    &hn_op_sub,
    &hn_op_mul,
    &hn_op_div,
    &hn_op_pow,
    &hn_op_equal,
    &hn_op_less,
    &hn_op_and,
    &hn_op_or,
    &hn_op_greater,
    &hn_op_greaterorequal,
    &hn_op_lessorequal,
    &hn_op_xor,
    &hn_op_mod,
    &hn_op_where,
};

static gboolean broadcasts(const HnNode *n)
{
    for (gsize i = 0; i < G_N_ELEMENTS(broadcasting); i++)
        if (n->op == broadcasting[i])
            return n->version >= 7 && n->in->len <= MOST_OPERANDS;
    return FALSE;
}

/* Repeats of axes of one element only. */
static gboolean repeats_ones(const HnRewrite *r, const HnNode *tile)
{
    const HnValue *x = hn_node_in(tile, 0);
    for (int a = 0; a < hn_rw_rank(r, x); a++)
        if (!hn_dim_is(hn_rw_dim(r, x, a), 1) && !hn_rw_same_dim(r, x, a, hn_node_out(tile, 0), a))
            return FALSE;
    return hn_rw_rank(r, x) >= 0 && tile->in->len == 2;
}

/* Dimension of v along axis a of a result of that rank. */
static HnDim dim_of(const HnRewrite *r, const HnValue *v, int rank, int a)
{
    const int own = hn_rw_rank(r, v), at = a - (rank - own);
    return at >= 0 ? hn_rw_dim(r, v, at) : hn_dim(1);
}

/* With x (NULL: a scalar) for operand k of n the result has the shape that it has. */
static gboolean keeps_shape(const HnRewrite *r, const HnNode *n, int k, const HnValue *x)
{
    const HnType *t = hn_rw_type(r, hn_node_out(n, 0));
    if (t == NULL || t->rank < 0 || (x != NULL && hn_rw_rank(r, x) < 0))
        return FALSE;
    for (int i = 0; i < (int)n->in->len; i++)
        if (hn_rw_rank(r, hn_node_in(n, i)) < 0)
            return FALSE;
    int rank = x != NULL ? hn_rw_rank(r, x) : 0;
    for (int i = 0; i < (int)n->in->len; i++)
        rank = MAX(rank, i != k ? hn_rw_rank(r, hn_node_in(n, i)) : 0);
    if (rank != t->rank)
        return FALSE;
    for (int a = 0; a < rank; a++) {
        gboolean covered = hn_dim_is(t->dims[a], 1) || (x != NULL && hn_dim_equal(dim_of(r, x, rank, a), t->dims[a]));
        for (int i = 0; i < (int)n->in->len && !covered; i++)
            covered = i != k && hn_dim_equal(dim_of(r, hn_node_in(n, i), rank, a), t->dims[a]);
        if (!covered)
            return FALSE;
    }
    return TRUE;
}

static gboolean eliminate_filled(HnRewrite *r, HnNode *n, int k, const HnNode *filled)
{
    const HnTensor *value = ((const HnFilled *)filled->params)->value;
    if (!keeps_shape(r, n, k, NULL))
        return hn_rw_miss(r, n, "'%s' gives the result its shape", hn_node_in(n, k)->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    HnTensor *t = value != NULL ? hn_tensor_reshaped((HnTensor *)value, 0, NULL) : hn_tensor_scalar_f32(0);
    hn_rw_set_in(r, n, k, hn_rw_weight(r, n->graph, "value", t));
    return hn_rw_done(r, n);
}

static gboolean is_zero(const HnRewrite *r, const HnValue *v)
{
    const HnNode *n = v != NULL ? v->producer : NULL;
    double x;
    if (v == NULL)
        return FALSE;
    if (n != NULL && n->op == &hn_op_expand)
        return hn_rw_uniform(r, hn_node_in(n, 0), &x) && x == 0;
    if (n == NULL || n->op != &hn_op_constantofshape)
        return hn_rw_uniform(r, v, &x) && x == 0;
    const HnTensor *value = ((const HnFilled *)n->params)->value;
    return value == NULL || hn_tensor_get_f64(value, 0) == 0;
}

/* Inputs 5 and 6, the states to begin with. */
static gboolean eliminate_states(HnRewrite *r, HnNode *n)
{
    const gboolean h = is_zero(r, hn_node_in(n, 5)), c = n->op == &hn_op_lstm && is_zero(r, hn_node_in(n, 6));
    if ((!h && !c) || !hn_rw_go(r, n))
        return FALSE;
    if (c)
        hn_rw_set_in(r, n, 6, NULL);
    if (h)
        hn_rw_set_in(r, n, 5, NULL);
    return hn_rw_done(r, n);
}

static gboolean eliminate_expand(HnRewrite *r, HnNode *n)
{
    if (n->op == &hn_op_lstm || n->op == &hn_op_gru || n->op == &hn_op_rnn)
        return eliminate_states(r, n);
    if (n->op == NULL || !broadcasts(n) || !hn_value_is_read(hn_node_out(n, 0)))
        return FALSE;
    for (int k = 0; k < (int)n->in->len; k++) {
        const HnValue *v = hn_node_in(n, k);
        const HnNode *e = v != NULL ? v->producer : NULL;
        if (e == NULL || e->graph != n->graph)
            continue;
        if (e->op == &hn_op_constantofshape && eliminate_filled(r, n, k, e))
            return TRUE;
        if (e->op != &hn_op_expand && (e->op != &hn_op_tile || !repeats_ones(r, e)))
            continue;
        if (!keeps_shape(r, n, k, hn_node_in(e, 0))) {
            hn_rw_miss(r, n, "'%s' gives the result its shape", v->name);
            continue;
        }
        if (!hn_rw_go(r, n))
            return FALSE;
        hn_rw_set_in(r, n, k, hn_node_in(e, 0));
        return hn_rw_done(r, n);
    }
    return FALSE;
}

const HnPass hn_pass_eliminate_expand = {
    .name = "eliminate-expand",
    .summary =
        "remove Expand, Tile and filled tensors where an operator broadcasts, or begins with zeros, all the same",
    .level = 1,
    .node = eliminate_expand,
};
