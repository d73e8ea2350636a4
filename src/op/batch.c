#include "op/batch.h"

#include "op/ops.h"

gboolean hn_batch_fail(HnBatch *b, const char *format, ...)
{
    if (b->error != NULL)
        return FALSE;
    va_list args;
    va_start(args, format);
    b->error = g_error_new_valist(HN_ERROR, HN_ERROR_GUARD, format, args);
    va_end(args);
    return FALSE;
}

gboolean hn_batch_may_edit(HnBatch *b)
{
    return !b->stays || hn_batch_fail(b, "the node would have to change");
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

HnBatchPlace hn_batch_place(int axis)
{
    return (HnBatchPlace){ axis, hn_dim(1), hn_dim(1) };
}

HnBatchPlace hn_batch_none(void)
{
    return hn_batch_place(-1);
}

gboolean hn_batch_alike(const HnBatchPlace *a, const HnBatchPlace *b)
{
    return hn_dim_equal(a->outer, b->outer) && hn_dim_equal(a->inner, b->inner);
}

int hn_batch_rank_was(const HnBatch *b, int i)
{
    return hn_batch_has(b, i) ? hn_type_rank(b->in[i].was) : -1;
}

int hn_batch_rank(const HnBatch *b, int i)
{
    return hn_batch_has(b, i) ? hn_type_rank(b->in[i].now) : -1;
}

gboolean hn_batch_in_front(const HnBatch *b, int i)
{
    return hn_batch_split(b, i) && hn_batch_rank(b, i) == hn_batch_rank_was(b, i) + 1;
}

gboolean hn_batch_ints(const HnBatch *b, int i, int64_t *v, int max, int *n)
{
    const HnTensor *t = hn_batch_has(b, i) ? hn_types_value(b->types, b->in[i].v) : NULL;
    if (t == NULL || t->ndim > 1 || !hn_dtype_in(t->dtype, HN_T_INTS) || t->n > max)
        return FALSE;
    *n = (int)t->n;
    for (int k = 0; k < *n; k++)
        v[k] = hn_tensor_get_i64(t, k);
    return TRUE;
}

int hn_batch_axis(int64_t axis, int rank)
{
    const int64_t a = axis < 0 ? axis + rank : axis;
    return a < 0 || a >= rank ? -1 : (int)a;
}

/* --- nodes in front ----------------------------------------------------------------------------------------------- */

HnNode *hn_batch_add(HnBatch *b, const char *op, HnValue *const *in, int n_in)
{
    HnNode *n = hn_graph_add_node_before(b->node->graph, b->node, op, NULL, NULL);
    for (int i = 0; i < n_in; i++)
        hn_node_add_in(n, in[i]);
    hn_node_add_out(n, hn_graph_new_value(n->graph, op));
    return n;
}

HnValue *hn_batch_done(HnBatch *b, HnNode *n)
{
    if (b->error == NULL)
        hn_types_node(b->types, n, HN_CONTENTS_MAX * sizeof(int64_t), &b->error);
    return hn_node_out(n, 0);
}

HnValue *hn_batch_weight(HnBatch *b, HnTensor *t)
{
    HnGraph *g = b->node->graph;
    HnValue *w = hn_graph_new_value(g, "batch_list");
    hn_graph_add_weight(g, w, t);
    hn_types_set_value(b->types, w, t);
    hn_tensor_unref(t);
    return w;
}

HnValue *hn_batch_constant(HnBatch *b, const int64_t *v, int n)
{
    return hn_batch_weight(b, hn_tensor_ints(v, n));
}

static HnValue *emit(HnBatch *b, const char *op, HnValue *x, HnValue *y)
{
    HnValue *in[] = { x, y };
    return hn_batch_done(b, hn_batch_add(b, op, in, y != NULL ? 2 : 1));
}

/* outer * n * inner as i64[1]. */
static HnValue *size_at(HnBatch *b, int64_t factor)
{
    HnValue *n = b->size(b);
    return factor == 1 || n == NULL ? n : emit(b, "Mul", n, hn_batch_constant(b, &factor, 1));
}

/* v[], with element `at` computed. */
static HnValue *list_with(HnBatch *b, const int64_t *v, int n, int at, int64_t factor)
{
    HnValue *parts[3];
    int k = 0;
    if (at > 0)
        parts[k++] = hn_batch_constant(b, v, at);
    parts[k++] = size_at(b, factor);
    if (at + 1 < n)
        parts[k++] = hn_batch_constant(b, v + at + 1, n - at - 1);
    if (parts[at > 0] == NULL || k == 1)
        return parts[at > 0];
    HnNode *concat = hn_batch_add(b, "Concat", parts, k);
    hn_node_set_int(concat, "axis", 0);
    return hn_batch_done(b, concat);
}

/* d is a multiple of the number of samples. */
static gboolean factor_of(const HnBatch *b, HnDim d, int64_t *factor)
{
    const HnDim f = hn_dim_floor_div(d, b->n);
    *factor = f.n;
    return f.known && hn_dim_equal(hn_dim_mul(f, b->n), d);
}

HnValue *hn_batch_shape(HnBatch *b, const HnType *from, const HnDim *to, int rank)
{
    int64_t list[HN_MAX_RANK], factor;
    int open = -1, more = -1;
    if (!hn_batch_may_edit(b))
        return NULL;
    for (int i = 0; i < rank; i++) {
        list[i] = to[i].known ? to[i].n : 0;
        if (to[i].known || (i < hn_type_rank(from) && hn_dim_equal(from->dims[i], to[i])))
            continue;
        list[i] = -1;
        more = open;
        open = i;
    }
    if (more < 0)
        return hn_batch_constant(b, list, rank);
    if (!factor_of(b, to[more], &factor)) {
        const int other = open;
        open = more;
        more = other;
    }
    for (int i = 0; i < rank; i++)
        if (list[i] < 0 && i != open && i != more)
            more = rank;
    if (more == rank || !factor_of(b, to[more], &factor)) {
        hn_batch_fail(b, "a shape with several free sizes cannot be written down");
        return NULL;
    }
    return list_with(b, list, rank, more, factor);
}

/* --- forms of inputs ---------------------------------------------------------------------------------------------- */

static void set_in(HnBatch *b, int i, HnValue *v, HnBatchPlace at)
{
    hn_node_set_in(b->node, i, v);
    b->in[i].v = v;
    b->in[i].now = hn_types_get(b->types, v);
    b->in[i].at = at;
}

static HnValue *reshape(HnBatch *b, HnValue *x, const HnDim *to, int rank)
{
    HnType *from = hn_types_get(b->types, x);
    gboolean same = hn_type_rank(from) == rank;
    for (int i = 0; i < rank && same; i++)
        same = hn_dim_equal(from->dims[i], to[i]);
    HnValue *list = same ? NULL : hn_batch_shape(b, from, to, rank);
    return same ? x : list == NULL ? NULL : emit(b, "Reshape", x, list);
}

/* Axis `from` of x, which has `rank`, becomes axis `to`. */
static HnValue *move_axis(HnBatch *b, HnValue *x, int rank, int from, int to)
{
    int64_t perm[HN_MAX_RANK];
    int k = 0;
    if (from == to)
        return x;
    for (int i = 0; i < rank; i++) {
        k += k == from;
        perm[i] = i == to ? from : k++;
    }
    HnNode *t = hn_batch_add(b, "Transpose", &x, 1);
    hn_node_set_ints(t, "perm", perm, rank);
    return hn_batch_done(b, t);
}

/* Ones and the sizes that input i had, `rank` of them behind `lead`; the rank of all. */
static int front_dims(const HnBatch *b, int i, int rank, HnDim lead, HnDim *dims)
{
    const HnType *was = b->in[i].was;
    int k = 0;
    dims[k++] = lead;
    while (k < 1 + rank - was->rank)
        dims[k++] = hn_dim(1);
    for (int a = 0; a < was->rank; a++)
        dims[k++] = was->dims[a];
    return k;
}

static gboolean may_lift(HnBatch *b, int i, int rank)
{
    if (!hn_batch_may_edit(b))
        return FALSE;
    if (b->n0 != 1)
        return hn_batch_fail(b, "the %" PRId64 " samples of the model as it is would have to be taken apart", b->n0);
    if (hn_batch_rank_was(b, i) < 0 || hn_batch_rank(b, i) < 0)
        return hn_batch_fail(b, "the rank of input %d is not known", i);
    return MAX(rank, hn_batch_rank_was(b, i)) < HN_MAX_RANK ||
           hn_batch_fail(b, "there is no room for another axis in input %d", i);
}

/* x, the same for all samples, n times along `axis`. */
static HnValue *repeat(HnBatch *b, HnValue *x, int rank, int axis)
{
    int64_t times[HN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        times[i] = 1;
    HnValue *list = list_with(b, times, rank, axis, 1);
    const HnType *t = hn_types_get(b->types, x);
    const gboolean one = hn_type_rank(t) == rank && hn_dim_is(t->dims[axis], 1);
    return list == NULL ? NULL : emit(b, one && hn_graph_opset(b->node->graph, NULL) >= 8 ? "Expand" : "Tile", x, list);
}

/* The samples of x, at `at` of its axes, in front of the others; as [n, outer, inner, ...] where they are apart. */
static HnValue *bring_front(HnBatch *b, HnValue *x, const HnBatchPlace *at)
{
    const HnType *t = hn_types_get(b->types, x);
    HnDim dims[HN_MAX_RANK + 2];
    int k = 0;
    gboolean leading = hn_dim_is(at->outer, 1);
    for (int a = 0; a < at->axis && leading; a++)
        leading = hn_dim_is(t->dims[a], 1);
    if (leading || (hn_dim_is(at->outer, 1) && hn_dim_is(at->inner, 1)))
        return leading ? x : move_axis(b, x, t->rank, at->axis, 0);
    if (t->rank + 2 > HN_MAX_RANK) {
        hn_batch_fail(b, "there is no room for more axes");
        return NULL;
    }
    for (int a = 0; a < t->rank; a++) {
        if (a == at->axis) {
            dims[k++] = at->outer;
            dims[k++] = b->n;
        }
        dims[k++] = a == at->axis ? at->inner : t->dims[a];
    }
    x = reshape(b, x, dims, k);
    return x != NULL ? move_axis(b, x, k, at->axis + 1, 0) : NULL;
}

gboolean hn_batch_lift(HnBatch *b, int i, int rank)
{
    HnBatchIn *in = &b->in[i];
    HnDim dims[HN_MAX_RANK + 1];
    if (!may_lift(b, i, rank))
        return FALSE;
    rank = MAX(rank, hn_batch_rank_was(b, i));
    const gboolean split = hn_batch_split(b, i);
    const int k = front_dims(b, i, rank, split ? b->n : hn_dim(1), dims);
    HnValue *x = split && !hn_batch_in_front(b, i) ? bring_front(b, in->v, &in->at) : in->v;
    if (x != NULL)
        x = reshape(b, x, dims, k);
    if (x != NULL && !split)
        x = repeat(b, x, k, 0);
    if (x == NULL || b->error != NULL)
        return hn_batch_fail(b, "input %d cannot be brought into another form", i);
    set_in(b, i, x, hn_batch_place(0));
    return TRUE;
}

gboolean hn_batch_put(HnBatch *b, int i, int axis)
{
    HnBatchIn *in = &b->in[i];
    const int rank = hn_batch_rank_was(b, i);
    if (rank < 0 || axis >= rank)
        return hn_batch_fail(b, "input %d has no axis %d", i, axis);
    if (hn_batch_split(b, i) && !hn_batch_in_front(b, i) && in->at.axis == axis && hn_dim_is(in->at.outer, 1))
        return TRUE;
    if (!hn_batch_may_edit(b))
        return FALSE;
    HnBatchPlace at = { axis, hn_dim(1), in->was->dims[axis] };
    HnValue *x = in->v;
    if (!hn_batch_split(b, i)) {
        if (b->n0 != 1)
            return hn_batch_fail(b, "input %d holds something of its own for each of the %" PRId64 " samples", i,
                                 b->n0);
        x = repeat(b, x, rank, axis);
    } else {
        HnDim dims[HN_MAX_RANK];
        if (!hn_batch_lift(b, i, 0) || (x = move_axis(b, in->v, rank + 1, 0, axis)) == NULL)
            return FALSE;
        for (int a = 0; a < rank; a++)
            dims[a] = a == axis ? hn_dim_mul(b->n, at.inner) : in->was->dims[a];
        x = reshape(b, x, dims, rank);
    }
    if (x == NULL || b->error != NULL)
        return hn_batch_fail(b, "input %d cannot be brought into another form", i);
    set_in(b, i, x, at);
    return TRUE;
}

void hn_batch_set_ints(HnBatch *b, int i, const int64_t *v, int n, int like)
{
    const int64_t dims[] = { n };
    if (!hn_batch_may_edit(b))
        return;
    HnTensor *t = like >= 0 && b->in[like].now->dtype == HN_I32 ? hn_tensor_new(HN_I32, 1, dims, NULL, NULL) : NULL;
    for (int k = 0; t != NULL && k < n; k++)
        hn_tensor_set_f64(t, k, (double)CLAMP(v[k], G_MININT32, G_MAXINT32));
    set_in(b, i, t != NULL ? hn_batch_weight(b, t) : hn_batch_constant(b, v, n), hn_batch_none());
}

gboolean hn_batch_set_size(HnBatch *b, int i, int at, const HnBatchPlace *place)
{
    int64_t v[HN_MAX_RANK], factor;
    int n;
    if (!hn_batch_may_edit(b))
        return FALSE;
    if (!hn_batch_ints(b, i, v, HN_MAX_RANK, &n) || at >= n)
        return hn_batch_fail(b, "input %d, which says sizes, is not constant", i);
    if (!factor_of(b, hn_dim_mul(b->n, hn_dim_mul(place->outer, place->inner)), &factor))
        return hn_batch_fail(b, "a size cannot be written down");
    HnValue *list = list_with(b, v, n, at, factor);
    if (list == NULL)
        return FALSE;
    set_in(b, i, list, hn_batch_none());
    return TRUE;
}

gboolean hn_batch_become_view(HnBatch *b, const HnDim *to, int rank)
{
    HnNode *n = b->node;
    HnValue *list = hn_batch_shape(b, b->in[0].now, to, rank);
    if (list == NULL)
        return FALSE;
    while (n->attrs->len > 0)
        hn_node_remove_attr(n, ((const HnAttr *)n->attrs->pdata[0])->name);
    hn_node_become(n, "Reshape", NULL);
    hn_node_set_in(n, 1, list);
    while (n->in->len > 2)
        hn_node_remove_in(n, (int)n->in->len - 1);
    return TRUE;
}

gboolean hn_batch_turn_out(HnBatch *b, int k, const int64_t *perm, int rank)
{
    HnNode *n = b->node;
    HnGraph *g = n->graph;
    HnValue *y = hn_node_out(n, k), *inner = hn_graph_new_value(g, "batch_turned");
    HnNode *t = hn_graph_add_node(g, (int)hn_graph_index(g, n) + 1, "Transpose", NULL, NULL);
    hn_node_set_out(n, k, inner);
    hn_node_add_in(t, inner);
    hn_node_set_out(t, 0, y);
    hn_node_set_ints(t, "perm", perm, rank);
    return hn_types_node(b->types, n, 0, &b->error) && hn_types_node(b->types, t, 0, &b->error);
}

void (*hn_batch_rule(const HnOp *op))(HnBatch *b)
{
    if (op->batch != NULL)
        return op->batch;
    return (op->flags & HN_OP_ELEMENTWISE) != 0 && (op->flags & HN_OP_RANDOM) == 0 ? hn_batch_elementwise : NULL;
}
