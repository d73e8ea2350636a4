/*
 * Identity hands on what it gets.
 */
#include "pass/rewrite.h"

static gboolean eliminate_identity(HnRewrite *r, HnNode *n)
{
    return n->op == &hn_op_identity && hn_rw_bypass(r, n, hn_node_out(n, 0), hn_node_in(n, 0));
}

const HnPass hn_pass_eliminate_identity = {
    .name = "eliminate-identity",
    .summary = "remove Identity",
    .level = 1,
    .node = eliminate_identity,
};
