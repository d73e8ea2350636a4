/*
 * One part of shuffled channels is every other channel: where Gather of one index, or Split, reads what Reshape,
 * Transpose and Reshape made of a value of known sizes, and takes just what a Slice with steps takes of that value, it
 * is that Slice. (ShuffleNet's channel shuffle, and the halves it is cut into.)
 */
#include "op/concat.h"
#include "op/gather.h"
#include "pass/lib/carry.h"
#include "pass/shapes.h"

#define MOST_PARTS 3    /* more Slices would not be fewer nodes */
#define MOST_READERS 64 /* of shuffled channels, each of which looks at the others */

/* Where the elements of a value lie in the memory of another one. */
typedef struct {
    int rank;
    int64_t dims[HN_MAX_RANK], strides[HN_MAX_RANK], offset;
} Place;

static void place_plain(Place *p, int rank, const int64_t *dims)
{
    int64_t s = 1;
    *p = (Place){ .rank = rank };
    for (int a = rank - 1; a >= 0; a--) {
        p->dims[a] = dims[a];
        p->strides[a] = s;
        s *= dims[a];
    }
}

static void place_transpose(Place *p, const HnOrder *o)
{
    const Place was = *p;
    for (int a = 0; a < o->rank; a++) {
        p->dims[a] = was.dims[o->to[a]];
        p->strides[a] = was.strides[o->to[a]];
    }
}

/* The same elements under other sizes, none of them 0: runs of axes that lie as one are cut anew. FALSE: not possible.
 */
static gboolean place_reshape(Place *p, int rank, const int64_t *dims)
{
    Place to = { .rank = rank, .offset = p->offset };
    int a = p->rank - 1, b = rank - 1;
    while (a >= 0 || b >= 0) {
        /* the fewest axes of both sides that hold as many elements */
        int64_t have = a >= 0 ? p->dims[a] : 1, want = b >= 0 ? dims[b] : 1;
        int64_t stride = a >= 0 ? p->strides[a] : 1, next = stride;
        int last = b;
        a -= a >= 0;
        b -= b >= 0;
        while (have != want)
            if (have < want) {
                if (a < 0 || (have > 1 && p->dims[a] > 1 && p->strides[a] != stride * have))
                    return FALSE;
                if (have == 1)
                    next = stride = p->strides[a];
                have *= p->dims[a--];
            } else {
                if (b < 0)
                    return FALSE;
                want *= dims[b--];
            }
        for (int i = last; i > b; i--) {
            to.dims[i] = dims[i];
            to.strides[i] = next;
            next *= dims[i];
        }
    }
    *p = to;
    return TRUE;
}

/* The part of x that p is, as a Slice along one axis. FALSE: it is none. */
static gboolean as_slice(const Place *p, int rank, const int64_t *dims, HnBounds *s)
{
    Place x;
    int axis = -1;
    place_plain(&x, rank, dims);
    if (p->rank != rank)
        return FALSE;
    for (int a = 0; a < rank; a++) {
        gboolean same = p->dims[a] == dims[a] && (dims[a] == 1 || p->strides[a] == x.strides[a]);
        if (!same && axis >= 0)
            return FALSE;
        if (!same)
            axis = a;
    }
    if (axis < 0 || p->dims[axis] < 1 || p->strides[axis] % x.strides[axis] != 0 || p->offset % x.strides[axis] != 0)
        return FALSE;
    const int64_t step = p->strides[axis] / x.strides[axis], start = p->offset / x.strides[axis];
    *s = (HnBounds){ .n = 1, .axis = { axis }, .start = { start }, .step = { MAX(step, 1) } };
    s->end[0] = start + (p->dims[axis] - 1) * s->step[0] + 1;
    return step >= 1 && s->end[0] <= dims[axis];
}

/* Sizes of v. A symbolic first one that x has too is 1 here: all that is looked at happens behind it. */
static gboolean sizes_of(const HnRewrite *r, const HnValue *v, const HnValue *x, int64_t *dims)
{
    const int rank = hn_rw_rank(r, v);
    for (int a = 0; a < rank; a++) {
        HnDim d = hn_rw_dim(r, v, a);
        if (!d.known && (a > 0 || !hn_dim_equal(d, hn_rw_dim(r, x, 0))))
            return FALSE;
        dims[a] = d.known ? d.n : 1;
    }
    return rank >= 0 && rank <= HN_MAX_RANK;
}

/* x is stored quantized, or a part of v will be. */
static gboolean is_quantized(const HnValue *x, const HnValue *v)
{
    if (hn_op_is_unpacked(x))
        return TRUE;
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        for (guint k = 0; k < n->out->len; k++) {
            const HnValue *part = n->out->pdata[k];
            for (guint u = 0; part != NULL && u < part->users->len; u++)
                if (((const HnNode *)part->users->pdata[u])->op == &hn_op_quantizelinear)
                    return TRUE;
        }
    }
    return FALSE;
}

/* What v is, seen from x, Reshape, Transpose and Reshape behind it, with `parts` of axis `cut` as an axis of their own
 * in front of it. */
static gboolean read_shuffle(const HnRewrite *r, HnValue *v, int cut, int64_t parts, HnValue **x, Place *p)
{
    int64_t dims[HN_MAX_RANK], last[HN_MAX_RANK + 1];
    HnNode *second = hn_rw_maker(v, &hn_op_reshape);
    HnNode *turn = second != NULL ? hn_rw_maker(hn_node_in(second, 0), &hn_op_transpose) : NULL;
    HnNode *first = turn != NULL ? hn_rw_maker(hn_node_in(turn, 0), &hn_op_reshape) : NULL;
    HnOrder o;
    if (first == NULL || !hn_order_of(r, turn, &o))
        return FALSE;
    *x = hn_node_in(first, 0);
    if (!hn_rw_lowers(r) && is_quantized(*x, v))
        return FALSE; /* runtimes move the bytes instead, through the operators that are there */
    int64_t elements, same;
    if (!sizes_of(r, *x, *x, dims) || !hn_dims_count(hn_rw_rank(r, *x), dims, &elements) || elements == 0)
        return FALSE;
    place_plain(p, hn_rw_rank(r, *x), dims);
    if (!sizes_of(r, hn_node_in(turn, 0), *x, dims) || !hn_dims_count(o.rank, dims, &same) || same != elements ||
        !place_reshape(p, o.rank, dims))
        return FALSE;
    if (!sizes_of(r, v, *x, last) || !hn_dims_count(hn_rw_rank(r, v), last, &same) || same != elements)
        return FALSE;
    place_transpose(p, &o);
    int rank = hn_rw_rank(r, v);
    if (!hn_rw_dim(r, *x, 0).known &&
        (o.to[0] != 0 || hn_rw_dim(r, hn_node_in(turn, 0), 0).known || hn_rw_dim(r, v, 0).known))
        return FALSE; /* the first axis is not the same throughout */
    if (parts == 1)
        return place_reshape(p, rank, last);
    if (rank == HN_MAX_RANK || last[cut] % parts != 0)
        return FALSE;
    for (int a = rank++; a > cut; a--)
        last[a] = last[a - 1];
    last[cut] = parts;
    last[cut + 1] /= parts;
    return place_reshape(p, rank, last);
}

/* Number `index` along `axis`. */
static void place_select(Place *p, int axis, int64_t index)
{
    p->offset += index * p->strides[axis];
    for (int a = axis; a < p->rank - 1; a++) {
        p->dims[a] = p->dims[a + 1];
        p->strides[a] = p->strides[a + 1];
    }
    p->rank--;
}

/* Nobody needs the shuffled channels any more when all their parts are Slices: else one would be a step more. */
static gboolean all_are_parts(const HnRewrite *r, const HnValue *v)
{
    if (v->users->len > MOST_READERS || v->is_output)
        return FALSE;
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        const HnTensor *t = n->op == &hn_op_gather ? hn_rw_known(r, hn_node_in(n, 1)) : NULL;
        if (t == NULL || t->ndim != 0)
            return FALSE;
    }
    return TRUE;
}

static gboolean slice_gathered(HnRewrite *r, HnNode *n)
{
    HnValue *x;
    Place p;
    HnBounds s;
    int64_t dims[HN_MAX_RANK], index;
    const HnTensor *t = hn_rw_known(r, hn_node_in(n, 1));
    if (t == NULL || t->ndim != 0 || (hn_rw_lowers(r) && !all_are_parts(r, hn_node_in(n, 0))))
        return FALSE;
    if (!read_shuffle(r, hn_node_in(n, 0), 0, 1, &x, &p))
        return FALSE;
    int64_t axis = ((const HnGather *)n->params)->axis;
    axis += axis < 0 ? p.rank : 0;
    index = hn_tensor_get_i64(t, 0);
    if (axis < (hn_rw_dim(r, x, 0).known ? 0 : 1) || axis >= p.rank || index < -p.dims[axis] || index >= p.dims[axis])
        return FALSE;
    place_select(&p, (int)axis, index + (index < 0 ? p.dims[axis] : 0));
    sizes_of(r, x, x, dims);
    if (!as_slice(&p, hn_rw_rank(r, x), dims, &s))
        return hn_rw_miss(r, n, "it takes no even part of '%s'", x->name);
    return hn_rw_go(r, n) && hn_rw_take(r, hn_shapes_slice(r, n, x, &s), n);
}

static gboolean slice_split(HnRewrite *r, HnNode *n)
{
    HnValue *x, *v = hn_node_in(n, 0);
    Place p;
    HnBounds s[MOST_PARTS];
    int64_t dims[HN_MAX_RANK];
    const guint count = n->out->len;
    int axis;
    if (count < 2 || count > MOST_PARTS || !hn_rw_single(v) || hn_rw_maker(v, &hn_op_reshape) == NULL)
        return FALSE;
    g_autofree int64_t *parts = hn_shapes_parts(r, n, &axis);
    for (guint k = 0; k < count; k++)
        if (parts == NULL || parts[k] != parts[0] || (axis == 0 && !hn_rw_dim(r, v, 0).known))
            return FALSE;
    for (guint k = 0; k < count; k++) {
        if (!read_shuffle(r, v, axis, count, &x, &p) || !sizes_of(r, x, x, dims))
            return FALSE;
        place_select(&p, axis, k);
        if (!as_slice(&p, hn_rw_rank(r, x), dims, &s[k]))
            return hn_rw_miss(r, n, "part %u is no even part of '%s'", k, x->name);
    }
    if (!hn_rw_go(r, n))
        return FALSE;
    for (guint k = 0; k < count; k++)
        if (n->out->pdata[k] != NULL)
            hn_rw_take_value(r, hn_shapes_slice(r, n, x, &s[k]), n->out->pdata[k]);
    return TRUE;
}

static gboolean slice_shuffled(HnRewrite *r, HnNode *n)
{
    if (hn_rw_opset(n->graph) < 10)
        return FALSE; /* no steps */
    return n->op == &hn_op_gather ? slice_gathered(r, n) : n->op == &hn_op_split && slice_split(r, n);
}

const HnPass hn_pass_slice_shuffled = {
    .name = "slice-shuffled",
    .summary = "Slice with steps instead of a part of shuffled channels",
    .level = 1,
    .node = slice_shuffled,
};
