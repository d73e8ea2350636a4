/*
 * Parts of a tensor: Gather of a range of indices is a Slice, one of a single index needs no Unsqueeze or Squeeze
 * behind it, and Slices that are everything together are a Split.
 */
#include <string.h>

#include "op/gather.h"
#include "pass/shapes.h"

#define MOST_PARTS 256

/* --- Gather ------------------------------------------------------------------------------------------------------- */

static gboolean gather_axis(const HnRewrite *r, const HnNode *n, int *axis)
{
    const int64_t a = ((const HnGather *)n->params)->axis;
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    *axis = hn_axis(a, rank);
    return a >= 0 || rank >= 0;
}

/* A list of indices that follow one another. */
static gboolean range_to_slice(HnRewrite *r, HnNode *n)
{
    const HnTensor *at = hn_rw_const(r, hn_node_in(n, 1));
    int axis;
    if (at == NULL || at->ndim != 1 || at->n < 2 || !gather_axis(r, n, &axis) || axis >= HN_MAX_RANK)
        return FALSE;
    const int64_t first = hn_tensor_get_i64(at, 0), last = first + at->n - 1;
    for (int64_t i = 1; i < at->n; i++)
        if (hn_tensor_get_i64(at, i) != first + i)
            return FALSE;
    if ((first < 0 && last >= 0) || first < -INT32_MAX || last >= INT32_MAX)
        return FALSE;
    HnBounds b = { .n = 1, .axis = { axis }, .start = { first }, .end = { last + 1 }, .step = { 1 } };
    if (last == -1)
        b.end[0] = INT64_MAX;
    if (!hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, hn_shapes_slice(r, n, hn_node_in(n, 0), &b), n);
}

/* The index as a scalar (rank 0) or a list of one, of any integer type. */
static HnValue *index_of_rank(HnRewrite *r, HnGraph *g, const HnTensor *t, int rank)
{
    int64_t one = 1;
    HnTensor *i = hn_tensor_new(t->dtype, rank, &one, hn_rw_budget(r), NULL);
    if (i != NULL)
        hn_tensor_set_i64(i, 0, hn_tensor_get_i64(t, 0));
    return hn_rw_weight(r, g, "index", i);
}

/* Unsqueeze of the axis that a scalar index took away, or Squeeze of the one that a list of one left. */
static gboolean index_for_axis(HnRewrite *r, HnNode *n)
{
    HnValue *between = hn_node_in(n, 0);
    HnNode *g = hn_rw_maker(between, &hn_op_gather);
    const gboolean keep = n->op == &hn_op_unsqueeze;
    const HnTensor *at = g != NULL ? hn_rw_const(r, hn_node_in(g, 1)) : NULL;
    int axis, axes[HN_MAX_RANK], count;
    if (at == NULL || at->n != 1 || at->ndim != (keep ? 0 : 1) || !gather_axis(r, g, &axis))
        return FALSE;
    if (!hn_shapes_axes(r, n, hn_rw_rank(r, hn_node_in(g, 0)), axes, &count) || count != 1 || axes[0] != axis)
        return FALSE;
    if (!hn_rw_single(between))
        return hn_rw_miss(r, n, "'%s' is used by others too", between->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, g, 1, index_of_rank(r, n->graph, at, keep ? 1 : 0));
    return hn_rw_take(r, g, n);
}

/* Squeeze of a Slice of one element. */
static gboolean slice_to_gather(HnRewrite *r, HnNode *n)
{
    HnValue *between = hn_node_in(n, 0);
    HnNode *s = hn_rw_maker(between, &hn_op_slice);
    HnBounds b;
    int axes[HN_MAX_RANK], count;
    if (s == NULL || !hn_shapes_axes(r, n, hn_rw_rank(r, between), axes, &count) || count != 1)
        return FALSE;
    if (!hn_shapes_bounds(r, s, &b) || b.n != 1 || b.axis[0] != axes[0] || b.step[0] != 1)
        return FALSE;
    const int64_t i = b.start[0];
    if (!(b.end[0] == i + 1 && i != -1) && !(i == -1 && b.end[0] >= INT32_MAX))
        return FALSE;
    if (!hn_rw_single(between))
        return hn_rw_miss(r, n, "'%s' is used by others too", between->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *g = hn_rw_add(r, n, "Gather",
                          HN_INS(hn_node_in(s, 0), hn_rw_weight(r, n->graph, "index", hn_tensor_scalar_i64(i))));
    hn_node_set_int(g, "axis", axes[0]);
    return hn_rw_take(r, g, n);
}

/* --- Split -------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnNode *slice;
    int64_t start, end;
} Part;

static gint by_start(gconstpointer a, gconstpointer b)
{
    const Part *p = a, *q = b;
    return p->start < q->start ? -1 : p->start > q->start ? 1 : p->end < q->end ? -1 : p->end > q->end;
}

/* Slices of x along the axis by where they begin, in graph g. */
static GArray *parts_of(const HnRewrite *r, const HnValue *x, const HnGraph *g, int axis)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(Part));
    for (guint i = 0; i < x->users->len; i++) {
        HnNode *n = x->users->pdata[i];
        Part p = { .slice = n };
        int along;
        if (n->op != &hn_op_slice || n->graph != g || hn_node_in(n, 0) != x || !hn_value_is_read(hn_node_out(n, 0)))
            continue;
        if (hn_shapes_cut(r, n, &along, &p.start, &p.end) && along == axis)
            g_array_append_val(parts, p);
    }
    g_array_sort(parts, by_start);
    return parts;
}

static gboolean slices_to_split(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0);
    HnGraph *g = n->graph;
    int axis;
    int64_t start, end, at = 0;
    if (x == NULL || x->users->len < 2 || x->users->len > MOST_PARTS || hn_rw_opset(g) < 2)
        return FALSE;
    if (!hn_shapes_cut(r, n, &axis, &start, &end) || start != 0)
        return FALSE;
    g_autoptr(GArray) parts = parts_of(r, x, g, axis);
    g_autofree int64_t *sizes = g_new(int64_t, parts->len + 1u);
    for (guint i = 0; i < parts->len; i++) {
        const Part *p = &g_array_index(parts, Part, i);
        if (p->start != at || p->end <= p->start)
            return hn_rw_miss(r, n, "the slices of '%s' do not lie side by side", x->name);
        sizes[i] = p->end - p->start;
        at = p->end;
    }
    if (parts->len < 2 || !hn_dim_is(hn_rw_dim(r, x, axis), at))
        return hn_rw_miss(r, n, "the slices of '%s' are not all of it", x->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    g_autofree HnNode **slices = g_new(HnNode *, parts->len);
    for (guint i = 0; i < parts->len; i++)
        slices[i] = g_array_index(parts, Part, i).slice;
    HnNode *before = hn_shapes_first(g, slices, parts->len);
    const gboolean input = hn_rw_opset(g) >= 13;
    HnNode *s = hn_rw_add(r, before, "Split",
                          HN_INS(x, input ? hn_rw_weight_ints(r, g, "sizes", sizes, (int)parts->len) : NULL));
    hn_node_set_int(s, "axis", axis);
    if (!input)
        hn_node_set_ints(s, "split", sizes, parts->len);
    for (guint i = 0; i < parts->len; i++)
        hn_node_add_out(s, hn_graph_new_value(g, x->name));
    hn_rw_done(r, s);
    for (guint i = 0; i < parts->len; i++)
        hn_rw_replace(r, hn_node_out(slices[i], 0), hn_node_out(s, (int)i));
    return TRUE;
}

static gboolean merge_parts(HnRewrite *r, HnNode *n)
{
    if (n->op == NULL || !hn_value_is_read(hn_node_out(n, 0)))
        return FALSE;
    if (n->op == &hn_op_gather)
        return range_to_slice(r, n);
    if (n->op == &hn_op_slice)
        return slices_to_split(r, n);
    return (n->op == &hn_op_squeeze || n->op == &hn_op_unsqueeze) &&
           (index_for_axis(r, n) || (n->op == &hn_op_squeeze && slice_to_gather(r, n)));
}

const HnPass hn_pass_merge_parts = {
    .name = "merge-parts",
    .summary = "Slice for Gather of a range, Split for Slices that are all, no Squeeze behind a single index",
    .level = 1,
    .node = merge_parts,
};
