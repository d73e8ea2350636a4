/*
 * Whole rows at once where each element of a row has the same index. GatherElements and ScatterElements take an index
 * for each element, so exporters broadcast the one that a row has: with Expand, or Tile. It is a Gather where one list
 * of indices serves all that stands before the axis, or where what stands there is one copy of the data, a GatherND
 * with batches otherwise, and a ScatterND.
 */
#include <string.h>

#include "lower/lower.h"
#include "op/gather.h"
#include "op/index.h"
#include "op/scatter.h"
#include "pass/rewrite.h"

/* A value, and what it was before it was broadcast to `dims`: of the same rank, fewer where it was repeated. */
typedef struct {
    HnValue *from;
    int rank;
    int64_t dims[HN_MAX_RANK], own[HN_MAX_RANK];
} Spread;

static gboolean spread_of(const HnRewrite *r, HnValue *v, Spread *s)
{
    s->from = v;
    s->rank = hn_rw_rank(r, v);
    if (s->rank < 1 || !hn_rw_fixed(r, v, s->dims))
        return FALSE;
    memcpy(s->own, s->dims, sizeof s->own);
    const HnNode *n = v->producer;
    if (n == NULL || (n->op != &hn_op_expand && n->op != &hn_op_tile))
        return TRUE;
    HnValue *from = hn_node_in(n, 0);
    int64_t own[HN_MAX_RANK];
    const int rank = hn_rw_rank(r, from);
    if (rank < 0 || rank > s->rank || !hn_rw_fixed(r, from, own + s->rank - rank))
        return TRUE;
    for (int i = 0; i < s->rank - rank; i++)
        own[i] = 1;
    s->from = from;
    memcpy(s->own, own, sizeof own);
    return TRUE;
}

static gboolean same_dims(const int64_t *a, const int64_t *b, int lo, int hi)
{
    return lo >= hi || memcmp(a + lo, b + lo, (size_t)(hi - lo) * sizeof *a) == 0;
}

static HnValue *reshaped(HnRewrite *r, HnNode *n, HnValue *v, const int64_t *dims, int rank)
{
    int64_t now[HN_MAX_RANK];
    if (hn_rw_rank(r, v) == rank && hn_rw_fixed(r, v, now) && same_dims(now, dims, 0, rank))
        return v;
    HnValue *shape = hn_rw_weight_ints(r, n->graph, "shape", dims, rank);
    return hn_rw_out(r, hn_rw_add(r, n, "Reshape", HN_INS(v, shape)), v->name);
}

static gboolean gather(HnRewrite *r, HnNode *n, HnValue *x, HnValue *at, int axis)
{
    HnNode *made = hn_rw_add(r, n, "Gather", HN_INS(x, at));
    hn_node_set_int(made, "axis", axis);
    return hn_rw_take(r, made, n);
}

static gboolean gather_rows(HnRewrite *r, HnNode *n, const Spread *x, const Spread *at, int axis)
{
    const int last = x->rank;
    int64_t dims[HN_MAX_RANK];
    if (hn_span(at->own, 0, axis) == 1 && same_dims(x->dims, at->dims, 0, axis))
        return hn_rw_go(r, n) && gather(r, n, hn_node_in(n, 0), reshaped(r, n, at->from, at->dims + axis, 1), axis);
    if (!same_dims(at->own, at->dims, 0, axis + 1))
        return hn_rw_miss(r, n, "indices are the same along some of the axes before %d", axis);
    if (hn_span(x->own, 0, axis) == 1 && same_dims(x->own, x->dims, axis, last)) {
        if (!hn_rw_go(r, n))
            return FALSE;
        HnValue *data = reshaped(r, n, x->from, x->dims + axis, last - axis);
        return gather(r, n, data, reshaped(r, n, at->from, at->dims, axis + 1), 0);
    }
    if (hn_rw_dtype(r, at->from) != HN_I64 || !same_dims(x->dims, at->dims, 0, axis) || axis + 2 > HN_MAX_RANK ||
        !hn_rw_can(n->graph, &hn_op_gathernd, 12) || !hn_rw_go(r, n))
        return FALSE;
    memcpy(dims, at->dims, (size_t)(axis + 1) * sizeof *dims);
    dims[axis + 1] = 1;
    HnNode *made = hn_rw_add(r, n, "GatherND", HN_INS(hn_node_in(n, 0), reshaped(r, n, at->from, dims, axis + 2)));
    hn_node_set_int(made, "batch_dims", axis);
    return hn_rw_take(r, made, n);
}

static gboolean scatter_rows(HnRewrite *r, HnNode *n, const Spread *at)
{
    static const char *const words[] = { NULL, "add", "mul", "max", "min" };
    const HnReduction how = ((const HnScatter *)n->params)->reduction;
    if (hn_rw_dtype(r, at->from) != HN_I64 || !hn_rw_can(n->graph, &hn_op_scatternd, 11) || !hn_rw_go(r, n))
        return FALSE;
    HnValue *tuples = reshaped(r, n, at->from, (int64_t[]){ at->dims[0], 1 }, 2);
    HnNode *made = hn_rw_add(r, n, "ScatterND", HN_INS(hn_node_in(n, 0), tuples, hn_node_in(n, 2)));
    if (words[how] != NULL)
        hn_node_set_string(made, "reduction", words[how]);
    return hn_rw_take(r, made, n);
}

static gboolean whole_rows(HnRewrite *r, HnNode *n)
{
    Spread x, at;
    const gboolean gathers = n->op == &hn_op_gatherelements;
    if ((!gathers && n->op != &hn_op_scatterelements) || !spread_of(r, hn_node_in(n, 0), &x) ||
        !spread_of(r, hn_node_in(n, 1), &at) || at.from == hn_node_in(n, 1) || at.rank != x.rank)
        return FALSE;
    const int64_t a = gathers ? ((const HnGather *)n->params)->axis : ((const HnScatter *)n->params)->axis;
    const int axis = (int)(a < 0 ? a + x.rank : a);
    if (hn_span(at.own, axis + 1, at.rank) != 1 || !same_dims(x.dims, at.dims, axis + 1, x.rank))
        return FALSE; /* indices differ along the row, or rows are cut */
    if (hn_span(at.dims, 0, at.rank) == 0 || hn_span(x.dims, 0, x.rank) == 0 || at.own[axis] != at.dims[axis])
        return FALSE;
    return gathers ? gather_rows(r, n, &x, &at, axis) : axis == 0 && scatter_rows(r, n, &at);
}

const HnPass hn_pass_whole_rows = {
    .name = "whole-rows",
    .summary = "whole rows at once where each of their elements has the same index",
    .level = 2,
    .node = whole_rows,
};
