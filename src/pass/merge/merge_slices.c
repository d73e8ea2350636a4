/*
 * Slice behind Slice: one Slice, along all their axes, constant bounds of one axis put together. Several Slices behind
 * one take their parts from where that one does.
 */
#include "op/slice.h"
#include "pass/shapes.h"

#define TO_END INT32_MAX /* a bound from here on means the end of the axis */

/* Bounds b of what bounds a leave of an axis of d elements: into a, at i. */
static gboolean put_together(HnDim d, HnBounds *a, int i, const HnBounds *b, int k)
{
    int64_t *s = &a->start[i], *e = &a->end[i], *t = &a->step[i], from = b->start[k];
    if (d.known) {
        const int64_t between = hn_slice_axis(d.n, s, *e, *t), n = hn_slice_axis(between, &from, b->end[k], b->step[k]);
        if (n <= 1) {
            *s = n == 1 ? *s + from * *t : 0;
            *e = *s + n;
            *t = 1;
            return TRUE;
        }
        *s += from * *t;
        *t *= b->step[k]; /* less than d: two elements are that far apart */
        *e = *s + *t * n;
        if (*e < 0)
            *e = -INT64_MAX;
        return TRUE;
    }
    if (*t != 1 || b->step[k] != 1 || MIN(*s, from) < 0 || MAX(*s, from) >= TO_END)
        return FALSE;
    if (b->end[k] < TO_END) {
        if (*e >= TO_END)
            *e = b->end[k] < 0 ? b->end[k] : *s + b->end[k];
        else if (*e >= 0 && b->end[k] >= 0)
            *e = MIN(*e, *s + b->end[k]);
        else
            return FALSE;
    }
    *s += from;
    return TRUE;
}

/* Nobody but Slices of the same graph reads v: each can take its part from where v takes it, and v is not needed. */
static gboolean is_sliced_only(const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        if (u->op != &hn_op_slice || u->graph != v->graph || hn_node_in(u, 0) != v)
            return FALSE;
    }
    return !v->is_output;
}

static gboolean merge_slices(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_slice)
        return FALSE;
    HnValue *between = hn_node_in(n, 0);
    HnNode *first = hn_rw_maker(between, &hn_op_slice);
    HnBounds a, b;
    if (first == NULL)
        return FALSE;
    if (!is_sliced_only(between))
        return hn_rw_miss(r, n, "'%s' is used by others too", between->name);
    if (!hn_shapes_bounds(r, first, &a) || !hn_shapes_bounds(r, n, &b))
        return hn_rw_miss(r, n, "the bounds are not constant");
    HnValue *x = hn_node_in(first, 0);
    for (int k = 0; k < b.n; k++) {
        int i = 0;
        while (i < a.n && a.axis[i] != b.axis[k])
            i++;
        if (i == a.n) {
            if (a.n == HN_MAX_RANK)
                return FALSE;
            a.axis[i] = b.axis[k];
            a.start[i] = b.start[k];
            a.end[i] = b.end[k];
            a.step[i] = b.step[k];
            a.n++;
        } else if (!put_together(hn_rw_dim(r, x, b.axis[k]), &a, i, &b, k)) {
            return hn_rw_miss(r, n, "both cut axis %d, of which the size is not known", b.axis[k]);
        }
    }
    if (!hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, hn_shapes_slice(r, n, x, &a), n);
}

const HnPass hn_pass_merge_slices = {
    .name = "merge-slices",
    .summary = "one Slice instead of two",
    .level = 1,
    .node = merge_slices,
};
