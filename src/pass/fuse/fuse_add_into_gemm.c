/*
 * MatMul of two matrices and the Add behind it, and Gemm without C and an Add: one Gemm. What is added has to fit the
 * product as C does: at most two dimensions, each 1 or that of the product.
 */
#include "op/gemm.h"
#include "pass/rewrite.h"

/* The MatMul or Gemm behind input i of the Add n that could take up the other input. */
static HnNode *product_of(const HnRewrite *r, const HnNode *n, int i)
{
    HnValue *v = hn_node_in(n, i);
    HnNode *p = hn_rw_maker(v, &hn_op_matmul);
    if (p == NULL)
        p = hn_rw_maker(v, &hn_op_gemm);
    if (p == NULL || (p->op == &hn_op_gemm && hn_node_in(p, 2) != NULL) || hn_rw_rank(r, hn_node_in(p, 0)) != 2 ||
        hn_rw_rank(r, hn_node_in(p, 1)) != 2)
        return NULL;
    return p;
}

/* Sizes of c, laid against those of y from the back, are 1 or the same. */
static gboolean fits(const HnRewrite *r, const HnValue *c, const HnValue *y)
{
    int rank = hn_rw_rank(r, c);
    for (int a = 1; a <= rank && rank <= 2; a++) {
        HnDim d = hn_rw_dim(r, c, -a);
        if (!hn_dim_is(d, 1) && !hn_dim_equal(d, hn_rw_dim(r, y, -a)))
            return FALSE;
    }
    return rank >= 0 && rank <= 2;
}

static gboolean fuse_add_into_gemm(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_add || n->version < 7 || !hn_dtype_in(hn_rw_dtype(r, hn_node_out(n, 0)), HN_T_FLOATS))
        return FALSE;
    HnNode *p = product_of(r, n, 0);
    int k = p != NULL ? 0 : 1;
    p = p != NULL ? p : product_of(r, n, 1);
    if (p == NULL)
        return FALSE;
    HnValue *y = hn_node_in(n, k), *c = hn_node_in(n, 1 - k);
    if (!hn_rw_single(y))
        return hn_rw_miss(r, n, "'%s' is used by others too", y->name);
    if (hn_op_is_unpacked(hn_node_in(p, 0)) || hn_op_is_unpacked(hn_node_in(p, 1)))
        return hn_rw_miss(r, n, "'%s' multiplies what is stored quantized", hn_node_label(p));
    if (!fits(r, c, y))
        return hn_rw_miss(r, n, "'%s' is not known to fit the product", c->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    /* in the place of the Add: what it adds may be made behind the product */
    HnNode *gemm = hn_rw_add(r, n, "Gemm", HN_INS(hn_node_in(p, 0), hn_node_in(p, 1), c));
    const HnGemmParams *old = p->op == &hn_op_gemm ? p->params : NULL;
    if (old != NULL && old->alpha != 1)
        hn_node_set_float(gemm, "alpha", old->alpha);
    if (old != NULL && old->trans_a)
        hn_node_set_int(gemm, "transA", 1);
    if (old != NULL && old->trans_b)
        hn_node_set_int(gemm, "transB", 1);
    return hn_rw_take(r, gemm, n);
}

const HnPass hn_pass_fuse_add_into_gemm = {
    .name = "fuse-add-into-gemm",
    .summary = "MatMul of matrices, or Gemm, and the Add behind it into one Gemm",
    .level = 1,
    .node = fuse_add_into_gemm,
};
