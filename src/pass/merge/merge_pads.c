/*
 * Pad behind Pad with the same constant: one Pad by the sum.
 */
#include "op/pad.h"
#include "pass/shapes.h"

/* Amounts and value of a constant Pad of all axes. */
static gboolean amounts(const HnRewrite *r, const HnNode *n, int rank, int64_t *pads, double *value)
{
    const HnPad *p = n->params;
    int count = (int)p->n;
    *value = (double)p->value;
    if (p->mode != HN_PAD_CONSTANT || rank < 0 || 2 * rank > HN_MAX_RANK)
        return FALSE;
    if (p->inputs) {
        *value = 0;
        if (hn_node_in(n, 3) != NULL || !hn_rw_ints(r, hn_node_in(n, 1), pads, HN_MAX_RANK, &count) ||
            (hn_node_in(n, 2) != NULL && !hn_rw_number(r, hn_node_in(n, 2), value)))
            return FALSE;
    }
    if (count != 2 * rank)
        return FALSE;
    for (int i = 0; i < count; i++) {
        pads[i] = p->inputs ? pads[i] : p->pads[i];
        if (pads[i] < 0 || pads[i] > INT32_MAX)
            return FALSE; /* cutting is not taken back */
    }
    return TRUE;
}

static gboolean merge_pads(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_pad)
        return FALSE;
    HnValue *between = hn_node_in(n, 0);
    HnNode *first = hn_rw_maker(between, &hn_op_pad);
    const int rank = hn_rw_rank(r, between);
    int64_t a[HN_MAX_RANK], b[HN_MAX_RANK];
    double v, w;
    if (first == NULL)
        return FALSE;
    if (!amounts(r, first, rank, a, &v) || !amounts(r, n, rank, b, &w))
        return hn_rw_miss(r, n, "the amounts are not constant, or no constant is added");
    if (!(v == w))
        return hn_rw_miss(r, n, "different constants are added");
    if (!hn_rw_single(between))
        return hn_rw_miss(r, n, "'%s' is used by others too", between->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    for (int i = 0; i < 2 * rank; i++)
        b[i] += a[i];
    hn_rw_set_in(r, n, 0, hn_node_in(first, 0));
    if (((const HnPad *)n->params)->inputs)
        hn_rw_set_in(r, n, 1, hn_rw_weight_ints(r, n->graph, "pads", b, 2 * rank));
    else
        hn_node_set_ints(n, "pads", b, 2 * rank);
    return hn_rw_done(r, n);
}

const HnPass hn_pass_merge_pads = {
    .name = "merge-pads",
    .summary = "one Pad instead of two",
    .level = 1,
    .node = merge_pads,
};
