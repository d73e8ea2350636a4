/*
 * Gemm reads its matrices transposed where it is told to: a Transpose in front of it goes, and MatMul of two matrices
 * with one in front becomes a Gemm. (A transposed constant is folded instead.)
 */
#include "op/gemm.h"
#include "op/transpose.h"
#include "pass/rewrite.h"

/* The Transpose of a matrix behind input i, or NULL. */
static HnNode *transpose_of(const HnRewrite *r, const HnNode *n, int i)
{
    HnNode *t = hn_rw_maker(hn_node_in(n, i), &hn_op_transpose);
    const HnTranspose *p = t != NULL ? t->params : NULL;
    if (t == NULL || hn_rw_rank(r, hn_node_in(t, 0)) != 2 || hn_rw_known(r, hn_node_out(t, 0)) != NULL)
        return NULL;
    if (p->perm != NULL && (p->n != 2 || p->perm[0] != 1))
        return NULL;
    return t;
}

static gboolean fuse_transpose_into_gemm(HnRewrite *r, HnNode *n)
{
    static const char *const names[] = { "transA", "transB" };
    const gboolean gemm = n->op == &hn_op_gemm;
    if (!gemm && n->op != &hn_op_matmul)
        return FALSE;
    HnNode *t[2] = { transpose_of(r, n, 0), transpose_of(r, n, 1) };
    if (t[0] == NULL && t[1] == NULL)
        return FALSE;
    if (!gemm && (hn_rw_rank(r, hn_node_in(n, 0)) != 2 || hn_rw_rank(r, hn_node_in(n, 1)) != 2))
        return FALSE; /* a stack of products, or one with a vector */
    if (!gemm && (!hn_rw_can(n->graph, &hn_op_gemm, 11) || !hn_dtype_in(hn_rw_dtype(r, hn_node_in(n, 0)), HN_T_FLOATS)))
        return hn_rw_miss(r, n, "Gemm without a summand needs opset 11 and floats");
    for (int i = 0; i < 2; i++)
        if (t[i] != NULL && !hn_rw_single(hn_node_out(t[i], 0)) && hn_node_in(n, 0) != hn_node_in(n, 1) && !gemm)
            return hn_rw_miss(r, n, "'%s' is used by others too", hn_node_out(t[i], 0)->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *to = gemm ? n : hn_rw_add(r, n, "Gemm", HN_INS(hn_node_in(n, 0), hn_node_in(n, 1)));
    const HnGemmParams *p = n->params;
    const gboolean was[2] = { gemm && p->trans_a, gemm && p->trans_b };
    for (int i = 0; i < 2; i++) {
        if (t[i] == NULL)
            continue;
        hn_rw_set_in(r, to, i, hn_node_in(t[i], 0));
        if (was[i])
            hn_node_remove_attr(to, names[i]);
        else
            hn_node_set_int(to, names[i], 1);
    }
    return gemm ? hn_rw_done(r, n) : hn_rw_take(r, to, n);
}

const HnPass hn_pass_fuse_transpose_into_gemm = {
    .name = "fuse-transpose-into-gemm",
    .summary = "Transpose of a matrix into the Gemm or MatMul behind it",
    .level = 1,
    .node = fuse_transpose_into_gemm,
};
