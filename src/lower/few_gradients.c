/*
 * Gradients of convolutions are told that the gradient of the result is 0 nearly everywhere, as it is behind a maximum
 * over many elements: those that are not the largest have none.
 */
#include "lower/lower.h"
#include "op/conv.h"
#include "pass/pattern.h"

#define FEW 16   /* elements that share a gradient, at least */
#define CHAIN 12 /* nodes back to where it is spread */

static gboolean count_of(const HnRewrite *r, const HnValue *v, int64_t *n)
{
    int64_t dims[HN_MAX_RANK];
    return hn_rw_fixed(r, v, dims) && hn_dims_count(hn_rw_rank(r, v), dims, n);
}

/* a has many times as many elements as b. */
static gboolean many_times(const HnRewrite *r, const HnValue *a, const HnValue *b)
{
    int64_t n, m;
    return count_of(r, a, &n) && count_of(r, b, &m) && n / FEW >= m;
}

static gboolean is_view(const HnNode *n)
{
    return n->op != NULL && (n->op->flags & HN_OP_VIEW) != 0;
}

/* v is the largest, or the smallest, of x's elements along some axes. */
static gboolean is_pick_of(const HnValue *v, const HnValue *x)
{
    const HnNode *n = v->producer;
    for (int i = 0; i < CHAIN && n != NULL && is_view(n); i++)
        n = hn_node_in(n, 0)->producer;
    const gboolean picks =
        n != NULL && (n->op == &hn_op_globalmaxpool || n->op == &hn_op_reducemax || n->op == &hn_op_reducemin);
    return picks && hn_node_in(n, 0) == x;
}

/* n says, as numbers, where the largest of many elements are. */
static gboolean marks_picks(const HnRewrite *r, const HnNode *n)
{
    const HnNode *equal = n->op == &hn_op_cast ? hn_rw_maker(hn_node_in(n, 0), &hn_op_equal) : NULL;
    if (equal == NULL)
        return FALSE;
    const HnValue *x = hn_node_in(equal, 0), *y = hn_node_in(equal, 1);
    return is_pick_of(y, x) && many_times(r, x, y);
}

static gboolean is_few(const HnRewrite *r, const HnValue *v, int depth)
{
    const HnNode *n = v->producer;
    double x;
    if (n == NULL || n->op == NULL || v->producer_out != 0 || depth == CHAIN)
        return FALSE;
    if (marks_picks(r, n))
        return TRUE;
    if (n->op == &hn_op_maxpoolgrad)
        return many_times(r, v, hn_node_in(n, 0));
    if (n->op == &hn_op_mul)
        return is_few(r, hn_node_in(n, 0), depth + 1) || is_few(r, hn_node_in(n, 1), depth + 1);
    if (n->op == &hn_op_where)
        return hn_rw_uniform(r, hn_node_in(n, 2), &x) && x == 0 && is_few(r, hn_node_in(n, 1), depth + 1);
    if (n->op == &hn_op_div || n->op == &hn_op_neg || n->op == &hn_op_cast || n->op == &hn_op_transpose ||
        n->op == &hn_op_gelugrad || is_view(n))
        return is_few(r, hn_node_in(n, 0), depth + 1);
    return FALSE;
}

static gboolean few_gradients(HnRewrite *r, HnNode *n)
{
    const gboolean weights = n->op == &hn_op_convweightgrad;
    if (!weights && n->op != &hn_op_convtranspose)
        return FALSE;
    const gboolean told = weights ? ((const HnConv *)n->params)->few : ((const HnConvTranspose *)n->params)->few;
    if (told || !is_few(r, hn_node_in(n, weights ? 1 : 0), 0) || !hn_rw_go(r, n))
        return FALSE;
    hn_node_set_int(n, HN_CONV_FEW, 1);
    return hn_rw_done(r, n);
}

const HnPass hn_pass_few_gradients = {
    .name = "few-gradients",
    .summary = "gradients of convolutions from those few numbers that are not 0",
    .level = 2,
    .node = few_gradients,
};
