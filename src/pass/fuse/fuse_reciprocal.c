/*
 * A product with a reciprocal, or with the quotient of 1 and something, is a quotient.
 */
#include "pass/pattern.h"

/* v is 1 / w, for this node alone: w. */
static HnValue *inverse_of(const HnRewrite *r, const HnGraph *g, const HnValue *v)
{
    double one;
    const HnNode *n = hn_pattern_maker(g, v, &hn_op_reciprocal);
    if (n != NULL)
        return hn_node_in(n, 0);
    n = hn_pattern_maker(g, v, &hn_op_div);
    return n != NULL && hn_pattern_number(r, hn_node_in(n, 0), hn_node_in(n, 1), &one) && one == 1 ? hn_node_in(n, 1)
                                                                                                   : NULL;
}

static gboolean fuse_reciprocal(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_mul || !hn_dtype_in(hn_rw_dtype(r, hn_node_in(n, 0)), HN_T_FLOATS) || n->version < 7)
        return FALSE;
    for (int i = 1; i >= 0; i--) {
        HnValue *w = inverse_of(r, n->graph, hn_node_in(n, i));
        if (w == NULL)
            continue;
        if (hn_rw_const(r, hn_node_in(n, 1 - i)) != NULL)
            return hn_rw_miss(r, n, "the numerator is constant");
        return hn_rw_go(r, n) && hn_rw_take(r, hn_rw_add(r, n, "Div", HN_INS(hn_node_in(n, 1 - i), w)), n);
    }
    return FALSE;
}

const HnPass hn_pass_fuse_reciprocal = {
    .name = "fuse-reciprocal",
    .summary = "a product with a reciprocal becomes a quotient",
    .level = 1,
    .node = fuse_reciprocal,
};
