/* How samples pass through what moves elements: rules that several records share (op/batch.h). */
#include <string.h>

#include "op/batch.h"

/* --- views -------------------------------------------------------------------------------------------------------- */

#define PLACES_MAX (2 * HN_MAX_RANK + 2)

typedef struct {
    HnBatchPlace at[PLACES_MAX];
    int n;
} Places;

static void may_be(Places *p, int axis, HnDim outer, HnDim inner)
{
    for (int i = 0; i < p->n; i++)
        if (p->at[i].axis == axis)
            return;
    if (p->n < PLACES_MAX)
        p->at[p->n++] = (HnBatchPlace){ axis, outer, inner };
}

/* Elements in front of those of a sample. */
static HnDim elements_before(const HnType *t, const HnBatchPlace *at)
{
    HnDim d = at->outer;
    for (int a = 0; a < at->axis; a++)
        d = hn_dim_mul(d, t->dims[a]);
    return d;
}

/* Axes of size 1 right in front of the samples' one. */
static int ones_before(const HnType *t, const HnBatchPlace *at)
{
    int n = 0;
    while (n < at->axis && hn_dim_is(at->outer, 1) && hn_dim_is(t->dims[at->axis - 1 - n], 1))
        n++;
    return n;
}

/* Axes that would hold the samples alone: those of as many as there were, with `before` elements in front. The one with
 * as many ones in front as the input has comes first. */
static void alone(const HnBatch *b, const HnType *to, HnDim before, int ones, Places *p)
{
    int found[HN_MAX_RANK], n = 0;
    HnDim d = hn_dim(1);
    for (int a = 0; a < to->rank; a++) {
        if (hn_dim_equal(d, before) && hn_dim_is(to->dims[a], b->n0))
            found[n++] = a;
        d = hn_dim_mul(d, to->dims[a]);
    }
    for (int i = 0; i < n; i++)
        may_be(p, found[(i + MIN(ones, n - 1)) % n], hn_dim(1), hn_dim(1));
}

/* Axes in which the samples would be among others. */
static void among(const HnBatch *b, const HnType *to, HnDim before, Places *p)
{
    HnDim d = hn_dim(1);
    for (int a = 0; a < to->rank; a++) {
        const HnDim outer = hn_dim_floor_div(before, d), all = hn_dim_mul(outer, hn_dim(b->n0));
        const HnDim inner = hn_dim_floor_div(to->dims[a], all);
        if (hn_dim_equal(hn_dim_mul(outer, d), before) && hn_dim_equal(hn_dim_mul(inner, all), to->dims[a]))
            may_be(p, a, outer, inner);
        d = hn_dim_mul(d, to->dims[a]);
    }
}

/* What the node makes of the samples as it is has that place. */
static gboolean as_it_is(const HnBatch *b, const HnType *to, const HnBatchPlace *at)
{
    const HnType *now = hn_types_get(b->types, hn_node_out(b->node, 0));
    if (at->axis < 0 || hn_type_rank(now) != to->rank)
        return FALSE;
    for (int a = 0; a < to->rank; a++) {
        const HnDim d = a == at->axis ? hn_dim_mul(hn_dim_mul(at->outer, b->n), at->inner) : to->dims[a];
        if (!hn_dim_equal(now->dims[a], d))
            return FALSE;
    }
    return TRUE;
}

/* That place comes first. */
static void prefer_as_it_is(const HnBatch *b, const HnType *to, Places *p)
{
    for (int i = 0; i < p->n; i++)
        if (as_it_is(b, to, &p->at[i])) {
            const HnBatchPlace at = p->at[i];
            memmove(p->at + 1, p->at, (gsize)i * sizeof *p->at);
            p->at[0] = at;
            return;
        }
}

/* prefer_front: rather that than among others. */
static void find_places(const HnBatch *b, const HnType *to, gboolean prefer_front, Places *p)
{
    const HnBatchIn *in = &b->in[0];
    const HnDim before = elements_before(in->now, &in->at);
    const gboolean front = b->n0 == 1 && to->rank < HN_MAX_RANK;
    alone(b, to, before, ones_before(in->now, &in->at), p);
    prefer_front = prefer_front || hn_batch_in_front(b, 0);
    if (front && prefer_front)
        p->at[p->n++] = hn_batch_none();
    among(b, to, before, p);
    if (front && !prefer_front)
        p->at[p->n++] = hn_batch_none();
    prefer_as_it_is(b, to, p);
}

/* The samples in front, then the shape as it was. */
static void view_in_front(HnBatch *b, const HnType *to)
{
    HnDim dims[HN_MAX_RANK + 1] = { b->n };
    if (!hn_batch_lift(b, 0, 0))
        return;
    for (int a = 0; a < to->rank; a++)
        dims[a + 1] = to->dims[a];
    if (hn_batch_become_view(b, dims, to->rank + 1))
        b->out[0] = hn_batch_place(0);
}

static void view_to(HnBatch *b, const HnType *to, const HnBatchPlace *at)
{
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < to->rank; a++)
        dims[a] = to->dims[a];
    dims[at->axis] = hn_dim_mul(hn_dim_mul(at->outer, b->n), at->inner);
    if (as_it_is(b, to, at) || hn_batch_become_view(b, dims, to->rank))
        b->out[0] = *at;
}

void hn_batch_view(HnBatch *b, gboolean prefer_front)
{
    const HnType *to = b->was_out[0];
    Places p = { .n = 0 };
    for (int i = 1; i < b->n_in; i++)
        if (hn_batch_split(b, i)) {
            hn_batch_fail(b, "its shape differs from sample to sample");
            return;
        }
    if (hn_type_rank(to) < 0 || hn_batch_rank(b, 0) < 0) {
        hn_batch_fail(b, "its shape is not known");
        return;
    }
    find_places(b, to, prefer_front, &p);
    if (p.n == 0) {
        hn_batch_fail(b, "its shape has no place for the samples");
        return;
    }
    b->choices = p.n;
    const HnBatchPlace *at = &p.at[MIN(b->wish, p.n - 1)];
    if (at->axis < 0)
        view_in_front(b, to);
    else
        view_to(b, to, at);
}

/* --- order of axes ------------------------------------------------------------------------------------------------ */

void hn_batch_transpose(HnBatch *b, const int64_t *perm)
{
    const int rank = hn_batch_rank_was(b, 0);
    int64_t moved[HN_MAX_RANK + 1] = { 0 };
    b->out[0] = b->in[0].at;
    for (int k = 0; k < rank; k++) {
        const int64_t from = perm != NULL ? perm[k] : rank - 1 - k;
        moved[k + 1] = from + 1;
        if (from == b->in[0].at.axis)
            b->out[0].axis = k;
    }
    if (!hn_batch_in_front(b, 0))
        return;
    hn_node_set_ints(b->node, "perm", moved, rank + 1);
    b->out[0] = hn_batch_place(0);
}

/* --- side by side ------------------------------------------------------------------------------------------------- */

/* All inputs from `first` on hold their samples at one place, which is not `axis`; those that are the same for all are
 * repeated. FALSE: they cannot, or failed. */
static gboolean together(HnBatch *b, int first, int n, int axis)
{
    int at = -1;
    for (int i = first; i < n; i++) {
        if (!hn_batch_split(b, i))
            continue;
        if (hn_batch_in_front(b, i) || b->in[i].at.axis == axis ||
            (at >= 0 && (b->in[i].at.axis != b->in[at].at.axis || !hn_batch_alike(&b->in[i].at, &b->in[at].at))))
            return FALSE;
        at = i;
    }
    for (int i = first; i < n; i++) {
        const int a = b->in[at].at.axis;
        const HnType *was = b->in[i].was;
        if (!hn_batch_has(b, i) || hn_batch_split(b, i))
            continue;
        if (!hn_dim_is(b->in[at].at.outer, 1) || hn_type_rank(was) <= a ||
            !hn_dim_equal(was->dims[a], b->in[at].at.inner))
            return FALSE;
        if (!hn_batch_put(b, i, a))
            return FALSE;
    }
    return TRUE;
}

static gboolean lift_all(HnBatch *b, int n)
{
    for (int i = 0; i < n; i++)
        if (hn_batch_has(b, i) && !hn_batch_lift(b, i, 0))
            return FALSE;
    return TRUE;
}

static int first_split(const HnBatch *b)
{
    int i = 0;
    while (!hn_batch_split(b, i))
        i++;
    return i;
}

static gboolean of_axis(HnBatch *b, int axis)
{
    return axis >= 0 || hn_batch_fail(b, "its axis is not known");
}

/* All inputs have their samples at one place, which is not along that axis. FALSE: failed. */
static gboolean beside_axis(HnBatch *b, int64_t axis)
{
    const int a = hn_batch_axis(axis, hn_batch_rank_was(b, first_split(b)));
    if (!of_axis(b, a))
        return FALSE;
    if (!together(b, 0, b->n_in, a)) {
        if (b->error != NULL || !lift_all(b, b->n_in))
            return FALSE;
        hn_node_set_int(b->node, "axis", a + 1);
    }
    return TRUE;
}

void hn_batch_concat(HnBatch *b, int64_t axis)
{
    if (beside_axis(b, axis))
        b->out[0] = b->in[first_split(b)].at;
}

void hn_batch_elements(HnBatch *b, int64_t axis)
{
    if (beside_axis(b, axis))
        b->out[0] = b->in[0].at;
}

void hn_batch_tile(HnBatch *b)
{
    int64_t v[HN_MAX_RANK + 1] = { 1 };
    int n;
    if (!hn_batch_ints(b, 1, v + 1, HN_MAX_RANK, &n) || !hn_batch_split(b, 0)) {
        hn_batch_fail(b, "how often it repeats is not constant");
        return;
    }
    const gboolean stays = !hn_batch_in_front(b, 0) && v[1 + b->in[0].at.axis] == 1;
    if (!stays && !hn_batch_lift(b, 0, 0))
        return;
    if (!stays)
        hn_batch_set_ints(b, 1, v, n + 1, -1);
    b->out[0] = b->in[0].at;
}

/* Sizes of 1 leave what is there as it is: a list says 1 for the samples. */
void hn_batch_expand(HnBatch *b)
{
    const int length = hn_batch_rank_was(b, 1) == 1 && b->in[1].was->dims[0].known ? (int)b->in[1].was->dims[0].n : -1;
    int64_t v[HN_MAX_RANK];
    int n;
    if (length < 0 || hn_batch_split(b, 1)) {
        hn_batch_fail(b, "the shape that it expands to is not known");
        return;
    }
    if (hn_batch_in_front(b, 0) && !hn_batch_lift(b, 0, length))
        return;
    const int back = hn_batch_rank(b, 0) - b->in[0].at.axis, place = length - back;
    b->out[0] = b->in[0].at;
    b->out[0].axis += MAX(0, length - hn_batch_rank(b, 0));
    if (place < 0 || hn_batch_in_front(b, 0))
        return;
    if (hn_batch_ints(b, 1, v, HN_MAX_RANK, &n) && v[place] != 1) {
        v[place] = 1;
        hn_batch_set_ints(b, 1, v, n, -1);
    }
}

/* --- picking ------------------------------------------------------------------------------------------------------ */

/* Positions that differ from sample to sample, in something that does not. */
static void gather_by_sample(HnBatch *b, int axis)
{
    if (hn_batch_in_front(b, 1) && axis != 0) {
        hn_batch_fail(b, "positions without an axis for the samples, in an axis behind others");
        return;
    }
    b->out[0] = b->in[1].at;
    b->out[0].axis += axis;
}

/* Each sample has positions and something that they are in, along its first axis. */
static void gather_pairs(HnBatch *b, int axis)
{
    HnDim dims[HN_MAX_RANK + 1];
    if (axis != 0 || hn_graph_opset(b->node->graph, NULL) < 12) {
        hn_batch_fail(b, "both what it picks from and the positions differ from sample to sample");
        return;
    }
    if (!hn_batch_lift(b, 0, 0) || !hn_batch_lift(b, 1, 0))
        return;
    const HnType *t = b->in[1].now;
    if (t->rank + 1 > HN_MAX_RANK) {
        hn_batch_fail(b, "there is no room for another axis");
        return;
    }
    for (int a = 0; a < t->rank; a++)
        dims[a] = t->dims[a];
    dims[t->rank] = hn_dim(1);
    HnValue *list = hn_batch_shape(b, t, dims, t->rank + 1);
    if (list == NULL)
        return;
    HnValue *deep = hn_batch_done(b, hn_batch_add(b, "Reshape", (HnValue *[]){ b->in[1].v, list }, 2));
    hn_node_remove_attr(b->node, "axis");
    hn_node_become(b->node, "GatherND", NULL);
    hn_node_set_int(b->node, "batch_dims", 1);
    hn_node_set_in(b->node, 1, deep);
    b->out[0] = hn_batch_place(0);
}

void hn_batch_gather(HnBatch *b, int64_t axis)
{
    const int a = hn_batch_axis(axis, hn_batch_rank_was(b, 0)), deep = hn_batch_rank_was(b, 1);
    if (!of_axis(b, a) || !of_axis(b, deep))
        return;
    if (!hn_batch_split(b, 0)) {
        gather_by_sample(b, a);
        return;
    }
    if (hn_batch_split(b, 1)) {
        gather_pairs(b, a);
        return;
    }
    if (hn_batch_in_front(b, 0) || b->in[0].at.axis == a) {
        if (!hn_batch_lift(b, 0, 0))
            return;
        hn_node_set_int(b->node, "axis", a + 1);
        b->out[0] = hn_batch_place(0);
        return;
    }
    b->out[0] = b->in[0].at;
    b->out[0].axis += b->in[0].at.axis > a ? deep - 1 : 0;
}

/* [n, ...] with n last. */
static gboolean put_last(HnBatch *b, int i)
{
    int64_t perm[HN_MAX_RANK];
    if (!hn_batch_lift(b, i, 0))
        return FALSE;
    const int rank = hn_batch_rank(b, i);
    for (int a = 0; a < rank; a++)
        perm[a] = (a + 1) % rank;
    HnNode *t = hn_batch_add(b, "Transpose", &b->in[i].v, 1);
    hn_node_set_ints(t, "perm", perm, rank);
    hn_node_set_in(b->node, i, hn_batch_done(b, t));
    return b->error == NULL;
}

/* The result has its samples last: they come to the front. */
static void from_last(HnBatch *b)
{
    int64_t perm[HN_MAX_RANK];
    const int rank = hn_type_rank(b->was_out[0]) + 1;
    if (rank < 1 || rank > HN_MAX_RANK) {
        hn_batch_fail(b, "its rank is not known");
        return;
    }
    for (int a = 0; a < rank; a++)
        perm[a] = (a + rank - 1) % rank;
    if (hn_batch_turn_out(b, 0, perm, rank))
        b->out[0] = hn_batch_place(0);
}

static int depth_of(const HnBatch *b)
{
    const int rank = hn_batch_rank_was(b, 1);
    const HnDim d = rank > 0 ? b->in[1].was->dims[rank - 1] : hn_dim_unknown();
    return d.known ? (int)d.n : -1;
}

void hn_batch_gathernd(HnBatch *b, int64_t batch_dims)
{
    const int depth = depth_of(b), q = hn_batch_rank_was(b, 1);
    if (hn_batch_split(b, 1) || batch_dims != 0 || depth < 0) {
        hn_batch_fail(b, "positions that differ from sample to sample");
        return;
    }
    b->out[0] = b->in[0].at;
    if (!hn_batch_in_front(b, 0) && b->in[0].at.axis >= depth)
        b->out[0].axis += q - 1 - depth;
    else if (put_last(b, 0))
        from_last(b);
}

/* The samples lie in what positions leave whole, of the data and of what is put there. */
static gboolean in_slices(const HnBatch *b, int depth, int q)
{
    const HnBatchPlace *x = &b->in[0].at, *u = &b->in[2].at;
    if (!hn_batch_split(b, 0) || !hn_batch_split(b, 2) || hn_batch_in_front(b, 0) || hn_batch_in_front(b, 2))
        return FALSE;
    return x->axis >= depth && u->axis == x->axis - depth + q - 1 && hn_batch_alike(x, u);
}

void hn_batch_scatternd(HnBatch *b)
{
    const int depth = depth_of(b), q = hn_batch_rank_was(b, 1);
    if (hn_batch_split(b, 1) || depth < 0) {
        hn_batch_fail(b, "positions that differ from sample to sample");
        return;
    }
    b->out[0] = b->in[0].at;
    if (in_slices(b, depth, q))
        return;
    if (put_last(b, 0) && put_last(b, 2))
        from_last(b);
}
