/*
 * Mish (opset 18): x * tanh(softplus(x)).
 */
#include "pass/pattern.h"

static gboolean fuse_mish(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_mul)
        return FALSE;
    for (int i = 0; i < 2; i++) {
        HnValue *x = hn_node_in(n, i);
        const HnNode *t = hn_pattern_maker(n->graph, hn_node_in(n, 1 - i), &hn_op_tanh);
        const HnNode *s = t != NULL ? hn_pattern_maker(n->graph, hn_node_in(t, 0), &hn_op_softplus) : NULL;
        if (s == NULL || hn_node_in(s, 0) != x)
            continue;
        if (!hn_pattern_is_float(r, x))
            return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", x->name);
        if (!hn_rw_can(n->graph, &hn_op_mish, 18))
            return hn_rw_miss(r, n, "Mish needs opset 18, and the model has %" PRId64, hn_rw_opset(n->graph));
        return hn_rw_go(r, n) && hn_rw_take(r, hn_rw_add(r, n, "Mish", HN_INS(x)), n);
    }
    return FALSE;
}

const HnPass hn_pass_fuse_mish = {
    .name = "fuse-mish",
    .summary = "Mish where it is spelled out with Softplus and Tanh (opset 18)",
    .level = 2,
    .node = fuse_mish,
};
