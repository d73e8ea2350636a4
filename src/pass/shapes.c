#include "pass/shapes.h"

#include <string.h>

#include "base/checked.h"
#include "op/concat.h"
#include "op/reduce.h"
#include "op/slice.h"

gboolean hn_shapes_is_view(const HnNode *n)
{
    return n != NULL &&
           (n->op == &hn_op_reshape || n->op == &hn_op_flatten || n->op == &hn_op_squeeze || n->op == &hn_op_unsqueeze);
}

/* --- axes --------------------------------------------------------------------------------------------------------- */

/* Input 1 or attribute `axes`; *n = 0 where neither is there. */
static gboolean given_axes(const HnRewrite *r, const HnNode *n, int64_t *axes, int *n_axes)
{
    const HnAttr *a = hn_node_attr(n, "axes");
    *n_axes = 0;
    if (hn_node_in(n, 1) != NULL)
        return hn_rw_ints(r, hn_node_in(n, 1), axes, HN_MAX_RANK, n_axes);
    if (a == NULL)
        return TRUE;
    if (a->kind != HN_ATTR_INTS || a->ref_attr != NULL || a->n > HN_MAX_RANK)
        return FALSE;
    for (int64_t i = 0; i < a->n; i++)
        axes[i] = a->ints[i];
    *n_axes = (int)a->n;
    return TRUE;
}

static gboolean marked(const int64_t *axes, int n, int rank, gboolean *mark)
{
    for (int i = 0; i < rank; i++)
        mark[i] = FALSE;
    for (int i = 0; i < n; i++) {
        const int64_t a = axes[i] + (axes[i] < 0 ? rank : 0);
        if (a < 0 || a >= rank || mark[a])
            return FALSE;
        mark[a] = TRUE;
    }
    return TRUE;
}

gboolean hn_shapes_axes(const HnRewrite *r, const HnNode *n, int rank, int *axes, int *n_axes)
{
    int64_t list[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    int count;
    if (rank < 0 || rank > HN_MAX_RANK || !given_axes(r, n, list, &count) || count == 0 ||
        !marked(list, count, rank, mark))
        return FALSE;
    *n_axes = 0;
    for (int a = 0; a < rank; a++)
        if (mark[a])
            axes[(*n_axes)++] = a;
    return TRUE;
}

gboolean hn_shapes_reduced(const HnRewrite *r, const HnNode *n, gboolean *mark)
{
    const HnReduce *p = n->params;
    const int rank = hn_rw_rank(r, hn_node_in(n, 0));
    int64_t list[HN_MAX_RANK];
    int count;
    if (rank < 0 || rank > HN_MAX_RANK || !given_axes(r, n, list, &count) || !marked(list, count, rank, mark))
        return FALSE;
    for (int a = 0; a < rank && count == 0; a++)
        mark[a] = !p->noop;
    return TRUE;
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* A size of what may have no elements: not one that a file names, nor a multiple of such. */
static gboolean may_vanish(HnDim d)
{
    return d.known ? d.n == 0 : d.sym == NULL || strpbrk(d.sym, "(-") != NULL || strstr(d.sym, "??") != NULL;
}

gboolean hn_shapes_constant(const HnRewrite *r, const HnValue *x, int rank, const HnDim *to, int64_t *list)
{
    const int before = hn_rw_rank(r, x);
    int rest = -1;
    gboolean vanishes = FALSE; /* then nothing follows from the other sizes */
    if (before < 0 || rank < 0 || rank > HN_MAX_RANK)
        return FALSE;
    for (int i = 0; i < rank; i++) {
        if (to[i].known && to[i].n > 0) {
            list[i] = to[i].n;
        } else if (i < before && hn_dim_equal(to[i], hn_rw_dim(r, x, i))) {
            list[i] = 0;
            vanishes = vanishes || may_vanish(to[i]);
        } else if (rest < 0 && !to[i].known) {
            list[i] = -1;
            rest = i;
        } else {
            return FALSE;
        }
    }
    return rest < 0 || !vanishes;
}

HnNode *hn_shapes_reshape(HnRewrite *r, HnNode *before, HnValue *x, const int64_t *list, int n)
{
    HnValue *shape = hn_rw_weight_ints(r, before->graph, "shape", list, n);
    return hn_rw_add(r, before, "Reshape", HN_INS(x, shape));
}

HnNode *hn_shapes_squeeze(HnRewrite *r, HnNode *before, const char *op, HnValue *x, const int *axes, int n)
{
    int64_t list[HN_MAX_RANK];
    for (int i = 0; i < n; i++)
        list[i] = axes[i];
    if (hn_rw_opset(before->graph) >= 13)
        return hn_rw_add(r, before, op, HN_INS(x, hn_rw_weight_ints(r, before->graph, "axes", list, n)));
    HnNode *s = hn_rw_add(r, before, op, HN_INS(x));
    hn_node_set_ints(s, "axes", list, n);
    return s;
}

/* --- slices ------------------------------------------------------------------------------------------------------- */

/* Inputs or attributes as they are; *count of them. */
static gboolean given_bounds(const HnRewrite *r, const HnNode *n, int64_t *start, int64_t *end, int64_t *axis,
                             int64_t *step, int *count)
{
    const HnSlice *p = n->params;
    int n_ends, n_axes, n_steps;
    for (int i = 0; i < HN_MAX_RANK; i++) {
        axis[i] = i;
        step[i] = 1;
    }
    if (!p->inputs) {
        *count = (int)p->n;
        for (int i = 0; i < *count; i++) {
            start[i] = p->starts[i];
            end[i] = p->ends[i];
            axis[i] = p->axes != NULL ? p->axes[i] : i;
            step[i] = p->steps != NULL ? p->steps[i] : 1;
        }
        return TRUE;
    }
    if (!hn_rw_ints(r, hn_node_in(n, 1), start, HN_MAX_RANK, count) ||
        !hn_rw_ints(r, hn_node_in(n, 2), end, HN_MAX_RANK, &n_ends))
        return FALSE;
    n_axes = n_steps = *count;
    if ((hn_node_in(n, 3) != NULL && !hn_rw_ints(r, hn_node_in(n, 3), axis, HN_MAX_RANK, &n_axes)) ||
        (hn_node_in(n, 4) != NULL && !hn_rw_ints(r, hn_node_in(n, 4), step, HN_MAX_RANK, &n_steps)))
        return FALSE;
    return n_ends == *count && n_axes == *count && n_steps == *count;
}

gboolean hn_shapes_bounds(const HnRewrite *r, const HnNode *slice, HnBounds *b)
{
    const int rank = hn_rw_rank(r, hn_node_in(slice, 0));
    int64_t axis[HN_MAX_RANK];
    gboolean seen[HN_MAX_RANK] = { FALSE };
    if (slice->params == NULL || !given_bounds(r, slice, b->start, b->end, axis, b->step, &b->n))
        return FALSE;
    for (int i = 0; i < b->n; i++) {
        const int64_t a = axis[i] < 0 && rank >= 0 ? axis[i] + rank : axis[i];
        if (a < 0 || a >= (rank < 0 ? HN_MAX_RANK : MIN(rank, HN_MAX_RANK)) || seen[a] || b->step[i] == 0)
            return FALSE;
        seen[a] = TRUE;
        b->axis[i] = (int)a;
    }
    return TRUE;
}

gboolean hn_shapes_cut(const HnRewrite *r, const HnNode *slice, int *axis, int64_t *start, int64_t *end)
{
    HnBounds b;
    if (!hn_shapes_bounds(r, slice, &b))
        return FALSE;
    int found = 0;
    for (int i = 0; i < b.n; i++) {
        const HnDim d = hn_rw_dim(r, hn_node_in(slice, 0), b.axis[i]);
        int64_t s = b.start[i];
        if (b.step[i] != 1)
            return FALSE;
        if (b.start[i] == 0 && b.end[i] >= INT32_MAX)
            continue;
        if (!d.known || found++ > 0)
            return FALSE;
        const int64_t n = hn_slice_axis(d.n, &s, b.end[i], 1);
        *axis = b.axis[i];
        *start = s;
        *end = s + n;
    }
    return found == 1;
}

HnNode *hn_shapes_slice(HnRewrite *r, HnNode *before, HnValue *x, const HnBounds *b)
{
    HnGraph *g = before->graph;
    int64_t axes[HN_MAX_RANK];
    gboolean steps = FALSE;
    for (int i = 0; i < b->n; i++) {
        axes[i] = b->axis[i];
        steps = steps || b->step[i] != 1;
    }
    if (hn_rw_opset(g) >= 10)
        return hn_rw_add(r, before, "Slice",
                         HN_INS(x, hn_rw_weight_ints(r, g, "starts", b->start, b->n),
                                hn_rw_weight_ints(r, g, "ends", b->end, b->n),
                                hn_rw_weight_ints(r, g, "axes", axes, b->n),
                                steps ? hn_rw_weight_ints(r, g, "steps", b->step, b->n) : NULL));
    HnNode *n = hn_rw_add(r, before, "Slice", HN_INS(x));
    hn_node_set_ints(n, "starts", b->start, b->n);
    hn_node_set_ints(n, "ends", b->end, b->n);
    hn_node_set_ints(n, "axes", axes, b->n);
    return n;
}

int64_t *hn_shapes_parts(const HnRewrite *r, const HnNode *split, int *axis)
{
    const HnSplit *p = split->params;
    const HnValue *x = hn_node_in(split, 0);
    const int rank = hn_rw_rank(r, x), n = (int)split->out->len;
    if (p == NULL || rank < 0)
        return NULL;
    *axis = hn_axis(p->axis, rank);
    g_autofree int64_t *sizes = g_new(int64_t, (gsize)n + 1);
    int64_t all = 0;
    for (int k = 0; k < n; k++) {
        HnDim d = hn_dim_unknown();
        if (p->sizes != NULL)
            d = hn_dim(p->sizes[k]);
        else if (hn_node_out(split, k) != NULL)
            d = hn_rw_dim(r, hn_node_out(split, k), *axis);
        if (!d.known || d.n < 0 || !hn_add_i64(all, d.n, &all)) /* what a file declares may be anything */
            return NULL;
        sizes[k] = d.n;
    }
    return g_steal_pointer(&sizes);
}

HnNode *hn_shapes_first(const HnGraph *g, HnNode *const *nodes, guint n)
{
    g_autoptr(GHashTable) set = g_hash_table_new(NULL, NULL);
    for (guint k = 0; k < n; k++)
        g_hash_table_add(set, nodes[k]);
    for (guint i = 0; i < g->nodes->len; i++)
        if (g_hash_table_contains(set, g->nodes->pdata[i]))
            return g->nodes->pdata[i];
    return NULL;
}
