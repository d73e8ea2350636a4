/*
 * Reshape that makes rows of all but the last axis, MatMul or Gemm by a constant matrix, and Reshape back: MatMul does
 * without. The bias of a Gemm becomes an Add.
 */
#include "op/gemm.h"
#include "pass/lib/carry.h"
#include "pass/shapes.h"
#include "pass/lib/weights.h"

typedef struct {
    HnNode *product;   /* MatMul or Gemm */
    const HnTensor *w; /* its matrix */
    HnValue *x;        /* in front of the first Reshape */
    HnValue *bias;     /* NULL: none */
    gboolean turned;   /* the matrix */
} Rows;

/* The sizes of y are those of x, but for the last one, which is n. */
static gboolean has_rows_of(const HnRewrite *r, const HnValue *y, const HnValue *x, int64_t n)
{
    int rank = hn_rw_rank(r, x);
    if (rank < 2 || hn_rw_rank(r, y) != rank || !hn_dim_is(hn_rw_dim(r, y, -1), n))
        return FALSE;
    for (int a = 0; a < rank - 1; a++)
        if (!hn_rw_same_dim(r, x, a, y, a))
            return FALSE;
    return TRUE;
}

static const char *read_product(const HnRewrite *r, Rows *s)
{
    const HnNode *n = s->product;
    s->w = hn_rw_known(r, hn_node_in(n, 1));
    if (s->w == NULL || s->w->ndim != 2)
        return "the second matrix is not constant";
    if (n->op != &hn_op_gemm)
        return NULL;
    const HnGemmParams *p = n->params;
    const HnTensor *c = hn_rw_known(r, hn_node_in(n, 2));
    s->turned = p->trans_b;
    s->bias = hn_node_in(n, 2);
    if (p->trans_a || p->alpha != 1 || p->exact || (s->bias != NULL && p->beta != 1))
        return "the product has factors, or reads rows as columns";
    if (s->bias != NULL && (c == NULL || c->ndim > 2 || (c->ndim == 2 && c->dims[0] != 1)))
        return "the bias is not a constant row";
    if (s->turned && !hn_weights_own(r, hn_node_in(n, 1)))
        return "the matrix would have to be turned, and others use it too";
    return NULL;
}

static gboolean merge_reshapes_into_matmul(HnRewrite *r, HnNode *n)
{
    Rows s = { 0 };
    if (n->op != &hn_op_reshape)
        return FALSE;
    HnValue *y = hn_node_in(n, 0);
    s.product = hn_rw_maker(y, &hn_op_matmul);
    s.product = s.product != NULL ? s.product : hn_rw_maker(y, &hn_op_gemm);
    HnValue *rows = s.product != NULL ? hn_node_in(s.product, 0) : NULL;
    HnNode *first = rows != NULL ? rows->producer : NULL;
    if (first == NULL || first->graph != n->graph || !hn_shapes_is_view(first))
        return FALSE;
    s.x = hn_node_in(first, 0);
    const char *obstacle = read_product(r, &s);
    if (obstacle != NULL)
        return hn_rw_miss(r, n, "%s", obstacle);
    if (!hn_rw_single(y))
        return hn_rw_miss(r, n, "'%s' is used by others too", y->name);
    const int64_t k = s.w->dims[s.turned ? 1 : 0], out = s.w->dims[s.turned ? 0 : 1];
    if (hn_rw_rank(r, rows) != 2 || !hn_dim_is(hn_rw_dim(r, s.x, -1), k) ||
        !has_rows_of(r, hn_node_out(n, 0), s.x, out))
        return hn_rw_miss(r, n, "what comes out does not have the rows of what goes in");
    if (!hn_rw_go(r, n))
        return FALSE;
    HnValue *w = hn_node_in(s.product, 1);
    if (s.turned) {
        const HnOrder turn = { 2, { 1, 0 } };
        w = hn_rw_weight(r, n->graph, w->name, hn_carry_constant(r, hn_rw_const(r, hn_node_in(s.product, 1)), &turn));
    }
    HnNode *product = hn_rw_add(r, n, "MatMul", HN_INS(s.x, w));
    if (s.bias == NULL)
        return hn_rw_take(r, product, n);
    return hn_rw_take(r, hn_rw_add(r, n, "Add", HN_INS(hn_rw_out(r, product, y->name), s.bias)), n);
}

const HnPass hn_pass_merge_reshapes_into_matmul = {
    .name = "merge-reshapes-into-matmul",
    .summary = "no Reshape to rows before MatMul or Gemm and back behind it",
    .level = 1,
    .node = merge_reshapes_into_matmul,
};
