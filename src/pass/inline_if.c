/*
 * If with a condition that is known ahead: the nodes of the branch that is taken move into the graph around it.
 */
#include "pass/shapes.h"

static gboolean inline_if(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_if || !hn_node_is_read(n))
        return FALSE;
    const HnTensor *c = hn_rw_const(r, hn_node_in(n, 0));
    if (c == NULL)
        return hn_rw_miss(r, n, "the condition is not constant");
    if (c->dtype != HN_BOOL || c->n != 1)
        return hn_rw_miss(r, n, "the condition is not one bool");
    const HnAttr *a = hn_node_attr(n, hn_tensor_get_i64(c, 0) != 0 ? "then_branch" : "else_branch");
    if (a == NULL || a->kind != HN_ATTR_GRAPH || !hn_rw_go(r, n))
        return FALSE;
    g_autofree HnValue **out = g_new0(HnValue *, a->g->outputs->len + 1u);
    hn_rw_inline_graph(r, n, a->g, NULL, NULL, out);
    for (guint k = 0; k < n->out->len; k++)
        hn_rw_stand_in(r, n, (int)k, out[k]);
    return TRUE;
}

const HnPass hn_pass_inline_if = {
    .name = "inline-if",
    .summary = "If with a constant condition becomes the nodes of that branch",
    .level = 1,
    .node = inline_if,
};
