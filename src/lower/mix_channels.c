/*
 * Few channels of plain images are mixed where they are: exporters bring them last for a product with a small matrix
 * (heads of an attention among each other), and back. That is a convolution of one tap, whose rows are whole planes;
 * the product's rows are a few numbers.
 */
#include "lower/lower.h"
#include "op/move.h"
#include "op/transpose.h"
#include "pass/pattern.h"

#define FEW 16 /* channels that do not fill a vector */

/* n brings axis 1 to the end, or, `back`, the last one to axis 1; the others stay in order. */
static gboolean turns(const HnNode *n, int rank, gboolean back)
{
    const HnTranspose *p = n->params;
    if (n->op != &hn_op_transpose || p->perm == NULL || p->n != rank)
        return FALSE;
    for (int i = 0; i < rank; i++) {
        const int64_t from = i == 0 ? 0 : back ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
        if (p->perm[i] != from)
            return FALSE;
    }
    return TRUE;
}

/* w [K,N] as a convolution has it, [N,K,1,...]. */
static HnValue *turned(HnRewrite *r, HnNode *n, const HnTensor *w, int rank)
{
    int64_t dims[HN_MAX_RANK] = { w->dims[1], w->dims[0] };
    for (int i = 2; i < rank; i++)
        dims[i] = 1;
    HnTensor *t = hn_tensor_new(HN_F32, rank, dims, hn_rw_budget(r), NULL);
    if (t == NULL)
        return NULL;
    hn_move_strided(t->data, w->data, sizeof(float), 2, dims, (const int64_t[]){ 1, w->dims[1] });
    return hn_rw_weight(r, n->graph, "w", t);
}

/* The product before n, a Transpose, and what is added to its rows: NULL, or a vector. */
static HnNode *product(const HnRewrite *r, const HnNode *n, HnValue **bias)
{
    HnNode *add = hn_pattern_maker(n->graph, hn_node_in(n, 0), &hn_op_add);
    *bias = NULL;
    if (add == NULL)
        return hn_pattern_maker(n->graph, hn_node_in(n, 0), &hn_op_matmul);
    for (int k = 0; k < 2; k++)
        if (hn_rw_rank(r, hn_node_in(add, k)) == 1) {
            *bias = hn_node_in(add, k);
            return hn_pattern_maker(n->graph, hn_node_in(add, 1 - k), &hn_op_matmul);
        }
    return NULL;
}

static gboolean mix_channels(HnRewrite *r, HnNode *n)
{
    const int rank = hn_rw_rank(r, hn_node_out(n, 0));
    HnValue *bias;
    int64_t size;
    if (rank < 3 || !turns(n, rank, TRUE) || hn_rw_dtype(r, hn_node_out(n, 0)) != HN_F32)
        return FALSE;
    const HnNode *matmul = product(r, n, &bias);
    const HnNode *turn = matmul != NULL ? hn_pattern_maker(n->graph, hn_node_in(matmul, 0), &hn_op_transpose) : NULL;
    if (turn == NULL || !turns(turn, rank, FALSE))
        return FALSE;
    const HnTensor *w = hn_rw_known(r, hn_node_in(matmul, 1));
    if (w == NULL || w->ndim != 2 || w->dims[0] < 1 || w->dims[0] >= FEW || w->dims[1] < 1 || w->dims[1] >= FEW)
        return hn_rw_miss(r, n, "not a known matrix of less than %d rows and columns", FEW);
    if (bias != NULL && (!hn_rw_fixed(r, bias, &size) || size != w->dims[1]))
        return hn_rw_miss(r, n, "one number is added to all channels");
    if (!hn_rw_go(r, n))
        return FALSE;
    HnValue *kernel = turned(r, n, w, rank);
    if (kernel == NULL)
        return FALSE;
    HnValue *const in[] = { hn_node_in(turn, 0), kernel, bias };
    return hn_rw_take(r, hn_rw_add(r, n, "Conv", in, bias != NULL ? 3 : 2), n);
}

const HnPass hn_pass_mix_channels = {
    .name = "mix-channels",
    .summary = "few channels are mixed by a convolution of one tap, not turned, multiplied and turned back",
    .level = 2,
    .node = mix_channels,
};
