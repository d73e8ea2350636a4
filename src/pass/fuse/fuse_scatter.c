/*
 * ScatterND and ScatterElements with constant positions that make a box: all of the data is overwritten, then the
 * updates are the result; or a piece of it along one axis, and the data is constant (a cache that begins as zeros), or
 * a Concat with the piece in a constant part: then the result is a Concat of constants and updates.
 */
#include <string.h>

#include "op/concat.h"
#include "op/scatter.h"
#include "pass/pattern.h"

#define MOST_PARTS 64 /* of a Concat that pieces go into one by one */

typedef struct {
    int axis; /* along which the box does not reach from end to end; -1: it does everywhere */
    int64_t start, end;
} Box;

/* Positions [i_0, ..., i_k-1, :] of ScatterND are i plus an offset of `first`. */
static gboolean is_grid(const HnTensor *t, int k, const int64_t *first)
{
    int64_t at[HN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < t->n; i += k) {
        for (int j = 0; j < k; j++)
            if (hn_tensor_get_i64(t, i + j) != first[j] + at[j])
                return FALSE;
        for (int j = k - 1; j >= 0 && ++at[j] == t->dims[j]; j--)
            at[j] = 0;
    }
    return TRUE;
}

/* Box of `size` from `first` on in the first k dimensions of data. */
static gboolean box_of(int k, const int64_t *first, const int64_t *size, const int64_t *data, Box *box)
{
    *box = (Box){ .axis = -1 };
    for (int j = 0; j < k; j++) {
        if (first[j] < 0 || size[j] < 1 || first[j] > data[j] || size[j] > data[j] - first[j])
            return FALSE;
        if (size[j] == data[j])
            continue;
        if (box->axis >= 0)
            return FALSE;
        *box = (Box){ j, first[j], first[j] + size[j] };
    }
    return TRUE;
}

static gboolean nd_box(const HnTensor *t, int rank, const int64_t *data, Box *box)
{
    const int k = t->ndim > 0 ? (int)t->dims[t->ndim - 1] : 0;
    int64_t first[HN_MAX_RANK];
    if (t->n == 0 || k < 1 || k > rank || t->ndim != k + 1)
        return FALSE;
    for (int j = 0; j < k; j++) {
        first[j] = hn_tensor_get_i64(t, j);
        first[j] += first[j] < 0 ? data[j] : 0;
    }
    return is_grid(t, k, first) && box_of(k, first, t->dims, data, box);
}

static gboolean elements_box(const HnTensor *t, int axis, int rank, const int64_t *data, Box *box)
{
    int64_t first[HN_MAX_RANK] = { 0 }, inner = 1;
    if (t->n == 0 || t->ndim != rank)
        return FALSE;
    for (int j = axis + 1; j < rank; j++)
        inner *= t->dims[j];
    first[axis] = hn_tensor_get_i64(t, 0);
    for (int64_t i = 0; i < t->n; i++)
        if (hn_tensor_get_i64(t, i) != first[axis] + i / inner % t->dims[axis])
            return FALSE;
    return box_of(rank, first, t->dims, data, box);
}

/* Where n writes, in data whose dimensions are all known. */
static gboolean find_box(HnRewrite *r, const HnNode *n, Box *box)
{
    const HnScatter *p = n->params;
    const HnTensor *t = hn_rw_const(r, hn_node_in(n, 1));
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    int64_t data[HN_MAX_RANK];
    if (t == NULL)
        return hn_rw_miss(r, n, "the positions are not constant");
    if (!hn_rw_fixed(r, hn_node_in(n, 0), data) || rank < 1)
        return hn_rw_miss(r, n, "the shape of '%s' is not known", hn_node_in(n, 0)->name);
    const int axis = (int)(p->axis < 0 ? p->axis + rank : p->axis);
    if (n->op != &hn_op_scatternd && (axis < 0 || axis >= rank))
        return FALSE;
    return (n->op == &hn_op_scatternd ? nd_box(t, rank, data, box) : elements_box(t, axis, rank, data, box)) ||
           hn_rw_miss(r, n, "the positions do not make one piece along one axis");
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
static void add_parts(HnRewrite *r, HnNode *n, GPtrArray *parts, HnValue *v, int axis, int64_t start, int64_t end)
{
    const HnTensor *t = hn_rw_const(r, v);
    if (start > 0)
        g_ptr_array_add(parts, hn_rw_weight(r, n->graph, v->name, cut(r, t, axis, 0, start)));
    g_ptr_array_add(parts, hn_node_in(n, 2));
    if (end < t->dims[axis])
        g_ptr_array_add(parts, hn_rw_weight(r, n->graph, v->name, cut(r, t, axis, end, t->dims[axis])));
}

static gboolean is_cuttable(const HnRewrite *r, const HnValue *v)
{
    const HnTensor *t = hn_rw_const(r, v);
    if (t == NULL || t->dtype == HN_STRING || !hn_dtype_in(t->dtype, HN_T_COMPUTE))
        return FALSE;
    return v->weight == NULL || hn_rw_single(v) || t->bytes <= 4096; /* not much is stored twice */
}

/* The part of the Concat that [start, end) lies in, which is constant; -1. *begin: where it begins. */
static int part_with(const HnRewrite *r, const HnNode *c, const Box *box, int64_t *begin)
{
    *begin = 0;
    for (guint i = 0; i < c->in->len; i++) {
        const HnDim d = hn_rw_dim(r, hn_node_in(c, (int)i), box->axis);
        if (!d.known)
            return -1;
        if (box->start >= *begin && box->end <= *begin + d.n)
            return is_cuttable(r, hn_node_in(c, (int)i)) ? (int)i : -1;
        *begin += d.n;
    }
    return -1;
}

static HnNode *concat_before(const HnRewrite *r, const HnNode *n, const Box *box)
{
    HnNode *c = hn_pattern_maker(n->graph, hn_node_in(n, 0), &hn_op_concat);
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    const int64_t axis = c != NULL ? ((const HnConcat *)c->params)->axis : 0;
    return c != NULL && axis + (axis < 0 ? rank : 0) == box->axis ? c : NULL;
}

static gboolean becomes_concat(HnRewrite *r, HnNode *n, const Box *box)
{
    HnValue *data = hn_node_in(n, 0);
    HnNode *c = is_cuttable(r, data) ? NULL : concat_before(r, n, box);
    int64_t begin = 0;
    const int part = c != NULL ? part_with(r, c, box, &begin) : -1;
    if (c == NULL ? !is_cuttable(r, data) : part < 0)
        return hn_rw_miss(r, n, "'%s' is not constant where it is overwritten", data->name);
    if ((c != NULL && c->in->len > MOST_PARTS) || !hn_rw_can(n->graph, &hn_op_concat, 4) || !hn_rw_go(r, n))
        return FALSE;
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    for (int i = 0; c != NULL && i < (int)c->in->len; i++)
        if (i == part)
            add_parts(r, n, parts, hn_node_in(c, i), box->axis, box->start - begin, box->end - begin);
        else
            g_ptr_array_add(parts, hn_node_in(c, i));
    if (c == NULL)
        add_parts(r, n, parts, data, box->axis, box->start, box->end);
    HnNode *all = hn_rw_add(r, n, "Concat", (HnValue *const *)parts->pdata, (int)parts->len);
    hn_node_set_int(all, "axis", box->axis);
    return hn_rw_take(r, all, n);
}

/* A shape that ScatterND's updates may have and the data has not. */
static gboolean is_same_shape(HnRewrite *r, const HnNode *n, const Box *box)
{
    const HnValue *u = hn_node_in(n, 2), *data = hn_node_in(n, 0);
    const int rank = hn_rw_rank(r, data);
    gboolean ok = hn_rw_rank(r, u) == rank;
    for (int i = 0; i < rank && ok; i++)
        ok = i == box->axis ? hn_dim_is(hn_rw_dim(r, u, i), box->end - box->start) : hn_rw_same_dim(r, u, i, data, i);
    return ok || hn_rw_miss(r, n, "the shape of the updates is not known");
}

static gboolean fuse_scatter(HnRewrite *r, HnNode *n)
{
    Box box;
    if (n->op != &hn_op_scatternd && n->op != &hn_op_scatterelements && n->op != &hn_op_scatter)
        return FALSE;
    if (((const HnScatter *)n->params)->reduction != HN_SCATTER_SET)
        return hn_rw_miss(r, n, "the updates are combined with the data");
    if (!find_box(r, n, &box) || !is_same_shape(r, n, &box))
        return FALSE;
    if (box.axis < 0)
        return hn_rw_bypass(r, n, hn_node_out(n, 0), hn_node_in(n, 2));
    return becomes_concat(r, n, &box);
}

const HnPass hn_pass_fuse_scatter = {
    .name = "fuse-scatter",
    .summary = "scattered updates that overwrite all of the data, or a piece of a constant, become Concat",
    .level = 1,
    .node = fuse_scatter,
};
