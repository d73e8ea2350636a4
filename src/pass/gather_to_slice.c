/*
 * Gather, GatherElements and GatherND by constant positions that a few numbers say as well: an even range is a Slice,
 * the whole axis with its ends mirrored or repeated a Pad, a few ranges one behind the other a Concat of Slices. A
 * table of few positions stays: it is no longer than the bounds of a Slice.
 */
#include "op/gather.h"
#include "pass/lib/index_box.h"
#include "pass/shapes.h"

#define LEAST_SLICED 16 /* positions that become one Slice */
#define LEAST_RANGE 64  /* for each of several Slices and a Concat */
#define MOST_RANGES 4

typedef struct {
    int64_t first, step, size;
} Range;

/* Positions along one axis of `length`. */
typedef struct {
    HnValue *x;
    int axis;
    int64_t length, n;
    const HnTensor *t;
} Line;

static int64_t at(const Line *l, int64_t i)
{
    const int64_t p = hn_tensor_get_i64(l->t, i);
    return p < 0 ? p + l->length : p;
}

static gboolean find_line(HnRewrite *r, const HnNode *n, const HnTensor *t, Line *l)
{
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    const int64_t axis = ((const HnGather *)n->params)->axis;
    *l = (Line){ .x = hn_node_in(n, 0), .axis = hn_axis(axis, rank), .n = t->n, .t = t };
    if (rank < 1 || l->axis < 0 || l->axis >= rank)
        return FALSE;
    const HnDim d = hn_rw_dim(r, l->x, l->axis);
    l->length = d.n;
    for (int64_t i = 0; d.known && i < l->n; i++)
        if (at(l, i) < 0 || at(l, i) >= l->length)
            return FALSE;
    return d.known || hn_rw_miss(r, n, "the size of the axis is not known");
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

/* As few as there are; 0: more than there may be. */
static int find_ranges(const Line *l, Range *ranges)
{
    int n = 0;
    for (int64_t i = 0; i < l->n; n++) {
        if (n == MOST_RANGES)
            return 0;
        Range *g = &ranges[n];
        *g = (Range){ at(l, i), i + 1 < l->n ? at(l, i + 1) - at(l, i) : 1, 1 };
        if (g->step == 0)
            return 0;
        for (i++; i < l->n && at(l, i) == g->first + g->step * g->size; i++)
            g->size++;
    }
    return n;
}

static gboolean is_whole(const Line *l, const Range *g)
{
    return g->first == 0 && g->step == 1 && g->size == l->length;
}

static HnBounds bounds_of(const Line *l, const Range *g)
{
    int64_t end = g->first + g->step * (g->size - 1) + (g->step > 0 ? 1 : -1);
    if (end < 0)
        end = -l->length - 1; /* in front of the first one */
    return (HnBounds){ .n = 1, .axis = { l->axis }, .start = { g->first }, .end = { end }, .step = { g->step } };
}

static gboolean has_steps(const HnGraph *g, const Range *ranges, int n)
{
    for (int i = 0; i < n; i++)
        if (ranges[i].step != 1 && hn_rw_opset(g) < 10)
            return FALSE;
    return hn_rw_can(g, &hn_op_concat, 4);
}

static HnValue *range_of(HnRewrite *r, HnNode *n, const Line *l, const Range *g)
{
    const HnBounds b = bounds_of(l, g);
    return is_whole(l, g) ? l->x : hn_rw_out(r, hn_shapes_slice(r, n, l->x, &b), "range");
}

static gboolean join(HnRewrite *r, HnNode *n, const Line *l, const Range *ranges, int n_ranges)
{
    HnValue *parts[MOST_RANGES];
    if (!hn_rw_go(r, n))
        return FALSE;
    for (int i = 0; i < n_ranges; i++)
        parts[i] = range_of(r, n, l, &ranges[i]);
    HnNode *all = hn_rw_add(r, n, "Concat", parts, n_ranges);
    hn_node_set_int(all, "axis", l->axis);
    return hn_rw_take(r, all, n);
}

/* --- both ends added ---------------------------------------------------------------------------------------------- */

/* Position i of an axis that is mirrored at its ends, or whose ends are repeated. */
static int64_t padded(int64_t i, int64_t length, gboolean mirrored)
{
    if (!mirrored)
        return CLAMP(i, 0, length - 1);
    return i < 0 ? -i : i >= length ? 2 * (length - 1) - i : i;
}

static gboolean is_padded(const Line *l, gboolean mirrored, int64_t before)
{
    const int64_t behind = l->n - l->length - before;
    if (behind < 0 || before + behind == 0 || (mirrored && MAX(before, behind) >= l->length))
        return FALSE;
    for (int64_t i = 0; i < l->n; i++)
        if (at(l, i) != padded(i - before, l->length, mirrored))
            return FALSE;
    return TRUE;
}

static gboolean find_pad(const Line *l, gboolean *mirrored, int64_t *before)
{
    *mirrored = TRUE;
    *before = at(l, 0);
    if (is_padded(l, TRUE, *before))
        return TRUE;
    *mirrored = FALSE;
    while (*before + 1 < l->n && at(l, *before + 1) == 0)
        ++*before;
    return is_padded(l, FALSE, *before);
}

static gboolean pad(HnRewrite *r, HnNode *n, const Line *l, gboolean mirrored, int64_t before)
{
    const int rank = hn_rw_rank(r, l->x);
    int64_t pads[HN_MAX_RANK] = { 0 };
    if (!hn_rw_go(r, n))
        return FALSE;
    pads[l->axis] = before;
    pads[rank + l->axis] = l->n - l->length - before;
    HnNode *p = hn_rw_add(r, n, "Pad", HN_INS(l->x, hn_rw_weight_ints(r, n->graph, "pads", pads, 2 * rank)));
    hn_node_set_string(p, "mode", mirrored ? "reflect" : "edge");
    return hn_rw_take(r, p, n);
}

static gboolean may_pad(const HnRewrite *r, const HnNode *n, const Line *l)
{
    const int64_t since = hn_rw_dtype(r, l->x) == HN_BF16 ? 13 : 11;
    return 2 * hn_rw_rank(r, l->x) <= HN_MAX_RANK && hn_dtype_in(hn_rw_dtype(r, l->x), HN_T_FLOATS) &&
           hn_rw_can(n->graph, &hn_op_pad, since);
}

/* --- Gather ------------------------------------------------------------------------------------------------------- */

static gboolean gather_line(HnRewrite *r, HnNode *n, const HnTensor *t)
{
    Line l;
    Range ranges[MOST_RANGES];
    gboolean mirrored;
    int64_t before;
    if (t->ndim != 1 || t->n < LEAST_SLICED || !find_line(r, n, t, &l))
        return FALSE;
    const int n_ranges = find_ranges(&l, ranges);
    if (n_ranges == 1 && is_whole(&l, ranges))
        return hn_rw_bypass(r, n, hn_node_out(n, 0), l.x);
    if (n_ranges > 0 && !has_steps(n->graph, ranges, n_ranges))
        return hn_rw_miss(r, n, "the opset's Slice has no steps");
    if (n_ranges == 1) {
        const HnBounds b = bounds_of(&l, ranges);
        return hn_rw_go(r, n) && hn_rw_take(r, hn_shapes_slice(r, n, l.x, &b), n);
    }
    if (may_pad(r, n, &l) && find_pad(&l, &mirrored, &before))
        return pad(r, n, &l, mirrored, before);
    if (n_ranges > 0 && t->n >= n_ranges * LEAST_RANGE)
        return join(r, n, &l, ranges, n_ranges);
    return hn_rw_miss(r, n, "the positions are not a few even ranges");
}

/* --- boxes -------------------------------------------------------------------------------------------------------- */

static gboolean find_box(const HnRewrite *r, const HnNode *n, const HnTensor *t, int64_t *data, HnIndexBox *box)
{
    const HnGather *p = n->params;
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    if (rank < 1 || !hn_rw_fixed(r, hn_node_in(n, 0), data) || t->n < LEAST_SLICED)
        return FALSE;
    if (n->op == &hn_op_gathernd)
        return p->batch_dims == 0 && hn_index_box_nd(t, rank, data, box);
    return hn_index_box_elements(t, hn_axis(p->axis, rank), rank, data, box);
}

/* The box is cut along some axes, and has other axes of one element than the result. */
static gboolean gather_box(HnRewrite *r, HnNode *n, const HnTensor *t)
{
    HnIndexBox box;
    HnBounds b = { .n = 0 };
    HnValue *x = hn_node_in(n, 0);
    int64_t data[HN_MAX_RANK], out[HN_MAX_RANK];
    if (!hn_rw_fixed(r, hn_node_out(n, 0), out))
        return FALSE;
    if (!find_box(r, n, t, data, &box))
        return hn_rw_miss(r, n, "the positions do not make one piece");
    const int rank = hn_rw_rank(r, x), n_out = hn_rw_rank(r, hn_node_out(n, 0));
    gboolean same = n_out == rank, even = TRUE;
    for (int a = 0; a < rank; a++) {
        same = same && out[a] == box.size[a];
        if (box.size[a] == data[a])
            continue;
        even = even && box.step[a] == 1;
        b.axis[b.n] = a;
        b.start[b.n] = box.first[a];
        b.end[b.n] = box.first[a] + box.step[a] * (box.size[a] - 1) + 1;
        b.step[b.n++] = box.step[a];
    }
    if (b.n == 0 && same)
        return hn_rw_bypass(r, n, hn_node_out(n, 0), x);
    if ((!even && hn_rw_opset(n->graph) < 10) || !hn_rw_go(r, n))
        return FALSE;
    HnNode *cut = b.n > 0 ? hn_shapes_slice(r, n, x, &b) : NULL;
    if (same)
        return hn_rw_take(r, cut, n);
    x = cut != NULL ? hn_rw_out(r, cut, "box") : x;
    return hn_rw_take(r, hn_shapes_reshape(r, n, x, out, n_out), n);
}

static gboolean gather_to_slice(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_gather && n->op != &hn_op_gathernd && n->op != &hn_op_gatherelements)
        return FALSE;
    const HnTensor *t = hn_rw_known(r, hn_node_in(n, 1));
    if (t == NULL || t->n == 0)
        return FALSE;
    return n->op == &hn_op_gather ? gather_line(r, n, t) : gather_box(r, n, t);
}

const HnPass hn_pass_gather_to_slice = {
    .name = "gather-to-slice",
    .summary = "Slice, Pad or Concat instead of gathering by a table that says no more",
    .level = 1,
    .node = gather_to_slice,
};
