/*
 * Arithmetic with a number that changes nothing, x + 0, x - 0, x * 1, x / 1, x ^ 1, and its like among truth values and
 * bits; Where that always chooses the same, or by the opposite of something. The constant may be smaller than x, but
 * not make the result larger than x.
 */
#include "pass/shapes.h"

typedef struct {
    const HnOp *op;
    double unit;
    gboolean left; /* the unit may be input 0, too */
} Unit;

static const Unit units[] = {
    { &hn_op_add, 0, TRUE },        { &hn_op_sub, 0, FALSE },      { &hn_op_mul, 1, TRUE },
    { &hn_op_div, 1, FALSE },       { &hn_op_pow, 1, FALSE },      { &hn_op_or, 0, TRUE },
    { &hn_op_and, 1, TRUE },        { &hn_op_xor, 0, TRUE },       { &hn_op_bitwiseor, 0, TRUE },
    { &hn_op_bitwisexor, 0, TRUE }, { &hn_op_bitshift, 0, FALSE },
};

/* What n makes is of x's shape, whatever the other input broadcasts. */
static gboolean keeps_shape(const HnRewrite *r, const HnNode *n, const HnValue *x, const HnValue *other)
{
    const HnTensor *t = hn_rw_const(r, other);
    if (hn_rw_same_shape(r, x, hn_node_out(n, 0)))
        return TRUE;
    if (t == NULL || t->n != 1)
        return FALSE;
    return t->ndim == 0 || t->ndim <= hn_rw_rank(r, x);
}

static gboolean eliminate_operand(HnRewrite *r, HnNode *n, const Unit *u)
{
    for (int i = 0; i < 2; i++) {
        HnValue *x = hn_node_in(n, 1 - i), *other = hn_node_in(n, i);
        double number;
        if (x == NULL || other == NULL || (i == 0 && !u->left))
            continue;
        if (!hn_rw_uniform(r, other, &number) || number != u->unit)
            continue;
        if (!keeps_shape(r, n, x, other))
            hn_rw_miss(r, n, "'%s' changes nothing but the shape", other->name);
        else if (hn_rw_bypass(r, n, hn_node_out(n, 0), x))
            return TRUE;
    }
    return FALSE;
}

/* The choices change places instead. */
static gboolean eliminate_not(HnRewrite *r, HnNode *n)
{
    const HnNode *not = hn_rw_maker(hn_node_in(n, 0), &hn_op_not);
    HnValue *yes = hn_node_in(n, 1), *no = hn_node_in(n, 2);
    if (not == NULL || !hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, hn_node_in(not, 0));
    hn_rw_set_in(r, n, 1, no);
    hn_rw_set_in(r, n, 2, yes);
    return hn_rw_done(r, n);
}

static gboolean eliminate_where(HnRewrite *r, HnNode *n)
{
    HnValue *yes = hn_node_in(n, 1), *no = hn_node_in(n, 2), *y = hn_node_out(n, 0);
    double number;
    HnValue *x = yes;
    if (yes != no) {
        if (!hn_rw_uniform(r, hn_node_in(n, 0), &number))
            return eliminate_not(r, n);
        x = number != 0 ? yes : no;
    }
    if (!hn_rw_same_shape(r, x, y))
        return hn_rw_miss(r, n, "the result may be larger than '%s'", x->name);
    return hn_rw_bypass(r, n, y, x);
}

static gboolean eliminate_unit(HnRewrite *r, HnNode *n)
{
    if (n->op == NULL || !hn_value_is_read(hn_node_out(n, 0)))
        return FALSE;
    if (n->op == &hn_op_where)
        return eliminate_where(r, n);
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++)
        if (n->op == units[i].op)
            return eliminate_operand(r, n, &units[i]);
    return FALSE;
}

const HnPass hn_pass_eliminate_unit = {
    .name = "eliminate-unit",
    .summary = "remove x + 0, x * 1, x / 1, x ^ 1, x and true, Where of one choice",
    .level = 1,
    .node = eliminate_unit,
};
