/*
 * Shapes that are computed although they say nothing new: what Reshape, Expand and Slice get is a constant list where
 * sizes are numbers, copies of the input's, or follow from the others; Resize to a multiple of its input's size is one
 * by a constant factor; parts of a Shape are Shapes, parts side by side one of them.
 */
#include "op/resize.h"
#include "pass/shapes.h"

/* --- lists that are constants ------------------------------------------------------------------------------------- */

#define MOST_MAKERS 128

/* What x holds follows from shapes and weights. What follows from elements of an input may be another list in each run,
 * whatever sizes are declared behind it. */
static gboolean from_shapes(const HnValue *x)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) todo = g_ptr_array_new();
    g_ptr_array_add(todo, (gpointer)x);
    while (todo->len > 0) {
        const HnValue *v = g_ptr_array_steal_index(todo, todo->len - 1);
        const HnNode *n = v->producer;
        if (v->weight != NULL || (n != NULL && (n->op == &hn_op_shape || n->op == &hn_op_size)))
            continue;
        if (n == NULL || n->op == NULL || (n->op->flags & HN_OP_CONTROL) != 0)
            return FALSE;
        if (!g_hash_table_add(seen, (gpointer)n))
            continue;
        if (g_hash_table_size(seen) > MOST_MAKERS)
            return FALSE;
        for (guint i = 0; i < n->in->len; i++)
            if (n->in->pdata[i] != NULL)
                g_ptr_array_add(todo, n->in->pdata[i]);
    }
    return TRUE;
}

static gboolean constant_reshape(HnRewrite *r, HnNode *n)
{
    const HnType *t = hn_rw_type(r, hn_node_out(n, 0));
    const HnAttr *zero = hn_node_attr(n, "allowzero");
    int64_t list[HN_MAX_RANK];
    if (hn_node_in(n, 1) == NULL || hn_rw_const(r, hn_node_in(n, 1)) != NULL)
        return FALSE;
    if (t == NULL || (zero != NULL && zero->i != 0) || !hn_shapes_constant(r, hn_node_in(n, 0), t->rank, t->dims, list))
        return hn_rw_miss(r, n, "more than one size of '%s' is not known", hn_node_out(n, 0)->name);
    if (!from_shapes(hn_node_in(n, 1)))
        return hn_rw_miss(r, n, "its sizes come from the elements of an input");
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 1, hn_rw_weight_ints(r, n->graph, "shape", list, t->rank));
    return hn_rw_done(r, n);
}

static gboolean constant_expand(HnRewrite *r, HnNode *n)
{
    const HnType *t = hn_rw_type(r, hn_node_out(n, 0));
    const int before = hn_rw_rank(r, hn_node_in(n, 0));
    int64_t list[HN_MAX_RANK];
    if (hn_rw_const(r, hn_node_in(n, 1)) != NULL)
        return FALSE;
    for (int i = 0; t != NULL && i < t->rank; i++) {
        const int a = i - (t->rank - before);
        if (t->dims[i].known)
            list[i] = t->dims[i].n;
        else if (a >= 0 && hn_dim_equal(t->dims[i], hn_rw_dim(r, hn_node_in(n, 0), a)))
            list[i] = 1;
        else
            return FALSE;
    }
    if (t == NULL || t->rank < 0 || before < 0)
        return FALSE;
    if (!from_shapes(hn_node_in(n, 1)))
        return hn_rw_miss(r, n, "its sizes come from the elements of an input");
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 1, hn_rw_weight_ints(r, n->graph, "shape", list, t->rank));
    return hn_rw_done(r, n);
}

/* A bound of a Slice: a number, or the whole size of its axis. */
static gboolean bound_of(HnDim bound, HnDim size, int64_t *to)
{
    *to = bound.known ? bound.n : INT64_MAX;
    return bound.known || hn_dim_equal(bound, size);
}

static gboolean constant_slice(HnRewrite *r, HnNode *n)
{
    const HnContents *start = hn_rw_contents(r, hn_node_in(n, 1)), *end = hn_rw_contents(r, hn_node_in(n, 2));
    const HnValue *x = hn_node_in(n, 0);
    const int rank = hn_rw_rank(r, x);
    int64_t axes[HN_MAX_RANK], starts[HN_MAX_RANK], ends[HN_MAX_RANK];
    int count;
    if (hn_rw_opset(n->graph) < 10 || start == NULL || end == NULL || start->n != end->n || start->n > HN_MAX_RANK)
        return FALSE;
    if (hn_rw_const(r, hn_node_in(n, 1)) != NULL && hn_rw_const(r, hn_node_in(n, 2)) != NULL)
        return FALSE; /* it is constant already */
    if (hn_node_in(n, 4) != NULL && hn_rw_const(r, hn_node_in(n, 4)) == NULL)
        return FALSE;
    for (int i = 0; i < HN_MAX_RANK; i++)
        axes[i] = i;
    count = start->n;
    if ((hn_node_in(n, 3) != NULL && !hn_rw_ints(r, hn_node_in(n, 3), axes, HN_MAX_RANK, &count)) || count != start->n)
        return FALSE;
    for (int i = 0; i < count; i++) {
        const int64_t a = axes[i] + (axes[i] < 0 ? rank : 0);
        const HnDim size = a >= 0 && a < rank ? hn_rw_dim(r, x, (int)a) : hn_dim_unknown();
        if (!bound_of(start->d[i], size, &starts[i]) || !bound_of(end->d[i], size, &ends[i]))
            return hn_rw_miss(r, n, "its bounds are not constant");
    }
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 1, hn_rw_weight_ints(r, n->graph, "starts", starts, count));
    hn_rw_set_in(r, n, 2, hn_rw_weight_ints(r, n->graph, "ends", ends, count));
    if (hn_node_in(n, 3) != NULL) /* of one type with the others */
        hn_rw_set_in(r, n, 3, hn_rw_weight_ints(r, n->graph, "axes", axes, count));
    if (hn_node_in(n, 4) != NULL) {
        int64_t steps[HN_MAX_RANK];
        if (hn_rw_ints(r, hn_node_in(n, 4), steps, HN_MAX_RANK, &count))
            hn_rw_set_in(r, n, 4, hn_rw_weight_ints(r, n->graph, "steps", steps, count));
    }
    return hn_rw_done(r, n);
}

/* Sizes that are whole multiples of the input's: scales. */
static gboolean constant_resize(HnRewrite *r, HnNode *n)
{
    const HnResize *p = n->params;
    const HnValue *x = hn_node_in(n, 0), *sizes = p->sizes >= 0 ? hn_node_in(n, p->sizes) : NULL;
    const HnContents *c = sizes != NULL ? hn_rw_contents(r, sizes) : NULL;
    const int rank = hn_rw_rank(r, x);
    if (c == NULL || c->n != rank || rank > HN_MAX_RANK || hn_rw_const(r, sizes) != NULL)
        return FALSE;
    if (p->axes != NULL || p->policy != HN_RESIZE_STRETCH || p->place == HN_RESIZE_CROP)
        return FALSE;
    int64_t len = rank;
    g_autoptr(HnTensor) scales = hn_tensor_new(HN_F32, 1, &len, hn_rw_budget(r), NULL);
    for (int i = 0; i < rank; i++) {
        const HnDim d = hn_rw_dim(r, x, i), k = hn_dim_floor_div(c->d[i], d);
        if (scales == NULL || !k.known || k.n < 1 || k.n > 1 << 20 || !hn_dim_equal(hn_dim_mul(k, d), c->d[i]))
            return hn_rw_miss(r, n, "the size of axis %d is no multiple of the input's", i);
        hn_tensor_set_f64(scales, i, (double)k.n);
    }
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, p->scales, hn_rw_weight(r, n->graph, "scales", g_steal_pointer(&scales)));
    hn_rw_cut_in(r, n, 3); /* behind the scales are the sizes */
    return hn_rw_done(r, n);
}

/* --- parts of shapes ---------------------------------------------------------------------------------------------- */

/* v holds dimensions [*start, *end) of the result: a value with a known rank. */
static HnValue *shape_of(const HnRewrite *r, const HnValue *v, int *start, int *end)
{
    const HnNode *n = hn_rw_maker(v, &hn_op_shape);
    HnValue *x = n != NULL ? hn_node_in(n, 0) : NULL;
    const int rank = x != NULL ? hn_rw_rank(r, x) : -1;
    const HnAttr *from = n != NULL ? hn_node_attr(n, "start") : NULL, *to = n != NULL ? hn_node_attr(n, "end") : NULL;
    if (rank < 0)
        return NULL;
    const int64_t s = from != NULL ? from->i : 0, e = to != NULL ? to->i : rank;
    *start = (int)CLAMP(s < 0 ? s + rank : s, 0, rank);
    *end = (int)CLAMP(e < 0 ? e + rank : e, *start, rank);
    return x;
}

static HnNode *add_shape(HnRewrite *r, HnNode *before, HnValue *x, int start, int end)
{
    HnNode *s = hn_rw_add(r, before, "Shape", HN_INS(x));
    if (start > 0)
        hn_node_set_int(s, "start", start);
    if (end < hn_rw_rank(r, x))
        hn_node_set_int(s, "end", end);
    return s;
}

/* Gather of one index in a list, or Slice, of a Shape. */
static gboolean part_of_shape(HnRewrite *r, HnNode *n)
{
    int start, end;
    HnValue *x = shape_of(r, hn_node_in(n, 0), &start, &end);
    int64_t from, to, index[1];
    int axis, count;
    if (x == NULL || hn_rw_opset(n->graph) < 15)
        return FALSE;
    if (n->op == &hn_op_slice) {
        if (!hn_shapes_cut(r, n, &axis, &from, &to) || from >= to)
            return FALSE;
    } else {
        if (hn_rw_rank(r, hn_node_in(n, 1)) != 1 || !hn_rw_ints(r, hn_node_in(n, 1), index, 1, &count) || count != 1)
            return FALSE;
        from = index[0] + (index[0] < 0 ? end - start : 0);
        to = from + 1;
    }
    if (from < 0 || to > end - start || !hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, add_shape(r, n, x, start + (int)from, start + (int)to), n);
}

/* Concat of Shapes of one value side by side, one pair at a time. */
static gboolean join_shapes(HnRewrite *r, HnNode *n)
{
    int a, b, c, d;
    if (hn_rw_opset(n->graph) < 15)
        return FALSE;
    for (int i = 0; i + 1 < (int)n->in->len; i++) {
        HnValue *x = shape_of(r, hn_node_in(n, i), &a, &b);
        if (x == NULL || shape_of(r, hn_node_in(n, i + 1), &c, &d) != x || b != c || a == b || c == d)
            continue;
        if (!hn_rw_go(r, n))
            return FALSE;
        HnNode *s = add_shape(r, n, x, a, d);
        if (n->in->len == 2)
            return hn_rw_take(r, s, n);
        hn_rw_set_in(r, n, i, hn_rw_out(r, s, "shape"));
        for (int k = i + 1; k + 1 < (int)n->in->len; k++)
            hn_rw_set_in(r, n, k, hn_node_in(n, k + 1));
        hn_rw_cut_in(r, n, (int)n->in->len - 1);
        return hn_rw_done(r, n);
    }
    return FALSE;
}

static gboolean simplify_shapes(HnRewrite *r, HnNode *n)
{
    static const struct {
        const HnOp *op;
        gboolean (*rewrite)(HnRewrite *r, HnNode *n);
    } known[] = {
        { &hn_op_reshape, constant_reshape }, { &hn_op_expand, constant_expand }, { &hn_op_slice, constant_slice },
        { &hn_op_resize, constant_resize },   { &hn_op_slice, part_of_shape },    { &hn_op_gather, part_of_shape },
        { &hn_op_concat, join_shapes },
    };
    if (n->op == NULL || !hn_value_is_read(hn_node_out(n, 0)))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (n->op == known[i].op && known[i].rewrite(r, n))
            return TRUE;
    return FALSE;
}

const HnPass hn_pass_simplify_shapes = {
    .name = "simplify-shapes",
    .summary = "constants for shapes and bounds that sizes, known or not, do not change",
    .level = 1,
    .node = simplify_shapes,
};
