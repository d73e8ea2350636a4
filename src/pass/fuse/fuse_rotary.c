/*
 * RotaryEmbedding (opset 23) where it is spelled out for x [B,H,S,D], in halves [x1, x2]:
 *     x * cos + [-x2, x1] * sin
 * The tables are [S,D], each half the same: constants, or Cos and Sin of angles that were doubled by Concat. The
 * operator takes tables [B,S,D/2].
 */
#include <string.h>

#include "op/concat.h"
#include "pass/pattern.h"
#include "pass/shapes.h"

typedef struct {
    HnValue *half;    /* [1 or B, S, D/2], as it is or to be put through `op`; NULL: a constant */
    const HnOp *op;   /* Cos or Sin; NULL: none */
    HnTensor *t;      /* the constant, [S, D] and axes of 1 in front */
    const char *stem; /* of its name */
} Table;

typedef struct {
    HnRewrite *r;
    HnGraph *g;
    HnValue *x;
    Table cos, sin;
} Rotate;

static HnDim dim(const Rotate *m, const HnValue *v, int axis)
{
    return hn_rw_dim(m->r, v, axis);
}

/* v is x from the start (part 0) or from the middle (part 1) of its last axis. */
static gboolean is_half(const Rotate *m, const HnValue *v, int part)
{
    HnNode *n = v->graph == m->g ? v->producer : NULL;
    const HnDim d = dim(m, m->x, -1);
    int axis;
    int64_t start, end;
    if (n == NULL || hn_node_in(n, 0) != m->x || !d.known || d.n % 2 != 0)
        return FALSE;
    if (n->op == &hn_op_slice)
        return hn_shapes_cut(m->r, n, &axis, &start, &end) && axis == 3 && start == part * d.n / 2 &&
               end == (part + 1) * d.n / 2;
    if (n->op != &hn_op_split || n->out->len != 2 || v->producer_out != part)
        return FALSE;
    g_autofree int64_t *sizes = hn_shapes_parts(m->r, n, &axis);
    return sizes != NULL && axis == 3 && sizes[0] == d.n / 2;
}

/* v is [-x2, x1]. */
static gboolean is_turned(const Rotate *m, const HnValue *v)
{
    const HnNode *c = hn_pattern_maker(m->g, v, &hn_op_concat);
    const HnNode *neg = c != NULL && c->in->len == 2 ? hn_pattern_maker(m->g, hn_node_in(c, 0), &hn_op_neg) : NULL;
    const int64_t axis = neg != NULL ? ((const HnConcat *)c->params)->axis : 0;
    return (axis == 3 || axis == -1) && is_half(m, hn_node_in(neg, 0), 1) && is_half(m, hn_node_in(c, 1), 0);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static gboolean are_equal_halves(const HnTensor *t)
{
    const int64_t n = t->dims[t->ndim - 1], rows = n > 0 ? t->n / n : 0;
    const gsize half = n > 0 && t->n > 0 ? t->bytes / (gsize)t->n * (gsize)(n / 2) : 0;
    for (int64_t i = 0; i < rows; i++) {
        const char *row = (const char *)t->data + (gsize)i * 2 * half;
        if (memcmp(row, row + half, half) != 0)
            return FALSE;
    }
    return TRUE;
}

static gboolean constant_table(const Rotate *m, HnTensor *t, Table *table)
{
    if (t->ndim < 2 || t->ndim > 4 || t->dtype != hn_rw_dtype(m->r, m->x) ||
        !hn_dim_is(dim(m, m->x, 3), t->dims[t->ndim - 1]) || !hn_dim_is(dim(m, m->x, 2), t->dims[t->ndim - 2]))
        return FALSE;
    for (int i = 0; i < t->ndim - 2; i++)
        if (t->dims[i] != 1)
            return FALSE;
    table->t = t;
    return are_equal_halves(t);
}

/* v is f, f along the last axis: f. */
static HnValue *doubled(const HnValue *v)
{
    const HnNode *c = hn_rw_maker(v, &hn_op_concat);
    const int64_t axis = c != NULL ? ((const HnConcat *)c->params)->axis : 0;
    return c != NULL && c->in->len == 2 && hn_node_in(c, 0) == hn_node_in(c, 1) && (axis == 2 || axis == -1)
               ? hn_node_in(c, 0)
               : NULL;
}

/* v, seen as [B or 1, 1, S, D], as a table. */
static gboolean read_table(const Rotate *m, HnValue *v, const HnOp *op, const char *stem, Table *table)
{
    HnTensor *t = hn_rw_const(m->r, v);
    *table = (Table){ .stem = stem };
    if (t != NULL)
        return constant_table(m, t, table);
    const HnNode *view = v->producer;
    if (view == NULL || (view->op != &hn_op_unsqueeze && view->op != &hn_op_reshape))
        return FALSE;
    if (hn_rw_rank(m->r, v) != 4 || !hn_dim_is(dim(m, v, 1), 1))
        return FALSE;
    HnValue *w = hn_node_in(view, 0);
    if (hn_rw_rank(m->r, w) != 3 || !hn_rw_same_dim(m->r, w, 0, v, 0) || !hn_rw_same_dim(m->r, w, 1, v, 2) ||
        !hn_rw_same_dim(m->r, w, 2, v, 3))
        return FALSE;
    const HnNode *f = hn_rw_maker(w, op);
    table->op = f != NULL ? op : NULL;
    table->half = doubled(f != NULL ? hn_node_in(f, 0) : w);
    if (table->half == NULL || !hn_rw_visible(m->g, table->half))
        return FALSE;
    return hn_rw_same_dim(m->r, w, 1, m->x, 2) && hn_rw_same_dim(m->r, w, 2, m->x, 3) &&
           (hn_dim_is(dim(m, w, 0), 1) || hn_rw_same_dim(m->r, w, 0, m->x, 0));
}

/* The first half of each row, as [1,S,D/2]. */
static HnValue *half_weight(const Rotate *m, const Table *table)
{
    const HnTensor *t = table->t;
    const int64_t n = t->dims[t->ndim - 1], rows = t->dims[t->ndim - 2], dims[] = { 1, rows, n / 2 };
    HnTensor *h = hn_tensor_new(t->dtype, 3, dims, hn_rw_budget(m->r), NULL);
    const gsize half = h != NULL && rows > 0 ? h->bytes / (gsize)rows : 0;
    for (int64_t i = 0; h != NULL && i < rows; i++)
        memcpy((char *)h->data + (gsize)i * half, (const char *)t->data + (gsize)i * 2 * half, half);
    return hn_rw_weight(m->r, m->g, table->stem, h);
}

/* The table as [B,S,D/2], in front of n. */
static HnValue *make_table(const Rotate *m, HnNode *n, const Table *table)
{
    HnValue *v = table->half;
    if (v == NULL)
        v = half_weight(m, table);
    else if (table->op != NULL)
        v = hn_rw_out(m->r, hn_rw_add(m->r, n, table->op->name, HN_INS(v)), table->stem);
    if (hn_rw_same_dim(m->r, v, 0, m->x, 0))
        return v;
    HnNode *batch = hn_rw_add(m->r, n, "Shape", HN_INS(m->x));
    hn_node_set_int(batch, "start", 0);
    hn_node_set_int(batch, "end", 1);
    HnValue *b = hn_rw_out(m->r, batch, "batch"), *ones = hn_rw_weight_ints(m->r, m->g, "ones", (int64_t[]){ 1, 1 }, 2);
    HnNode *shape = hn_rw_add(m->r, n, "Concat", HN_INS(b, ones));
    hn_node_set_int(shape, "axis", 0);
    return hn_rw_out(m->r, hn_rw_add(m->r, n, "Expand", HN_INS(v, hn_rw_out(m->r, shape, "shape"))), table->stem);
}

/* n adds `plain`, x * cos, and `turned`. */
static gboolean is_rotation(Rotate *m, const HnNode *plain, const HnNode *turned)
{
    for (int i = 0; i < 4; i++) {
        const int a = i / 2, b = i % 2;
        m->x = hn_node_in(plain, a);
        if (m->x != NULL && hn_rw_rank(m->r, m->x) == 4 && is_turned(m, hn_node_in(turned, b)))
            return read_table(m, hn_node_in(plain, 1 - a), &hn_op_cos, "cos", &m->cos) &&
                   read_table(m, hn_node_in(turned, 1 - b), &hn_op_sin, "sin", &m->sin);
    }
    m->x = NULL;
    return FALSE;
}

static gboolean fuse_rotary(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_add)
        return FALSE;
    for (int i = 0; i < 2; i++) {
        Rotate m = { .r = r, .g = n->graph };
        const HnNode *plain = hn_pattern_maker(n->graph, hn_node_in(n, i), &hn_op_mul);
        const HnNode *turned = hn_pattern_maker(n->graph, hn_node_in(n, 1 - i), &hn_op_mul);
        if (plain == NULL || turned == NULL)
            return FALSE;
        if (!is_rotation(&m, plain, turned)) {
            if (m.x != NULL)
                return hn_rw_miss(r, n, "the tables are not two equal halves of S rows");
            continue;
        }
        if (!hn_pattern_is_float(r, m.x))
            return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", m.x->name);
        if (!hn_rw_can(n->graph, &hn_op_rotaryembedding, 23))
            return hn_rw_miss(r, n, "RotaryEmbedding needs opset 23, and the model has %" PRId64,
                              hn_rw_opset(n->graph));
        if (!hn_rw_go(r, n))
            return FALSE;
        HnValue *c = make_table(&m, n, &m.cos), *s = make_table(&m, n, &m.sin);
        return hn_rw_take(r, hn_rw_add(r, n, "RotaryEmbedding", HN_INS(m.x, c, s)), n);
    }
    return FALSE;
}

const HnPass hn_pass_fuse_rotary = {
    .name = "fuse-rotary",
    .summary = "RotaryEmbedding where it is spelled out with halves of the heads (opset 23)",
    .level = 2,
    .node = fuse_rotary,
};
