/*
 * Softmax and LogSoftmax over one axis where they are spelled out; with or without the largest number taken off first:
 *     e = exp(x - max(x)); e / sum(e)
 *     x - max(x) - log(sum(exp(x - max(x)))), or x - ReduceLogSumExp(x)
 */
#include "pass/pattern.h"

/* Softmax takes the largest number off, so that nothing overflows. */
static gboolean may_overflow(const HnRewrite *r, const HnValue *u, const HnValue *x)
{
    return u == x && hn_rw_lowers(r);
}

/* u is x minus the largest number along the axis: x; else u itself. */
static HnValue *without_largest(const HnRewrite *r, const HnGraph *g, HnValue *u, int axis)
{
    const HnNode *sub = u->graph == g ? hn_rw_maker(u, &hn_op_sub) : NULL;
    const HnNode *max = sub != NULL ? hn_pattern_maker(g, hn_node_in(sub, 1), &hn_op_reducemax) : NULL;
    return max != NULL && hn_node_in(max, 0) == hn_node_in(sub, 0) && hn_pattern_axis(r, max) == axis
               ? hn_node_in(sub, 0)
               : u;
}

static gboolean becomes(HnRewrite *r, HnNode *n, const HnOp *op, HnValue *x, int axis)
{
    if (axis < 0)
        return hn_rw_miss(r, n, "the sum is not over one axis that is known and kept");
    if (!hn_pattern_is_float(r, x))
        return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", x->name);
    if (hn_rw_opset(n->graph) < 13 && axis != hn_rw_rank(r, x) - 1)
        return hn_rw_miss(r, n, "%s over an axis that is not the last one needs opset 13", op->name);
    if (!hn_rw_can(n->graph, op, 1) || !hn_rw_go(r, n))
        return FALSE;
    HnNode *s = hn_rw_add(r, n, op->name, HN_INS(x));
    hn_node_set_int(s, "axis", axis);
    return hn_rw_take(r, s, n);
}

/* e / sum(e) */
static gboolean fuse_plain(HnRewrite *r, HnNode *n)
{
    const HnGraph *g = n->graph;
    const HnNode *sum = hn_pattern_maker(g, hn_node_in(n, 1), &hn_op_reducesum);
    HnValue *e = hn_node_in(n, 0);
    const HnNode *exp = sum != NULL && hn_node_in(sum, 0) == e && e->graph == g ? hn_rw_maker(e, &hn_op_exp) : NULL;
    if (exp == NULL)
        return FALSE;
    if (e->users->len != 2 || e->is_output)
        return hn_rw_miss(r, n, "'%s' is used elsewhere", e->name);
    const int axis = hn_pattern_axis(r, sum);
    HnValue *u = hn_node_in(exp, 0), *x = without_largest(r, g, u, axis);
    if (may_overflow(r, u, x))
        return FALSE;
    return becomes(r, n, &hn_op_softmax, hn_rw_single(u) ? x : u, axis);
}

/* u - log(sum(exp(u))) */
static gboolean fuse_log(HnRewrite *r, HnNode *n)
{
    const HnGraph *g = n->graph;
    HnValue *u = hn_node_in(n, 0), *v = hn_node_in(n, 1);
    const HnNode *all = hn_pattern_maker(g, v, &hn_op_reducelogsumexp);
    const HnNode *log = all == NULL ? hn_pattern_maker(g, v, &hn_op_log) : NULL;
    const HnNode *sum = log != NULL ? hn_pattern_maker(g, hn_node_in(log, 0), &hn_op_reducesum) : NULL;
    const HnNode *exp = sum != NULL ? hn_pattern_maker(g, hn_node_in(sum, 0), &hn_op_exp) : NULL;
    if (all != NULL && hn_node_in(all, 0) == u && !hn_rw_lowers(r))
        return becomes(r, n, &hn_op_logsoftmax, u, hn_pattern_axis(r, all));
    if (exp == NULL || hn_node_in(exp, 0) != u)
        return FALSE;
    const int axis = hn_pattern_axis(r, sum);
    HnValue *x = without_largest(r, g, u, axis);
    if (may_overflow(r, u, x))
        return FALSE;
    return becomes(r, n, &hn_op_logsoftmax, u->users->len == 2 && !u->is_output ? x : u, axis);
}

static gboolean fuse_softmax(HnRewrite *r, HnNode *n)
{
    return n->op == &hn_op_div ? fuse_plain(r, n) : n->op == &hn_op_sub ? fuse_log(r, n) : FALSE;
}

const HnPass hn_pass_fuse_softmax = {
    .name = "fuse-softmax",
    .summary = "Softmax and LogSoftmax where they are spelled out with Exp and sums",
    .level = 2,
    .node = fuse_softmax,
};
