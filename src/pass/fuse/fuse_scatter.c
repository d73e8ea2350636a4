/*
 * ScatterND and ScatterElements with constant positions that make a box. Where it is all of the data, the updates are
 * the result, or what combines them with the data. Else the result is put together around the updates: a Concat along
 * one axis with a constant (a cache that begins as zeros), or with the piece in a constant part of a Concat; a Pad in
 * one number; or, where the positions take more bytes than some nodes, a Concat with Slices of the data for each axis.
 */
#include <math.h>
#include <string.h>

#include "op/concat.h"
#include "op/pad.h"
#include "op/scatter.h"
#include "pass/lib/index_box.h"
#include "pass/pattern.h"
#include "pass/shapes.h"

#define MOST_PARTS 64     /* of a Concat that pieces go into one by one */
#define LEAST_TABLE 1024  /* bytes of positions, for each axis that Slices and a Concat are made along */
#define LEAST_PADDED 4096 /* bytes of one number over and over, beside a piece along one axis */

/* What a node writes: a box of data whose sizes are all known. */
typedef struct {
    int rank;
    int64_t data[HN_MAX_RANK];
    HnIndexBox box; /* of all axes */
    int n_axes;
    int axes[HN_MAX_RANK]; /* where the box does not reach from end to end */
    gsize table;           /* bytes */
} Place;

/* Along its only axis. */
typedef struct {
    int axis;
    int64_t start, end;
} Piece;

static gboolean find_axes(Place *p)
{
    for (int a = 0; a < p->rank; a++) {
        if (p->box.size[a] == p->data[a])
            continue;
        if (p->box.step[a] != 1)
            return FALSE;
        p->axes[p->n_axes++] = a;
    }
    return TRUE;
}

static gboolean find_place(HnRewrite *r, const HnNode *n, Place *p)
{
    const HnTensor *t = hn_rw_const(r, hn_node_in(n, 1));
    if (t == NULL)
        return hn_rw_miss(r, n, "the positions are not constant");
    *p = (Place){ .rank = hn_rw_rank(r, hn_node_in(n, 0)), .table = t->bytes };
    if (!hn_rw_fixed(r, hn_node_in(n, 0), p->data) || p->rank < 1)
        return hn_rw_miss(r, n, "the shape of '%s' is not known", hn_node_in(n, 0)->name);
    const int64_t axis = ((const HnScatter *)n->params)->axis;
    const gboolean found = n->op == &hn_op_scatternd
                               ? hn_index_box_nd(t, p->rank, p->data, &p->box)
                               : hn_index_box_elements(t, hn_axis(axis, p->rank), p->rank, p->data, &p->box);
    return (found && find_axes(p)) || hn_rw_miss(r, n, "the positions do not make one piece");
}

/* Elements [start, end) of t along an axis. */
static HnTensor *cut(HnRewrite *r, const HnTensor *t, int axis, int64_t start, int64_t end)
{
    int64_t dims[HN_MAX_RANK], inner = 1, outer = 1;
    for (int i = 0; i < t->ndim; i++) {
        dims[i] = i == axis ? end - start : t->dims[i];
        *(i < axis ? &outer : i > axis ? &inner : &(int64_t){ 0 }) *= t->dims[i];
    }
    HnTensor *c = hn_tensor_new(t->dtype, t->ndim, dims, hn_rw_budget(r), NULL);
    const gsize size = t->n > 0 ? t->bytes / (gsize)t->n : 0;
    const gsize row = (gsize)(end - start) * (gsize)inner * size, whole = (gsize)(t->dims[axis] * inner) * size;
    for (int64_t i = 0; c != NULL && i < outer; i++)
        memcpy((char *)c->data + (gsize)i * row,
               (const char *)t->data + (gsize)i * whole + (gsize)(start * inner) * size, row);
    return c;
}

/* Constant part `v` with the updates in place of [start, end): 1 to 3 parts. */
static void add_parts(HnRewrite *r, HnNode *n, GPtrArray *parts, HnValue *v, HnValue *updates, const Piece *piece,
                      int64_t begin)
{
    const HnTensor *t = hn_rw_const(r, v);
    const int64_t start = piece->start - begin, end = piece->end - begin;
    if (start > 0)
        g_ptr_array_add(parts, hn_rw_weight(r, n->graph, v->name, cut(r, t, piece->axis, 0, start)));
    g_ptr_array_add(parts, updates);
    if (end < t->dims[piece->axis])
        g_ptr_array_add(parts, hn_rw_weight(r, n->graph, v->name, cut(r, t, piece->axis, end, t->dims[piece->axis])));
}

static gboolean is_cuttable(const HnRewrite *r, const HnValue *v)
{
    const HnTensor *t = hn_rw_const(r, v);
    if (t == NULL || t->dtype == HN_STRING || !hn_dtype_in(t->dtype, HN_T_COMPUTE))
        return FALSE;
    return v->weight == NULL || hn_rw_single(v) || t->bytes <= 4096; /* not much is stored twice */
}

/* The part of the Concat that the piece lies in, which is constant; -1. *begin: where it begins. */
static int part_with(const HnRewrite *r, const HnNode *c, const Piece *piece, int64_t *begin)
{
    *begin = 0;
    for (guint i = 0; i < c->in->len; i++) {
        const HnDim d = hn_rw_dim(r, hn_node_in(c, (int)i), piece->axis);
        if (!d.known)
            return -1;
        if (piece->start >= *begin && piece->end <= *begin + d.n)
            return is_cuttable(r, hn_node_in(c, (int)i)) ? (int)i : -1;
        *begin += d.n;
    }
    return -1;
}

static HnNode *concat_before(const HnRewrite *r, const HnNode *n, const Piece *piece)
{
    HnNode *c = hn_pattern_maker(n->graph, hn_node_in(n, 0), &hn_op_concat);
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    const int64_t axis = c != NULL ? ((const HnConcat *)c->params)->axis : 0;
    return c != NULL && axis + (axis < 0 ? rank : 0) == piece->axis ? c : NULL;
}

/* The updates, in the shape of the box. */
static HnValue *shaped(HnRewrite *r, HnNode *n, const Place *p)
{
    HnValue *u = hn_node_in(n, 2);
    gboolean same = hn_rw_rank(r, u) == p->rank;
    for (int a = 0; a < p->rank && same; a++)
        same = hn_dim_is(hn_rw_dim(r, u, a), p->box.size[a]);
    return same ? u : hn_rw_out(r, hn_shapes_reshape(r, n, u, p->box.size, p->rank), "updates");
}

/* --- constant data ------------------------------------------------------------------------------------------------ */

/* The Concat before n, of which the part that is overwritten is constant, or no Concat where all of the data is. */
static gboolean has_constant(const HnRewrite *r, const HnNode *n, const Piece *piece, HnNode **concat, int *part,
                             int64_t *begin)
{
    *begin = *part = 0;
    *concat = NULL;
    if (is_cuttable(r, hn_node_in(n, 0)))
        return TRUE;
    *concat = concat_before(r, n, piece);
    *part = *concat != NULL && (*concat)->in->len <= MOST_PARTS ? part_with(r, *concat, piece, begin) : -1;
    return *part >= 0;
}

static gboolean join_constants(HnRewrite *r, HnNode *n, const Place *p, const Piece *piece, HnNode *concat, int part,
                               int64_t begin)
{
    if (!hn_rw_can(n->graph, &hn_op_concat, 4) || !hn_rw_go(r, n))
        return FALSE;
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    HnValue *updates = shaped(r, n, p);
    for (int i = 0; concat != NULL && i < (int)concat->in->len; i++)
        if (i == part)
            add_parts(r, n, parts, hn_node_in(concat, i), updates, piece, begin);
        else
            g_ptr_array_add(parts, hn_node_in(concat, i));
    if (concat == NULL)
        add_parts(r, n, parts, hn_node_in(n, 0), updates, piece, 0);
    HnNode *all = hn_rw_add(r, n, "Concat", (HnValue *const *)parts->pdata, (int)parts->len);
    hn_node_set_int(all, "axis", piece->axis);
    return hn_rw_take(r, all, n);
}

/* Another piece goes into what n makes: that one becomes a part of a Concat. */
static gboolean is_filled_on(const HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *user = v->users->pdata[i];
        if (hn_node_in(user, 0) == v && (user->op == &hn_op_scatternd || user->op == &hn_op_scatterelements))
            return TRUE;
    }
    return FALSE;
}

static gboolean is_paddable(const HnRewrite *r, const HnNode *n, const Place *p)
{
    const HnTensor *t = hn_rw_const(r, hn_node_in(n, 0));
    double x;
    if (t == NULL || !hn_dtype_in(t->dtype, HN_T_FLOATS) || !hn_rw_uniform(r, hn_node_in(n, 0), &x) || isnan(x))
        return FALSE;
    if (2 * p->rank > HN_MAX_RANK || (p->n_axes == 1 && (t->bytes < LEAST_PADDED || is_filled_on(n))))
        return FALSE;
    return hn_rw_can(n->graph, &hn_op_pad, t->dtype == HN_BF16 ? 13 : 11);
}

/* One number around the updates. */
static gboolean pad(HnRewrite *r, HnNode *n, const Place *p)
{
    const HnTensor *t = hn_rw_const(r, hn_node_in(n, 0));
    int64_t pads[HN_MAX_RANK];
    if (!hn_rw_go(r, n))
        return FALSE;
    for (int a = 0; a < p->rank; a++) {
        pads[a] = p->box.first[a];
        pads[p->rank + a] = p->data[a] - p->box.first[a] - p->box.size[a];
    }
    HnTensor *number = hn_tensor_new(t->dtype, 0, NULL, hn_rw_budget(r), NULL);
    if (number != NULL)
        memcpy(number->data, t->data, number->bytes);
    HnValue *amounts = hn_rw_weight_ints(r, n->graph, "pads", pads, 2 * p->rank);
    HnValue *value = hn_rw_weight(r, n->graph, "number", number);
    return hn_rw_take(r, hn_rw_add(r, n, "Pad", HN_INS(shaped(r, n, p), amounts, value)), n);
}

/* --- computed data ------------------------------------------------------------------------------------------------ */

static HnValue *part_of(HnRewrite *r, HnNode *n, HnValue *x, int axis, int64_t start, int64_t end)
{
    const HnBounds b = { .n = 1, .axis = { axis }, .start = { start }, .end = { end }, .step = { 1 } };
    return hn_rw_out(r, hn_shapes_slice(r, n, x, &b), "part");
}

/* `data`, which is of the box's size along the first i of its axes, with the updates in it. */
static HnNode *around(HnRewrite *r, HnNode *n, const Place *p, HnValue *data, HnValue *updates, int i)
{
    const int axis = p->axes[i];
    const int64_t start = p->box.first[axis], end = start + p->box.size[axis];
    HnValue *parts[3];
    int n_parts = 0;
    if (start > 0)
        parts[n_parts++] = part_of(r, n, data, axis, 0, start);
    parts[n_parts] = updates;
    if (i + 1 < p->n_axes) {
        HnValue *inside = part_of(r, n, data, axis, start, end);
        parts[n_parts] = hn_rw_out(r, around(r, n, p, inside, updates, i + 1), "inside");
    }
    n_parts++;
    if (end < p->data[axis])
        parts[n_parts++] = part_of(r, n, data, axis, end, p->data[axis]);
    HnNode *all = hn_rw_add(r, n, "Concat", parts, n_parts);
    hn_node_set_int(all, "axis", axis);
    return all;
}

static gboolean join_slices(HnRewrite *r, HnNode *n, const Place *p)
{
    HnValue *data = hn_node_in(n, 0);
    if (p->table < (gsize)p->n_axes * LEAST_TABLE)
        return hn_rw_miss(r, n, "'%s' is not constant where it is overwritten, and the positions are few", data->name);
    if (!hn_rw_can(n->graph, &hn_op_concat, 4) || !hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, around(r, n, p, data, shaped(r, n, p), 0), n);
}

/* --- all of the data ---------------------------------------------------------------------------------------------- */

static gboolean combine(HnRewrite *r, HnNode *n, const Place *p)
{
    const HnReduction how = ((const HnScatter *)n->params)->reduction;
    const gboolean easy = hn_dtype_in(hn_rw_dtype(r, hn_node_in(n, 0)), HN_T_FLOATS);
    if (p->n_axes > 0 || !easy || (how != HN_SCATTER_ADD && how != HN_SCATTER_MUL))
        return hn_rw_miss(r, n, "the updates are combined with the data");
    if (!hn_rw_go(r, n))
        return FALSE;
    HnValue *updates = shaped(r, n, p);
    return hn_rw_take(r, hn_rw_add(r, n, how == HN_SCATTER_ADD ? "Add" : "Mul", HN_INS(hn_node_in(n, 0), updates)), n);
}

static gboolean replace(HnRewrite *r, HnNode *n, const Place *p)
{
    HnValue *u = hn_node_in(n, 2);
    if (hn_rw_same_shape(r, u, hn_node_in(n, 0)))
        return hn_rw_bypass(r, n, hn_node_out(n, 0), u);
    return hn_rw_go(r, n) && hn_rw_take(r, hn_shapes_reshape(r, n, u, p->box.size, p->rank), n);
}

/* Updates have the positions' shape, and that of what a position stands for. */
static gboolean has_updates(HnRewrite *r, const HnNode *n, const Place *p)
{
    int64_t dims[HN_MAX_RANK], have, want;
    const int rank = hn_rw_rank(r, hn_node_in(n, 2));
    return (hn_rw_fixed(r, hn_node_in(n, 2), dims) && hn_dims_count(rank, dims, &have) &&
            hn_dims_count(p->rank, p->box.size, &want) && have == want && have > 0) ||
           hn_rw_miss(r, n, "the shape of the updates is not known");
}

static gboolean fuse_scatter(HnRewrite *r, HnNode *n)
{
    Place p;
    HnNode *concat;
    int part;
    int64_t begin;
    if (n->op != &hn_op_scatternd && n->op != &hn_op_scatterelements && n->op != &hn_op_scatter)
        return FALSE;
    if (!find_place(r, n, &p) || !has_updates(r, n, &p))
        return FALSE;
    if (((const HnScatter *)n->params)->reduction != HN_SCATTER_SET)
        return combine(r, n, &p);
    if (p.n_axes == 0)
        return replace(r, n, &p);
    if (is_paddable(r, n, &p))
        return pad(r, n, &p);
    const int axis = p.axes[0];
    const Piece piece = { axis, p.box.first[axis], p.box.first[axis] + p.box.size[axis] };
    if (p.n_axes == 1 && has_constant(r, n, &piece, &concat, &part, &begin))
        return join_constants(r, n, &p, &piece, concat, part, begin);
    return join_slices(r, n, &p);
}

const HnPass hn_pass_fuse_scatter = {
    .name = "fuse-scatter",
    .summary = "scattered updates that overwrite a box of the data are put into it by Concat or Pad",
    .level = 1,
    .node = fuse_scatter,
};
