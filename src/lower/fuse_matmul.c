/*
 * hone.FusedMatMul for a MatMul whose operands or result are transposed by nodes of their own, or to which a vector is
 * added that changes from run to run: kernels read either operand as it lies. Transposes go behind reshapes of the axes
 * in front of them and products with a single number, so that they meet the MatMul.
 */
#include "lower/lower.h"
#include "op/gemm.h"
#include "op/transpose.h"
#include "pass/pattern.h"

/* n exchanges the last two axes and no others. */
static gboolean turns(const HnRewrite *r, const HnNode *n)
{
    const HnTranspose *p = n->params;
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    if (rank < 2 || (p->perm == NULL && rank > 2))
        return FALSE;
    for (int i = 0; p->perm != NULL && i < rank; i++)
        if (p->perm[i] != (i < rank - 2 ? i : 2 * rank - 3 - i))
            return FALSE;
    return TRUE;
}

/* The Transpose that makes v, where it exchanges the last two axes; NULL: none, or v is known ahead. */
static HnNode *turned_by(const HnRewrite *r, const HnValue *v)
{
    HnNode *t = v != NULL ? hn_rw_maker(v, &hn_op_transpose) : NULL;
    return t != NULL && turns(r, t) && hn_rw_known(r, v) == NULL ? t : NULL;
}

static HnNode *turn(HnRewrite *r, HnNode *before, HnValue *v, int rank)
{
    int64_t perm[HN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    HnNode *t = hn_rw_add(r, before, "Transpose", HN_INS(v));
    hn_node_set_ints(t, "perm", perm, rank);
    return t;
}

static gboolean is_product(const HnNode *n)
{
    return n->op == &hn_op_matmul || n->op == &hn_op_fusedmatmul;
}

/* What a product, or a Gemm of plain factors without an addend, is. */
static gboolean form_of(const HnNode *n, HnFusedMatMul *f)
{
    *f = (HnFusedMatMul){ FALSE, FALSE };
    if (n->op == &hn_op_fusedmatmul)
        *f = *(const HnFusedMatMul *)n->params;
    if (n->op == &hn_op_gemm) {
        const HnGemmParams *p = n->params;
        *f = (HnFusedMatMul){ p->trans_a, p->trans_b };
        return p->alpha == 1 && hn_node_in(n, 2) == NULL;
    }
    return is_product(n);
}

static gboolean is_f32(const HnRewrite *r, const HnNode *n)
{
    return hn_rw_dtype(r, hn_node_in(n, 0)) == HN_F32 && hn_rw_dtype(r, hn_node_in(n, 1)) == HN_F32;
}

static HnNode *product(HnRewrite *r, HnNode *before, const HnFusedMatMul *f, HnValue *a, HnValue *b, HnValue *bias)
{
    HnNode *n = hn_rw_add_internal(r, before, &hn_op_fusedmatmul, (HnValue *[]){ a, b, bias }, bias != NULL ? 3 : 2);
    if (f->trans_a)
        hn_node_set_int(n, "transA", 1);
    if (f->trans_b)
        hn_node_set_int(n, "transB", 1);
    return n;
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

/* What v is made of by Transposes, one behind the other; *turned: their number is odd. */
static HnValue *before_turns(const HnRewrite *r, HnValue *v, gboolean *turned)
{
    *turned = FALSE;
    for (const HnNode *t; (t = turned_by(r, v)) != NULL; v = hn_node_in(t, 0))
        *turned = !*turned;
    return v;
}

static gboolean take_operands(HnRewrite *r, HnNode *n)
{
    HnFusedMatMul f;
    gboolean turned[2];
    HnValue *v[2];
    for (int i = 0; i < 2; i++)
        v[i] = before_turns(r, hn_node_in(n, i), &turned[i]);
    if ((v[0] == hn_node_in(n, 0) && v[1] == hn_node_in(n, 1)) || !form_of(n, &f) || !is_f32(r, n))
        return FALSE;
    if (hn_rw_known(r, hn_node_in(n, 1)) != NULL)
        return hn_rw_miss(r, n, "'%s' is constant", hn_node_in(n, 1)->name); /* and may be one that kernels choose by */
    if (!hn_rw_go(r, n))
        return FALSE;
    f.trans_a ^= turned[0];
    f.trans_b ^= turned[1];
    return hn_rw_take(r, product(r, n, &f, v[0], v[1], hn_node_in(n, 2)), n);
}

/* --- the result --------------------------------------------------------------------------------------------------- */

/* n's other operand, where it is one number that does not make the result larger; NULL: it is not. */
static HnValue *number_beside(const HnRewrite *r, const HnNode *n, const HnValue *v)
{
    int64_t dims[HN_MAX_RANK];
    HnValue *x = n->op == &hn_op_mul ? hn_rw_other(n, v) : NULL;
    const int rank = x != NULL ? hn_rw_rank(r, x) : -1;
    if (rank < 0 || rank > hn_rw_rank(r, v) || !hn_rw_fixed(r, x, dims))
        return NULL;
    for (int i = 0; i < rank; i++)
        if (dims[i] != 1)
            return NULL;
    return x;
}

/* n is a Reshape of other axes than the last two, which stay; dims: of the result. */
static gboolean keeps_matrices(const HnRewrite *r, const HnNode *n, int64_t *dims)
{
    int64_t from[HN_MAX_RANK];
    const int a = hn_rw_rank(r, hn_node_in(n, 0)), b = hn_rw_rank(r, hn_node_out(n, 0));
    if (n->op != &hn_op_reshape || a < 2 || b < 2)
        return FALSE;
    if (!hn_rw_fixed(r, hn_node_in(n, 0), from) || !hn_rw_fixed(r, hn_node_out(n, 0), dims))
        return FALSE;
    return from[a - 1] == dims[b - 1] && from[a - 2] == dims[b - 2];
}

static HnNode *reshaped(HnRewrite *r, HnNode *before, HnValue *v, int64_t *dims, int rank)
{
    const int64_t last = dims[rank - 1];
    dims[rank - 1] = dims[rank - 2];
    dims[rank - 2] = last;
    HnNode *n = hn_rw_add(r, before, "Reshape", HN_INS(v, hn_rw_weight_ints(r, before->graph, "shape", dims, rank)));
    hn_node_set_int(n, "allowzero", 1);
    return n;
}

#define CHAIN 4

/* (A B)' = B' A': a transposed result, also behind reshapes and numbers that nobody else reads. */
static gboolean take_result(HnRewrite *r, HnNode *n)
{
    HnNode *link[CHAIN];
    HnFusedMatMul f;
    int64_t dims[HN_MAX_RANK];
    int links = 0;
    HnNode *m = hn_node_in(n, 0)->producer;
    HnValue *v = hn_node_in(n, 0);
    for (; m != NULL && m->graph == n->graph && hn_rw_single(v) && !form_of(m, &f) && links < CHAIN; links++) {
        link[links] = m;
        if (m->op == &hn_op_mul)
            v = number_beside(r, m, hn_node_in(m, 0)) != NULL ? hn_node_in(m, 0) : hn_node_in(m, 1);
        else if (keeps_matrices(r, m, dims))
            v = hn_node_in(m, 0);
        else
            return FALSE;
        if (m->op == &hn_op_mul && number_beside(r, m, v) == NULL)
            return FALSE;
        m = v->producer;
    }
    if (m == NULL || m->graph != n->graph || !hn_rw_single(v) || !form_of(m, &f))
        return FALSE;
    if (hn_node_in(m, 2) != NULL || !is_f32(r, m)) /* a vector for each column would be one for each row */
        return FALSE;
    if (hn_rw_rank(r, hn_node_in(m, 0)) < 2 || hn_rw_rank(r, hn_node_in(m, 1)) < 2 || !hn_rw_go(r, n))
        return FALSE;
    const HnFusedMatMul back = { !f.trans_b, !f.trans_a };
    HnNode *y = product(r, n, &back, hn_node_in(m, 1), hn_node_in(m, 0), NULL);
    for (; links > 0; links--) {
        HnNode *l = link[links - 1];
        HnValue *x = hn_rw_out(r, y, "product");
        if (l->op == &hn_op_mul) {
            y = hn_rw_add(r, n, "Mul", HN_INS(x, number_beside(r, l, v)));
        } else {
            keeps_matrices(r, l, dims);
            y = reshaped(r, n, x, dims, hn_rw_rank(r, hn_node_out(l, 0)));
        }
        v = hn_node_out(l, 0);
    }
    return hn_rw_take(r, y, n);
}

/* --- on the way --------------------------------------------------------------------------------------------------- */

/* All who read v are products and what takes Transposes along. */
static gboolean leads_to_products(const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        if (!is_product(n) && n->op != &hn_op_gemm && n->op != &hn_op_reshape && n->op != &hn_op_mul &&
            n->op != &hn_op_transpose)
            return FALSE;
    }
    return v->users->len > 0 && !v->is_output;
}

static gboolean move_behind(HnRewrite *r, HnNode *n)
{
    int64_t dims[HN_MAX_RANK];
    int i = n->op == &hn_op_mul && turned_by(r, hn_node_in(n, 0)) == NULL ? 1 : 0;
    HnValue *v = hn_node_in(n, i), *out = hn_node_out(n, 0);
    const HnNode *t = turned_by(r, v);
    if (t == NULL || !hn_rw_single(v) || hn_rw_dtype(r, v) != HN_F32 || !leads_to_products(out))
        return FALSE;
    HnValue *number = number_beside(r, n, v), *x = hn_node_in(t, 0);
    const int rank = hn_rw_rank(r, out);
    if (number == NULL && !keeps_matrices(r, n, dims))
        return FALSE;
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *y = number != NULL ? hn_rw_add(r, n, "Mul", HN_INS(x, number)) : reshaped(r, n, x, dims, rank);
    return hn_rw_take(r, turn(r, n, hn_rw_out(r, y, "matrices"), rank), n);
}

/* --- a vector that is added ----------------------------------------------------------------------------------------
 */

static gboolean take_bias(HnRewrite *r, HnNode *n)
{
    HnFusedMatMul f;
    int64_t dims[HN_MAX_RANK], row[HN_MAX_RANK];
    const int i = hn_node_in(n, 0)->producer != NULL && is_product(hn_node_in(n, 0)->producer) ? 0 : 1;
    HnValue *v = hn_node_in(n, i), *bias = hn_node_in(n, 1 - i);
    const HnNode *m = v->producer;
    if (m == NULL || m->graph != n->graph || !is_product(m) || !form_of(m, &f) || hn_node_in(m, 2) != NULL)
        return FALSE;
    const int rank = hn_rw_rank(r, v);
    if (!hn_rw_single(v) || !is_f32(r, m) || hn_rw_dtype(r, bias) != HN_F32)
        return FALSE;
    if (hn_rw_rank(r, bias) != 1 || rank < 1 || !hn_rw_fixed(r, v, dims) || !hn_rw_fixed(r, bias, row))
        return FALSE;
    if (row[0] != dims[rank - 1] || hn_rw_known(r, bias) != NULL) /* constants are part of a kernel's epilogue */
        return FALSE;
    return hn_rw_go(r, n) && hn_rw_take(r, product(r, n, &f, hn_node_in(m, 0), hn_node_in(m, 1), bias), n);
}

static gboolean fuse_matmul(HnRewrite *r, HnNode *n)
{
    if (is_product(n) || n->op == &hn_op_gemm)
        return take_operands(r, n);
    if (n->op == &hn_op_transpose)
        return turns(r, n) && take_result(r, n);
    if (n->op == &hn_op_mul || n->op == &hn_op_reshape)
        return move_behind(r, n);
    return n->op == &hn_op_add && take_bias(r, n);
}

const HnPass hn_pass_fuse_matmul = {
    .name = "fuse-matmul",
    .summary = "products that transpose their operands and add a vector on the way",
    .level = 2,
    .node = fuse_matmul,
};
