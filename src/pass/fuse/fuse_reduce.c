/*
 * Reductions that are spelled out: ReduceL2 and ReduceSumSquare, ReduceLogSumExp, ReduceLogSum, GlobalAveragePool.
 *
 * Level 3: in ONNX Runtime (1.31) the sum of squares takes 1.9 times as long in one node as in two or three, the
 * logarithm of a sum of exponentials 12 times, and GlobalAveragePool 1.3 to 2 times as long as ReduceMean.
 */
#include "op/reduce.h"
#include "pass/pattern.h"
#include "pass/shapes.h"

/* A copy of the reduction `like`, called `op`, of x. */
static gboolean becomes(HnRewrite *r, HnNode *n, const HnNode *like, const HnOp *op, HnValue *x)
{
    int64_t axes[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    int n_axes = 0;
    if (!hn_dtype_in(hn_rw_dtype(r, x), HN_T_FLOATS))
        return hn_rw_miss(r, n, "'%s' is of no float type", x->name);
    if (hn_rw_rank(r, x) < 0 || !hn_shapes_reduced(r, like, mark))
        return hn_rw_miss(r, n, "the rank of '%s', or the axes, are not known", x->name);
    for (int i = 0; i < hn_rw_rank(r, x); i++)
        if (mark[i])
            axes[n_axes++] = i;
    if (n_axes == 0 || !hn_rw_can(n->graph, op, 1) || !hn_rw_go(r, n))
        return FALSE;
    const gboolean by_input = hn_rw_opset(n->graph) >= 18;
    HnValue *list = by_input ? hn_rw_weight_ints(r, n->graph, "axes", axes, n_axes) : NULL;
    HnNode *reduce = hn_rw_add(r, n, op->name, HN_INS(x, list));
    if (!by_input)
        hn_node_set_ints(reduce, "axes", axes, n_axes);
    if (!((const HnReduce *)like->params)->keepdims)
        hn_node_set_int(reduce, "keepdims", 0);
    return hn_rw_take(r, reduce, n);
}

/* v is x * x: x. */
static HnValue *root_of(const HnRewrite *r, const HnGraph *g, const HnValue *v)
{
    HnSgemm p;
    if (!hn_rw_single(v) || v->graph != g || !hn_pattern_product(r, g, (HnValue *)v, &p) || p.n != 2 || p.factor != 1)
        return NULL;
    return p.leaf[0] == p.leaf[1] ? p.leaf[0] : NULL;
}

static gboolean is_space(const HnRewrite *r, const HnNode *n)
{
    gboolean mark[HN_MAX_RANK];
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    if (!((const HnReduce *)n->params)->keepdims || rank < 3 || !hn_shapes_reduced(r, n, mark))
        return FALSE;
    gboolean all = !mark[0] && !mark[1];
    for (int i = 2; i < rank; i++)
        all = all && mark[i];
    return all;
}

static gboolean fuse_reduce(HnRewrite *r, HnNode *n)
{
    HnValue *v = hn_node_in(n, 0);
    if (n->op == &hn_op_reducesum) {
        HnValue *x = root_of(r, n->graph, v);
        return x != NULL && becomes(r, n, n, &hn_op_reducesumsquare, x);
    }
    if (n->op == &hn_op_sqrt) {
        const HnNode *sum = hn_pattern_maker(n->graph, v, &hn_op_reducesumsquare);
        return sum != NULL && becomes(r, n, sum, &hn_op_reducel2, hn_node_in(sum, 0));
    }
    if (n->op == &hn_op_log) {
        const HnNode *sum = hn_pattern_maker(n->graph, v, &hn_op_reducesum);
        const HnNode *exp = sum != NULL ? hn_pattern_maker(n->graph, hn_node_in(sum, 0), &hn_op_exp) : NULL;
        return sum != NULL && becomes(r, n, sum, exp != NULL ? &hn_op_reducelogsumexp : &hn_op_reducelogsum,
                                      hn_node_in(exp != NULL ? exp : sum, 0));
    }
    if (n->op == &hn_op_reducemean && is_space(r, n) && hn_dtype_in(hn_rw_dtype(r, v), HN_T_FLOATS))
        return hn_rw_go(r, n) && hn_rw_take(r, hn_rw_add(r, n, "GlobalAveragePool", HN_INS(v)), n);
    return FALSE;
}

const HnPass hn_pass_fuse_reduce = {
    .name = "fuse-reduce",
    .summary = "ReduceL2, ReduceLogSumExp, GlobalAveragePool and relatives; slower in ONNX Runtime",
    .level = 3,
    .node = fuse_reduce,
};
