/*
 * Concat with its own kind and with what takes it apart again: a Concat inside of another along the same axis, inputs
 * without elements, the parts of a Split put together as they were, a Split or Slice that gives back the inputs.
 */
#include "op/concat.h"
#include "pass/shapes.h"

#define MOST_INPUTS 4096

/* Axis from the front; -1: not known. */
static int axis_of(const HnRewrite *r, const HnNode *n)
{
    const int64_t axis = ((const HnConcat *)n->params)->axis;
    const int rank = hn_rw_rank(r, hn_node_out(n, 0));
    return (int)(axis >= 0 ? axis : rank >= 0 ? axis + rank : -1);
}

/* --- Concat of ... ------------------------------------------------------------------------------------------------ */

static HnNode *inner_concat(const HnRewrite *r, const HnValue *v, int axis)
{
    HnNode *c = hn_rw_maker(v, &hn_op_concat);
    return c != NULL && hn_rw_single(v) && axis_of(r, c) == axis ? c : NULL;
}

static gboolean flatten_inputs(HnRewrite *r, HnNode *n, int axis)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new();
    gboolean any = FALSE;
    guint kept = 0;
    for (guint i = 0; i < n->in->len; i++) {
        HnValue *v = n->in->pdata[i];
        const HnNode *c = v != NULL ? inner_concat(r, v, axis) : NULL;
        const gboolean empty = hn_dim_is(hn_rw_dim(r, v, axis), 0);
        if (v == NULL || in->len > MOST_INPUTS)
            return FALSE;
        for (guint k = 0; c != NULL && k < c->in->len; k++)
            g_ptr_array_add(in, c->in->pdata[k]);
        if (c == NULL && !empty)
            g_ptr_array_add(in, v);
        kept += !empty;
        any = any || c != NULL || empty;
    }
    if (!any || kept == 0 || in->len == 0 || !hn_rw_go(r, n))
        return FALSE;
    for (guint i = 0; i < in->len; i++)
        hn_rw_set_in(r, n, (int)i, in->pdata[i]);
    hn_rw_cut_in(r, n, (int)in->len);
    return hn_rw_done(r, n);
}

/* All parts of one Split, in order. */
static gboolean undo_split(HnRewrite *r, HnNode *n, int axis)
{
    const HnValue *v = hn_node_in(n, 0);
    const HnNode *s = v != NULL ? v->producer : NULL;
    if (s == NULL || s->op != &hn_op_split || s->graph != n->graph || s->out->len != n->in->len)
        return FALSE;
    const int64_t along = ((const HnSplit *)s->params)->axis;
    const int rank = hn_rw_rank(r, v);
    if ((along < 0 ? along + rank : along) != axis || (along < 0 && rank < 0))
        return FALSE;
    for (int i = 0; i < (int)n->in->len; i++)
        if (hn_node_in(n, i) != hn_node_out(s, i))
            return FALSE;
    return hn_rw_bypass(r, n, hn_node_out(n, 0), hn_node_in(s, 0));
}

/* Slices of one value that lie side by side; together they are it, or one Slice. */
static gboolean undo_slices(HnRewrite *r, HnNode *n, int axis)
{
    HnValue *x = NULL;
    int64_t first = 0, at = 0, start, end;
    int along;
    if (n->in->len < 2)
        return FALSE;
    for (int i = 0; i < (int)n->in->len; i++) {
        const HnNode *s = hn_rw_maker(hn_node_in(n, i), &hn_op_slice);
        if (s == NULL || !hn_shapes_cut(r, s, &along, &start, &end) || along != axis)
            return FALSE;
        if (i > 0 && (hn_node_in(s, 0) != x || start != at))
            return FALSE;
        x = hn_node_in(s, 0);
        first = i == 0 ? start : first;
        at = end;
    }
    if (first == 0 && hn_dim_is(hn_rw_dim(r, x, axis), at))
        return hn_rw_bypass(r, n, hn_node_out(n, 0), x);
    HnBounds b = { .n = 1, .axis = { axis }, .start = { first }, .end = { at }, .step = { 1 } };
    if (!hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, hn_shapes_slice(r, n, x, &b), n);
}

/* --- ... of Concat ------------------------------------------------------------------------------------------------ */

/* Each part of the Split is an input. */
static gboolean split_of_concat(HnRewrite *r, HnNode *n)
{
    const HnNode *c = hn_rw_maker(hn_node_in(n, 0), &hn_op_concat);
    int axis;
    gboolean any = FALSE;
    if (c == NULL || c->in->len != n->out->len)
        return FALSE;
    g_autofree int64_t *sizes = hn_shapes_parts(r, n, &axis);
    if (sizes == NULL || axis_of(r, c) != axis)
        return FALSE;
    for (int k = 0; k < (int)n->out->len; k++)
        if (!hn_dim_is(hn_rw_dim(r, hn_node_in(c, k), axis), sizes[k]))
            return FALSE;
    for (int k = 0; k < (int)n->out->len; k++)
        if (hn_value_is_read(hn_node_out(n, k)))
            any |= hn_rw_bypass(r, n, hn_node_out(n, k), hn_node_in(c, k));
    return any;
}

/* What is cut out lies in one input. */
static gboolean slice_of_concat(HnRewrite *r, HnNode *n)
{
    const HnNode *c = hn_rw_maker(hn_node_in(n, 0), &hn_op_concat);
    int axis;
    int64_t start, end, at = 0;
    if (c == NULL || !hn_shapes_cut(r, n, &axis, &start, &end) || axis_of(r, c) != axis || start >= end)
        return FALSE;
    for (int i = 0; i < (int)c->in->len; i++) {
        HnValue *x = hn_node_in(c, i);
        const HnDim d = hn_rw_dim(r, x, axis);
        if (!d.known || start < at)
            return FALSE;
        if (start >= at + d.n) {
            at += d.n;
            continue;
        }
        if (end > at + d.n)
            return FALSE;
        if (start == at && end == at + d.n)
            return hn_rw_bypass(r, n, hn_node_out(n, 0), x);
        HnBounds b = { .n = 1, .axis = { axis }, .start = { start - at }, .end = { end - at }, .step = { 1 } };
        if (!hn_rw_go(r, n))
            return FALSE;
        return hn_rw_take(r, hn_shapes_slice(r, n, x, &b), n);
    }
    return FALSE;
}

static gboolean merge_concats(HnRewrite *r, HnNode *n)
{
    if (n->op == &hn_op_split)
        return split_of_concat(r, n);
    if (n->op == &hn_op_slice && hn_value_is_read(hn_node_out(n, 0)))
        return slice_of_concat(r, n);
    if (n->op != &hn_op_concat || !hn_value_is_read(hn_node_out(n, 0)))
        return FALSE;
    const int axis = axis_of(r, n);
    return axis >= 0 && (undo_split(r, n, axis) || undo_slices(r, n, axis) || flatten_inputs(r, n, axis));
}

const HnPass hn_pass_merge_concats = {
    .name = "merge-concats",
    .summary = "one Concat instead of several; no Concat of what was split, no parts of what was joined",
    .level = 1,
    .node = merge_concats,
};
