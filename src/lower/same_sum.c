/*
 * Nothing for a SumLike whose operand was not broadcast after all, which is seen once shapes are known.
 */
#include "lower/lower.h"
#include "pass/rewrite.h"

static gboolean same_sum(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0);
    if (n->op != &hn_op_sumlike || !hn_rw_same_shape(r, x, hn_node_out(n, 0)))
        return FALSE;
    return hn_rw_bypass(r, n, hn_node_out(n, 0), x);
}

const HnPass hn_pass_same_sum = {
    .name = "same-sum",
    .summary = "no sum over axes that were not broadcast",
    .level = 1,
    .node = same_sum,
};
