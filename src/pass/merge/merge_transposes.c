/*
 * Two Transposes are one, or none.
 */
#include "op/transpose.h"
#include "pass/rewrite.h"

/* Axis of the input that becomes axis a of the output. */
static int from_axis(const HnTranspose *p, int rank, int a)
{
    return p->perm != NULL ? (int)p->perm[a] : rank - 1 - a;
}

static gboolean merge_transposes(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_transpose)
        return FALSE;
    HnNode *first = hn_rw_maker(hn_node_in(n, 0), &hn_op_transpose);
    if (first == NULL)
        return FALSE;
    const HnTranspose *p = first->params, *q = n->params;
    HnValue *x = hn_node_in(first, 0), *y = hn_node_out(n, 0);
    const int rank = p->perm != NULL ? (int)p->n : q->perm != NULL ? (int)q->n : hn_rw_rank(r, x);
    int64_t perm[HN_MAX_RANK];
    gboolean moved = FALSE;
    if (rank < 0 || !hn_value_is_read(y))
        return FALSE;
    for (int a = 0; a < rank; a++) {
        perm[a] = from_axis(p, rank, from_axis(q, rank, a));
        moved = moved || perm[a] != a;
    }
    if (!moved)
        return hn_rw_bypass(r, n, y, x);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_node_set_ints(n, "perm", perm, rank);
    hn_rw_set_in(r, n, 0, x);
    return hn_rw_done(r, n);
}

const HnPass hn_pass_merge_transposes = {
    .name = "merge-transposes",
    .summary = "one Transpose instead of two, or none",
    .level = 1,
    .node = merge_transposes,
};
