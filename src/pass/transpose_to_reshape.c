/*
 * Transpose that moves axes of one element only leaves all elements where they are: Reshape.
 */
#include "pass/lib/carry.h"
#include "pass/shapes.h"

static gboolean transpose_to_reshape(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0);
    HnDim to[HN_MAX_RANK];
    int64_t list[HN_MAX_RANK];
    HnOrder o;
    int last = -1;
    gboolean moved = FALSE;
    if (n->op != &hn_op_transpose || !hn_order_of(r, n, &o) || !hn_rw_can(n->graph, &hn_op_reshape, 5))
        return FALSE;
    for (int a = 0; a < o.rank; a++) {
        to[a] = hn_rw_dim(r, x, o.to[a]);
        moved = moved || o.to[a] != a;
        if (hn_dim_is(to[a], 1))
            continue;
        if (o.to[a] < last)
            return FALSE;
        last = o.to[a];
    }
    if (!moved)
        return FALSE; /* not even that */
    if (!hn_shapes_constant(r, x, o.rank, to, list))
        return hn_rw_miss(r, n, "more than one size is not known");
    return hn_rw_go(r, n) && hn_rw_take(r, hn_shapes_reshape(r, n, x, list, o.rank), n);
}

const HnPass hn_pass_transpose_to_reshape = {
    .name = "transpose-to-reshape",
    .summary = "Reshape instead of a Transpose that only moves axes of one element",
    .level = 1,
    .node = transpose_to_reshape,
};
