/*
 * The logarithm of Softmax is LogSoftmax, which does not lose small numbers on the way.
 */
#include "pass/rewrite.h"

static gboolean merge_log_softmax(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_log)
        return FALSE;
    HnValue *between = hn_node_in(n, 0);
    const HnNode *s = hn_rw_maker(between, &hn_op_softmax);
    if (s == NULL)
        return FALSE;
    if (!hn_rw_single(between))
        return hn_rw_miss(r, n, "'%s' is used by others too", between->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *log = hn_rw_add(r, n, "LogSoftmax", HN_INS(hn_node_in(s, 0)));
    const HnAttr *axis = hn_node_attr(s, "axis");
    if (axis != NULL)
        hn_node_set_int(log, "axis", axis->i);
    return hn_rw_take(r, log, n);
}

const HnPass hn_pass_merge_log_softmax = {
    .name = "merge-log-softmax",
    .summary = "LogSoftmax instead of Log of Softmax",
    .level = 1,
    .node = merge_log_softmax,
};
