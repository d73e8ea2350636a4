/*
 * A reduction and what is done to its shape: Squeeze of the axes that it keeps, Unsqueeze of those that it does not
 * keep, a reduction of the same kind along other axes.
 */
#include "op/argmax.h"
#include "op/reduce.h"
#include "pass/shapes.h"

static const HnOp *const reductions[] = {
    &hn_op_reducemean, &hn_op_reducesum, &hn_op_reducemax,    &hn_op_reducemin,       &hn_op_reduceprod,
    &hn_op_reducel1,   &hn_op_reducel2,  &hn_op_reducelogsum, &hn_op_reducelogsumexp, &hn_op_reducesumsquare,
};
/* Of two of them along different axes it does not matter whether they are one. */
static const HnOp *const joint[] = { &hn_op_reducesum, &hn_op_reducemax, &hn_op_reducemin, &hn_op_reduceprod,
                                     &hn_op_reducemean };

static gboolean listed(const HnOp *const *list, gsize n, const HnOp *op)
{
    for (gsize i = 0; i < n; i++)
        if (list[i] == op)
            return TRUE;
    return FALSE;
}

static gboolean is_arg(const HnNode *n)
{
    return n->op == &hn_op_argmax || n->op == &hn_op_argmin;
}

/* The axes that n takes together, of `rank`; and whether it keeps them. */
static gboolean reduced(const HnRewrite *r, const HnNode *n, gboolean *mark, gboolean *keeps)
{
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    if (is_arg(n)) {
        const HnArg *p = n->params;
        *keeps = p->keepdims;
        for (int a = 0; a < rank; a++)
            mark[a] = a == p->axis || a == p->axis + rank;
        return rank > 0;
    }
    *keeps = ((const HnReduce *)n->params)->keepdims;
    return hn_shapes_reduced(r, n, mark);
}

/* Every axis of the list is a reduced one and the reverse. */
static gboolean same_axes(const gboolean *mark, int rank, const int *axes, int n)
{
    int at = 0;
    for (int a = 0; a < rank; a++)
        if (mark[a] && (at == n || axes[at++] != a))
            return FALSE;
    return at == n;
}

/* n, a Squeeze or Unsqueeze, is done by the reduction in front of it. */
static gboolean merge_shape(HnRewrite *r, HnNode *n)
{
    HnValue *between = hn_node_in(n, 0);
    HnNode *first = between != NULL ? between->producer : NULL;
    gboolean mark[HN_MAX_RANK], keeps;
    int axes[HN_MAX_RANK], count;
    if (first == NULL || first->graph != n->graph || first->op == NULL ||
        !(is_arg(first) || listed(reductions, G_N_ELEMENTS(reductions), first->op)))
        return FALSE;
    const int rank = hn_rw_rank(r, hn_node_in(first, 0));
    if (!reduced(r, first, mark, &keeps) || keeps != (n->op == &hn_op_squeeze) ||
        !hn_shapes_axes(r, n, rank, axes, &count) || !same_axes(mark, rank, axes, count))
        return hn_rw_miss(r, n, "its axes are not those that '%s' reduces", hn_node_label(first));
    if (!hn_rw_single(between))
        return hn_rw_miss(r, n, "'%s' is used by others too", between->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_node_set_int(first, "keepdims", !keeps);
    return hn_rw_take(r, first, n);
}

/* n and the reduction in front of it are one along the axes of both. */
static gboolean merge_two(HnRewrite *r, HnNode *n)
{
    HnValue *between = hn_node_in(n, 0);
    HnNode *first = hn_rw_maker(between, n->op);
    gboolean a[HN_MAX_RANK], b[HN_MAX_RANK], keeps, keep;
    int64_t axes[HN_MAX_RANK];
    int count = 0, at = 0;
    if (first == NULL || !reduced(r, first, a, &keeps) || !reduced(r, n, b, &keep) || keeps != keep)
        return FALSE;
    if (!hn_rw_single(between))
        return hn_rw_miss(r, n, "'%s' is used by others too", between->name);
    const int rank = hn_rw_rank(r, hn_node_in(first, 0));
    for (int i = 0; i < rank; i++) {
        const gboolean later = keeps ? b[at++] : !a[i] && b[at++];
        if (a[i] && later)
            return FALSE;
        if (a[i] || later)
            axes[count++] = i;
    }
    if (count == 0 || !hn_rw_go(r, n))
        return FALSE;
    if (((const HnReduce *)n->params)->from_input)
        hn_rw_set_in(r, n, 1, hn_rw_weight_ints(r, n->graph, "axes", axes, count));
    else
        hn_node_set_ints(n, "axes", axes, count);
    hn_rw_set_in(r, n, 0, hn_node_in(first, 0));
    return hn_rw_done(r, n);
}

static gboolean merge_reduces(HnRewrite *r, HnNode *n)
{
    if (n->op == NULL || !hn_value_is_read(hn_node_out(n, 0)))
        return FALSE;
    if (n->op == &hn_op_squeeze || n->op == &hn_op_unsqueeze)
        return merge_shape(r, n);
    return listed(joint, G_N_ELEMENTS(joint), n->op) && merge_two(r, n);
}

const HnPass hn_pass_merge_reduces = {
    .name = "merge-reduces",
    .summary = "Squeeze and Unsqueeze behind a reduction become its keepdims; one reduction instead of two",
    .level = 1,
    .node = merge_reduces,
};
