/*
 * GroupNormalization (opset 21) where it is spelled out: channels seen as groups by Reshape, InstanceNormalization with
 * a scale of 1 and no bias, seen as channels again, scaled and shifted.
 *
 * Level 3: ONNX Runtime (1.31) has no kernel of its own for it and takes 1.9 times as long as for these nodes.
 */
#include "op/instancenorm.h"
#include "pass/pattern.h"

/* v is constant, [C,1...] or [1,C,1...] beside an x of that rank: [C] in *t. */
static gboolean is_channels(const HnRewrite *r, const HnValue *v, const HnValue *x, HnTensor **t)
{
    *t = hn_rw_const(r, v);
    const int rank = hn_rw_rank(r, x), at = *t != NULL ? (*t)->ndim - (rank - 1) : -1;
    return (at == 0 || at == 1) && hn_dim_is(hn_rw_dim(r, x, 1), (*t)->dims[at]) && (*t)->n == (*t)->dims[at] &&
           (*t)->dtype == hn_rw_dtype(r, x);
}

static gboolean is_uniform(const HnRewrite *r, const HnValue *v, double want)
{
    double x;
    return hn_rw_uniform(r, v, &x) && x == want;
}

static gboolean fuse_group_normalization(HnRewrite *r, HnNode *n)
{
    const HnGraph *g = n->graph;
    HnTensor *scale, *bias;
    if (n->op != &hn_op_add)
        return FALSE;
    const HnNode *mul = NULL, *back = NULL;
    HnValue *shift = NULL;
    for (int i = 0; i < 2 && mul == NULL; i++) {
        mul = hn_pattern_maker(g, hn_node_in(n, i), &hn_op_mul);
        shift = hn_node_in(n, 1 - i);
    }
    HnValue *factor = NULL;
    for (int i = 0; mul != NULL && i < 2 && back == NULL; i++) {
        back = hn_pattern_maker(g, hn_node_in(mul, i), &hn_op_reshape);
        factor = hn_node_in(mul, 1 - i);
    }
    const HnNode *norm = back != NULL ? hn_pattern_maker(g, hn_node_in(back, 0), &hn_op_instancenormalization) : NULL;
    const HnNode *view = norm != NULL ? hn_pattern_maker(g, hn_node_in(norm, 0), &hn_op_reshape) : NULL;
    if (view == NULL)
        return FALSE;
    HnValue *x = hn_node_in(view, 0);
    const HnValue *split = hn_node_out(view, 0);
    const HnDim groups = hn_rw_dim(r, split, 1);
    if (!hn_rw_same_shape(r, x, hn_node_out(back, 0)) || !hn_rw_same_shape(r, x, hn_node_out(n, 0)) ||
        hn_rw_rank(r, x) < 3)
        return hn_rw_miss(r, n, "it does not come back to the shape of '%s'", x->name);
    if (!groups.known || groups.n < 1 || !hn_rw_same_dim(r, split, 0, x, 0) || !hn_rw_dim(r, x, 1).known ||
        hn_rw_dim(r, x, 1).n % groups.n != 0)
        return hn_rw_miss(r, n, "the groups are not those of channels");
    if (!is_uniform(r, hn_node_in(norm, 1), 1) || !is_uniform(r, hn_node_in(norm, 2), 0))
        return hn_rw_miss(r, n, "the groups are scaled or shifted themselves");
    if (!is_channels(r, factor, x, &scale) || !is_channels(r, shift, x, &bias))
        return hn_rw_miss(r, n, "scale and bias are not constants of one element for each channel");
    if (!hn_rw_can(g, &hn_op_groupnormalization, 21))
        return hn_rw_miss(r, n, "GroupNormalization needs opset 21, and the model has %" PRId64, hn_rw_opset(g));
    if (!hn_rw_go(r, n))
        return FALSE;
    const int64_t c = scale->n;
    HnValue *s = hn_rw_weight(r, n->graph, factor->name, hn_tensor_reshaped(scale, 1, &c));
    HnValue *b = hn_rw_weight(r, n->graph, shift->name, hn_tensor_reshaped(bias, 1, &c));
    HnNode *group = hn_rw_add(r, n, "GroupNormalization", HN_INS(x, s, b));
    hn_node_set_int(group, "num_groups", groups.n);
    hn_node_set_float(group, "epsilon", ((const HnGroupNorm *)norm->params)->epsilon);
    return hn_rw_take(r, group, n);
}

const HnPass hn_pass_fuse_group_normalization = {
    .name = "fuse-group-normalization",
    .summary = "GroupNormalization where it is spelled out with InstanceNormalization; slower in ONNX Runtime",
    .level = 3,
    .node = fuse_group_normalization,
};
