/*
 * A chain of Reshape, Flatten, Squeeze and Unsqueeze is one of them, or nothing at all. What is between may have other
 * users: they keep it.
 */
#include <string.h>

#include "pass/shapes.h"

/* Axes of the first value in the order of the last one's; -1: an axis of one element that came. */
typedef struct {
    int rank, axis[HN_MAX_RANK]; /* of the last value */
    int n_gone, gone[HN_MAX_RANK];
} Track;

/* Squeeze's axes where none are given: those of one element. */
static gboolean axes_of_one(const HnRewrite *r, const HnValue *x, int *axes, int *n)
{
    int64_t dims[HN_MAX_RANK];
    *n = 0;
    if (!hn_rw_fixed(r, x, dims))
        return FALSE;
    for (int a = 0; a < hn_rw_rank(r, x); a++)
        if (dims[a] == 1)
            axes[(*n)++] = a;
    return TRUE;
}

static gboolean follow(const HnRewrite *r, const HnNode *n, Track *t)
{
    int axes[HN_MAX_RANK], count, at = 0, next = 0;
    Track to = { .n_gone = t->n_gone };
    memcpy(to.gone, t->gone, sizeof to.gone);
    if (n->op == &hn_op_squeeze) {
        if (!hn_shapes_axes(r, n, t->rank, axes, &count) &&
            (hn_node_in(n, 1) != NULL || hn_node_attr(n, "axes") != NULL ||
             !axes_of_one(r, hn_node_in(n, 0), axes, &count)))
            return FALSE;
        for (int a = 0; a < t->rank; a++) {
            if (at < count && axes[at] == a) {
                at++;
                if (t->axis[a] >= 0)
                    to.gone[to.n_gone++] = t->axis[a];
            } else {
                to.axis[to.rank++] = t->axis[a];
            }
        }
    } else {
        to.rank = hn_rw_rank(r, hn_node_out(n, 0));
        if (n->op != &hn_op_unsqueeze || !hn_shapes_axes(r, n, to.rank, axes, &count) || to.rank != t->rank + count)
            return FALSE;
        for (int a = 0; a < to.rank; a++) {
            const gboolean came = at < count && axes[at] == a;
            at += came;
            to.axis[a] = came ? -1 : t->axis[next++];
        }
    }
    *t = to;
    return TRUE;
}

/* Squeeze and Unsqueeze by their axes: the shape need not be known. */
static gboolean merge_axes(HnRewrite *r, HnNode *n, HnNode *first)
{
    HnValue *x = hn_node_in(first, 0);
    Track t = { .rank = hn_rw_rank(r, x) };
    int came[HN_MAX_RANK], n_came = 0;
    if (t.rank < 0 || t.rank > HN_MAX_RANK)
        return FALSE;
    for (int a = 0; a < t.rank; a++)
        t.axis[a] = a;
    if (!follow(r, first, &t) || !follow(r, n, &t))
        return FALSE;
    for (int a = 0; a < t.rank; a++)
        if (t.axis[a] < 0)
            came[n_came++] = a;
    if (n_came > 0 && t.n_gone > 0)
        return FALSE;
    if (n_came == 0 && t.n_gone == 0)
        return hn_rw_bypass(r, n, hn_node_out(n, 0), x);
    if (!hn_rw_go(r, n))
        return FALSE;
    for (int i = 1; i < t.n_gone; i++) /* some runtimes rely on the order in old opsets */
        for (int k = i; k > 0 && t.gone[k - 1] > t.gone[k]; k--) {
            const int swap = t.gone[k];
            t.gone[k] = t.gone[k - 1];
            t.gone[k - 1] = swap;
        }
    HnNode *one = n_came > 0 ? hn_shapes_squeeze(r, n, "Unsqueeze", x, came, n_came)
                             : hn_shapes_squeeze(r, n, "Squeeze", x, t.gone, t.n_gone);
    return hn_rw_take(r, one, n);
}

/* A Reshape to a constant list needs to know of its input only what the list copies. */
static gboolean merge_list(HnRewrite *r, HnNode *n, HnValue *x)
{
    const HnAttr *zero = hn_node_attr(n, "allowzero");
    int64_t list[HN_MAX_RANK];
    int count;
    gboolean changed = FALSE;
    if (n->op != &hn_op_reshape || (zero != NULL && zero->i != 0) ||
        !hn_rw_ints(r, hn_node_in(n, 1), list, HN_MAX_RANK, &count))
        return FALSE;
    for (int i = 0; i < count; i++) {
        const HnDim d = hn_rw_dim(r, hn_node_in(n, 0), i);
        if (list[i] != 0 || (i < hn_rw_rank(r, x) && hn_dim_equal(d, hn_rw_dim(r, x, i))))
            continue;
        if (!d.known || d.n <= 0)
            return FALSE;
        list[i] = d.n;
        changed = TRUE;
    }
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, x);
    if (changed)
        hn_rw_set_in(r, n, 1, hn_rw_weight_ints(r, n->graph, "shape", list, count));
    return hn_rw_done(r, n);
}

static gboolean merge_views(HnRewrite *r, HnNode *n)
{
    HnValue *y = hn_node_out(n, 0), *between = hn_node_in(n, 0);
    HnNode *first = between != NULL ? between->producer : NULL;
    if (!hn_shapes_is_view(n) || !hn_shapes_is_view(first) || first->graph != n->graph || !hn_value_is_read(y) ||
        hn_rw_opset(n->graph) < 5)
        return FALSE;
    HnValue *x = hn_node_in(first, 0);
    const HnType *t = hn_rw_type(r, y);
    int64_t list[HN_MAX_RANK];
    if (hn_rw_same_shape(r, x, y))
        return hn_rw_bypass(r, n, y, x);
    if (merge_axes(r, n, first) || merge_list(r, n, x))
        return TRUE;
    if (t == NULL || !hn_shapes_constant(r, x, t->rank, t->dims, list))
        return hn_rw_miss(r, n, "the shape of '%s' is no constant list", y->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, hn_shapes_reshape(r, n, x, list, t->rank), n);
}

const HnPass hn_pass_merge_views = {
    .name = "merge-views",
    .summary = "one Reshape, Squeeze or Unsqueeze instead of several",
    .level = 1,
    .node = merge_views,
};
