/*
 * Concat for the sum of values that were each padded with zeros to the places of the others: what the gradients of a
 * value that was cut into slices add up to.
 */
#include <stdlib.h>

#include "lower/lower.h"
#include "op/pad.h"
#include "pass/pattern.h"

/* x, along an axis from `at` on, within zeros. */
typedef struct {
    HnValue *x;
    int axis;
    int64_t at, n;
} Part;

/* v is such a part of a tensor of so many axes. */
static gboolean part_of(const HnRewrite *r, const HnGraph *g, const HnValue *v, int rank, Part *part)
{
    const HnNode *n = hn_pattern_maker(g, v, &hn_op_pad);
    int64_t pads[2 * HN_MAX_RANK], dims[HN_MAX_RANK];
    int count;
    double value = 0;
    if (n == NULL || ((const HnPad *)n->params)->mode != HN_PAD_CONSTANT || !((const HnPad *)n->params)->inputs ||
        hn_node_in(n, 3) != NULL)
        return FALSE;
    if (!hn_rw_ints(r, hn_node_in(n, 1), pads, 2 * HN_MAX_RANK, &count) || count != 2 * rank ||
        !hn_rw_fixed(r, hn_node_in(n, 0), dims))
        return FALSE;
    if (hn_node_in(n, 2) != NULL && (!hn_rw_number(r, hn_node_in(n, 2), &value) || value != 0))
        return FALSE;
    *part = (Part){ .x = hn_node_in(n, 0), .axis = -1 };
    for (int a = 0; a < rank; a++) {
        if (pads[a] == 0 && pads[rank + a] == 0)
            continue;
        if (part->axis >= 0 || pads[a] < 0 || pads[rank + a] < 0)
            return FALSE;
        part->axis = a;
        part->at = pads[a];
        part->n = dims[a];
    }
    return part->axis >= 0;
}

static int by_place(gconstpointer a, gconstpointer b)
{
    const Part *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* All along one axis, each behind the one before, from its start to its end. */
static gboolean are_whole(const Part *part, int n, int64_t all)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        if (part[i].axis != part[0].axis || part[i].at != at)
            return FALSE;
        at += part[i].n;
    }
    return at == all;
}

static gboolean sum_of_parts(HnRewrite *r, HnNode *n)
{
    int64_t dims[HN_MAX_RANK];
    const int many = (int)n->in->len;
    if ((n->op != &hn_op_sum && n->op != &hn_op_add) || many < 2 || !hn_rw_fixed(r, hn_node_out(n, 0), dims))
        return FALSE;
    g_autofree Part *part = g_new(Part, (gsize)many);
    g_autofree HnValue **x = g_new(HnValue *, (gsize)many);
    for (int i = 0; i < many; i++)
        if (!part_of(r, n->graph, hn_node_in(n, i), hn_rw_rank(r, hn_node_out(n, 0)), &part[i]))
            return FALSE;
    qsort(part, (gsize)many, sizeof *part, by_place);
    if (!are_whole(part, many, dims[part[0].axis]))
        return hn_rw_miss(r, n, "the parts do not lie one behind the other");
    if (!hn_rw_go(r, n))
        return FALSE;
    for (int i = 0; i < many; i++)
        x[i] = part[i].x;
    HnNode *joined = hn_rw_add(r, n, "Concat", x, many);
    hn_node_set_int(joined, "axis", part[0].axis);
    return hn_rw_take(r, joined, n);
}

const HnPass hn_pass_sum_of_parts = {
    .name = "sum-of-parts",
    .summary = "Concat instead of a sum of parts that are padded with zeros",
    .level = 2,
    .node = sum_of_parts,
};
