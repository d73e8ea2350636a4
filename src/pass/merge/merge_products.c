/*
 * Matrix products that share an operand are one: x * A, x * B and x * C (as in attention: queries, keys, values) are
 * the parts of x * [A B C], with the sums of their biases; parts of x times one matrix are the parts of x times it.
 */
#include <string.h>

#include "pass/shapes.h"

#define FEWEST 3                    /* products of one x: two are no fewer nodes than a product and a Split */
#define MOST 8                      /* the same */
#define MOST_BYTES ((gsize)8 << 20) /* of their matrices: larger products gain nothing, and copies cost */

/* --- one x -------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnNode *node[MOST], *last[MOST]; /* the products; what makes their results, the Add of a bias or the product */
    const HnTensor *w[MOST], *bias[MOST];
    guint n;
} Products;

/* A matrix of floats that only n reads, aligned or not; NULL: none. */
static const HnTensor *own_matrix(const HnNode *n)
{
    const HnValue *v = hn_node_in(n, 1);
    const HnTensor *w = v != NULL ? v->weight : NULL;
    if (w == NULL || w->unloaded || !hn_rw_single(v) || v->is_input || v->graph != n->graph)
        return NULL;
    return w->ndim == 2 && w->n > 0 && hn_dtype_in(w->dtype, HN_T_FLOATS) ? w : NULL;
}

/* The Add of a constant for each column behind n. */
static HnNode *bias_of(const HnRewrite *r, const HnNode *n, int64_t columns, const HnTensor **bias)
{
    HnValue *y = hn_node_out(n, 0);
    HnNode *add = hn_rw_reader(y, &hn_op_add);
    const HnTensor *t = add != NULL && add->version >= 7 ? hn_rw_const(r, hn_rw_other(add, y)) : NULL;
    if (t == NULL || t->ndim < 1 || t->n != columns || t->dims[t->ndim - 1] != columns || t->ndim > hn_rw_rank(r, y))
        return NULL;
    *bias = t;
    return add;
}

static gboolean products_of(const HnRewrite *r, const HnNode *first, Products *p)
{
    const HnValue *x = hn_node_in(first, 0);
    gsize bytes = 0;
    gboolean biases = TRUE;
    for (guint i = 0; i < x->users->len; i++) {
        HnNode *n = x->users->pdata[i];
        const HnTensor *w =
            n->op == &hn_op_matmul && n->graph == first->graph && hn_node_in(n, 0) == x ? own_matrix(n) : NULL;
        if (w == NULL || !hn_value_is_read(hn_node_out(n, 0)))
            continue;
        if (p->n == MOST || (p->n > 0 && (w->dtype != p->w[0]->dtype || w->dims[0] != p->w[0]->dims[0])))
            return FALSE;
        p->w[p->n] = w;
        p->node[p->n] = n;
        p->last[p->n] = bias_of(r, n, w->dims[1], &p->bias[p->n]);
        biases = biases && p->last[p->n] != NULL;
        bytes += w->bytes;
        p->n++;
    }
    for (guint i = 0; i < p->n && !biases; i++)
        p->last[i] = p->node[i];
    return p->n >= FEWEST && bytes <= MOST_BYTES;
}

/* Rows of all the tensors side by side. */
static HnTensor *beside(HnRewrite *r, const HnTensor *const *t, guint n, int rank)
{
    int64_t dims[2] = { t[0]->dims[0], 0 }, columns[MOST];
    for (guint i = 0; i < n; i++) {
        columns[i] = t[i]->dims[t[i]->ndim - 1];
        dims[1] += columns[i];
    }
    HnTensor *all = hn_tensor_new_uninit(t[0]->dtype, rank, rank == 2 ? dims : dims + 1, hn_rw_budget(r), NULL);
    const gsize size = hn_dtype_size(t[0]->dtype);
    char *to = all != NULL ? all->data : NULL;
    for (int64_t row = 0; to != NULL && row < (rank == 2 ? dims[0] : 1); row++)
        for (guint i = 0; i < n; i++) {
            const gsize bytes = (gsize)columns[i] * size;
            memcpy(to, (const char *)t[i]->data + (gsize)row * bytes, bytes);
            to += bytes;
        }
    return all;
}

static HnNode *add_split(HnRewrite *r, HnNode *before, HnValue *x, int axis, const int64_t *sizes, guint n)
{
    HnGraph *g = before->graph;
    const gboolean input = hn_rw_opset(g) >= 13;
    HnNode *s =
        hn_rw_add(r, before, "Split", HN_INS(x, input ? hn_rw_weight_ints(r, g, "sizes", sizes, (int)n) : NULL));
    hn_node_set_int(s, "axis", axis);
    if (!input)
        hn_node_set_ints(s, "split", sizes, n);
    for (guint i = 0; i < n; i++)
        hn_node_add_out(s, hn_graph_new_value(g, x->name));
    hn_rw_done(r, s);
    return s;
}

static gboolean merge_columns(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0);
    HnGraph *g = n->graph;
    Products p = { .n = 0 };
    int64_t sizes[MOST];
    const int rank = hn_rw_rank(r, x);
    if (x == NULL || x->users->len < FEWEST || hn_rw_const(r, x) != NULL || rank < 2)
        return FALSE;
    if (own_matrix(n) == NULL || !products_of(r, n, &p) || hn_rw_opset(g) < 2)
        return FALSE;
    if (!hn_rw_go(r, n))
        return FALSE;
    for (guint i = 0; i < p.n; i++)
        sizes[i] = p.w[i]->dims[1];
    HnNode *before = hn_shapes_first(g, p.node, p.n);
    HnValue *w = hn_rw_weight(r, g, hn_node_in(n, 1)->name, beside(r, p.w, p.n, 2));
    HnValue *y = hn_rw_out(r, hn_rw_add(r, before, "MatMul", HN_INS(x, w)), hn_node_out(n, 0)->name);
    if (p.last[0] != p.node[0]) {
        HnValue *b = hn_rw_weight(r, g, "bias", beside(r, p.bias, p.n, 1));
        y = hn_rw_out(r, hn_rw_add(r, before, "Add", HN_INS(y, b)), y->name);
    }
    HnNode *s = add_split(r, before, y, rank - 1, sizes, p.n);
    for (guint i = 0; i < p.n; i++)
        hn_rw_replace(r, hn_node_out(p.last[i], 0), hn_node_out(s, (int)i));
    return TRUE;
}

/* --- one matrix --------------------------------------------------------------------------------------------------- */

static gboolean merge_rows(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0), *w = NULL;
    const int rank = hn_rw_rank(r, x);
    const guint parts = n->out->len;
    int axis;
    g_autofree int64_t *sizes = parts > 1 ? hn_shapes_parts(r, n, &axis) : NULL;
    g_autofree HnNode **products = g_new0(HnNode *, parts + 1u);
    if (sizes == NULL || rank < 2 || axis == rank - 1)
        return FALSE;
    for (guint i = 0; i < parts; i++) {
        HnValue *part = hn_node_out(n, (int)i);
        products[i] = hn_rw_reader(part, &hn_op_matmul);
        if (products[i] == NULL || hn_node_in(products[i], 0) != part || (i > 0 && hn_node_in(products[i], 1) != w))
            return FALSE;
        w = hn_node_in(products[i], 1);
    }
    if (hn_rw_rank(r, w) != 2 || hn_rw_const(r, w) == NULL || !hn_rw_go(r, n))
        return FALSE;
    HnValue *y = hn_rw_out(r, hn_rw_add(r, n, "MatMul", HN_INS(x, w)), hn_node_out(products[0], 0)->name);
    HnNode *s = add_split(r, n, y, axis, sizes, parts);
    for (guint i = 0; i < parts; i++)
        hn_rw_replace(r, hn_node_out(products[i], 0), hn_node_out(s, (int)i));
    return TRUE;
}

static gboolean merge_products(HnRewrite *r, HnNode *n)
{
    if (n->op == &hn_op_split)
        return merge_rows(r, n);
    return n->op == &hn_op_matmul && hn_value_is_read(hn_node_out(n, 0)) && merge_columns(r, n);
}

const HnPass hn_pass_merge_products = {
    .name = "merge-products",
    .summary = "one MatMul and a Split instead of three of one value, or of one for each part by the same matrix",
    .level = 2,
    .node = merge_products,
};
