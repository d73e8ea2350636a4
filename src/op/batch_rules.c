/* How samples pass through what computes: rules that several records share (op/batch.h). */
#include <string.h>

#include "op/batch.h"

static void all_out(HnBatch *b, HnBatchPlace at)
{
    for (int k = 0; k < b->n_out; k++)
        b->out[k] = at;
}

/* Whether the other operand has nothing along the samples' axis, which is `back` from the back. */
static gboolean broadcasts(const HnBatch *b, int i, int back)
{
    const int r = hn_batch_rank(b, i);
    return r >= 0 && (r < back || hn_dim_is(b->in[i].now->dims[r - back], 1));
}

gboolean hn_batch_same_along(HnBatch *b, int i, int back)
{
    return !hn_batch_has(b, i) || hn_batch_split(b, i) || broadcasts(b, i, back) ||
           hn_batch_fail(b, "input %d is not the same for all samples", i);
}

/* --- element-wise ------------------------------------------------------------------------------------------------- */

/* Axis of the samples of input i, from the back: 1 is the last. */
static int from_back(const HnBatch *b, int i)
{
    return hn_batch_rank(b, i) - b->in[i].at.axis;
}

/* As they are, inputs broadcast to one place of the samples. */
static gboolean aligned(const HnBatch *b, HnBatchPlace *out)
{
    int first = -1, rank = 0;
    for (int i = 0; i < b->n_in; i++) {
        rank = MAX(rank, hn_batch_rank(b, i));
        if (!hn_batch_split(b, i))
            continue;
        if (first >= 0 && (from_back(b, i) != from_back(b, first) || !hn_batch_alike(&b->in[i].at, &b->in[first].at)))
            return FALSE;
        first = first < 0 ? i : first;
    }
    const int back = from_back(b, first);
    for (int i = 0; i < b->n_in; i++) {
        const int r = hn_batch_rank(b, i);
        if (hn_batch_has(b, i) && !hn_batch_split(b, i) &&
            (r < 0 || (r >= back && !hn_dim_is(b->in[i].now->dims[r - back], 1))))
            return FALSE;
    }
    *out = b->in[first].at;
    out->axis = rank - back;
    const int was = hn_type_rank(b->was_out[0]);
    return was < 0 || rank == was || (rank == was + 1 && out->axis == 0);
}

/* Before opset 7 an attribute may say along which axes of the first operand the second one lies: behind the samples. */
static void laid_along(HnBatch *b, int64_t axis)
{
    const int a = hn_batch_axis(axis, hn_batch_rank_was(b, 0));
    if (hn_batch_split(b, 1) || hn_batch_in_front(b, 0) || a <= b->in[0].at.axis)
        hn_batch_fail(b, "what it adds may differ from sample to sample");
    else
        all_out(b, b->in[0].at);
}

void hn_batch_elementwise(HnBatch *b)
{
    HnBatchPlace at;
    int rank = 0;
    const HnAttr *axis = b->node->version < 7 && b->n_in == 2 ? hn_node_attr(b->node, "axis") : NULL;
    if (axis != NULL) {
        laid_along(b, axis->i);
        return;
    }
    if (aligned(b, &at)) {
        all_out(b, at);
        return;
    }
    for (int i = 0; i < b->n_in; i++)
        rank = MAX(rank, hn_batch_rank_was(b, i));
    for (int i = 0; i < b->n_in; i++)
        if (hn_batch_split(b, i) && !hn_batch_lift(b, i, rank))
            return;
    all_out(b, hn_batch_place(0));
}

/* --- axis 0 ------------------------------------------------------------------------------------------------------- */

void hn_batch_first_of(HnBatch *b, guint mask)
{
    int first = -1;
    for (int i = 0; i < b->n_in; i++)
        if (!(i < 32 && (mask >> i & 1) != 0) && hn_batch_split(b, i)) { /* it is the same for all of axis 0 */
            b->apart(b);
            return;
        }
    for (int i = 0; i < b->n_in; i++) {
        if (i >= 32 || (mask >> i & 1) == 0 || !hn_batch_has(b, i))
            continue;
        const gboolean there = hn_batch_split(b, i) && !hn_batch_in_front(b, i) && b->in[i].at.axis == 0;
        if (!there && !hn_batch_put(b, i, 0))
            return;
        if (first >= 0 && !hn_batch_alike(&b->in[i].at, &b->in[first].at)) {
            hn_batch_fail(b, "inputs %d and %d hold their samples in another order", first, i);
            return;
        }
        first = first < 0 ? i : first;
    }
    b->out[0] = b->in[first].at;
    for (int k = 1; k < b->n_out; k++)
        if (hn_node_out(b->node, k) != NULL && hn_value_is_read(hn_node_out(b->node, k)))
            hn_batch_fail(b, "its output %d may count through all samples", k);
}

void hn_batch_first(HnBatch *b)
{
    hn_batch_first_of(b, 1);
}

/* --- along an axis ------------------------------------------------------------------------------------------------ */

/* Else the rule does not go on: each sample runs by itself. */
static gboolean others_are_same(HnBatch *b)
{
    for (int i = 1; i < b->n_in; i++)
        if (hn_batch_split(b, i)) {
            b->apart(b);
            return FALSE;
        }
    return TRUE;
}

void hn_batch_along(HnBatch *b, int64_t axis, gboolean on)
{
    const int rank = hn_batch_rank_was(b, 0), at = b->in[0].at.axis, a = hn_batch_axis(axis, rank);
    if (!others_are_same(b))
        return;
    if (a < 0) {
        hn_batch_fail(b, "its axis is not known");
        return;
    }
    if (hn_batch_in_front(b, 0) || (on ? at >= a : at == a)) {
        if (!hn_batch_lift(b, 0, 0))
            return;
        hn_node_set_int(b->node, "axis", a + 1);
    }
    all_out(b, b->in[0].at);
}

void hn_batch_rows(HnBatch *b)
{
    hn_batch_along(b, -1, FALSE);
}

/* ReduceSum has its axes as an input since 13, the others since 18. */
static gboolean has_axes_input(const HnNode *n)
{
    return n->version >= 18 || (n->version >= 13 && !strcmp(n->op_type, "ReduceSum"));
}

/* Of a value that has its samples in front. */
static void say_axes(HnBatch *b, const HnBatchReduced *r, int rank)
{
    int64_t list[HN_MAX_RANK];
    int n = 0;
    for (int a = 0; a < rank; a++)
        if (r->mark[a])
            list[n++] = a + 1;
    if (r->one)
        hn_node_set_int(b->node, "axis", list[0]);
    else if (hn_batch_has(b, 1))
        hn_batch_set_ints(b, 1, list, n, -1);
    else if (has_axes_input(b->node))
        hn_node_set_in(b->node, 1, hn_batch_constant(b, list, n));
    else
        hn_node_set_ints(b->node, "axes", list, n);
}

void hn_batch_reduce(HnBatch *b, const HnBatchReduced *r)
{
    const int rank = hn_batch_rank_was(b, 0);
    if (!others_are_same(b))
        return;
    if (rank < 0) {
        hn_batch_fail(b, "its rank is not known");
        return;
    }
    if (hn_batch_in_front(b, 0) || r->mark[b->in[0].at.axis]) {
        if (!hn_batch_lift(b, 0, 0))
            return;
        say_axes(b, r, rank);
        all_out(b, hn_batch_place(0));
        return;
    }
    HnBatchPlace at = b->in[0].at;
    for (int a = 0; a < b->in[0].at.axis && !r->keepdims; a++)
        at.axis -= r->mark[a];
    all_out(b, at);
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* Rows of the first operand, columns of the second, or an axis of many products. 0: none of them. */
static int product_axis(const HnBatch *b, int x, int y)
{
    const gboolean sx = hn_batch_split(b, x), sy = hn_batch_split(b, y);
    const int fx = sx ? from_back(b, x) : 0, fy = sy ? from_back(b, y) : 0;
    if (sx && sy)
        return fx == fy && fx > 2 && hn_batch_alike(&b->in[x].at, &b->in[y].at) ? fx : 0;
    if (sx && hn_batch_in_front(b, x) && hn_batch_rank_was(b, x) == 1)
        return hn_batch_rank(b, y) == 2 ? 2 : 0;
    if (sx)
        return fx == 2 || (fx > 2 && broadcasts(b, y, fx)) ? fx : 0;
    if (hn_batch_in_front(b, y) && hn_batch_rank_was(b, y) == 1)
        return 0;
    return (fy == 1 && hn_batch_rank(b, y) >= 2) || (fy > 2 && broadcasts(b, x, fy)) ? fy : 0;
}

void hn_batch_matmul(HnBatch *b, int x, int y)
{
    for (int i = 0; i < b->n_in; i++)
        if (i != x && i != y && hn_batch_split(b, i)) {
            b->apart(b);
            return;
        }
    const int was = MAX(hn_batch_rank_was(b, x), hn_batch_rank_was(b, y));
    int back = product_axis(b, x, y);
    if (back > 0) {
        const int rank = MAX(hn_batch_rank(b, x), hn_batch_rank(b, y));
        const int rows = hn_batch_rank(b, x) == 1, columns = hn_batch_rank(b, y) == 1;
        b->out[0] = b->in[hn_batch_split(b, x) ? x : y].at;
        b->out[0].axis = rank - back - (back > 1 ? rows : rank > 1 ? rows : 0);
        if (columns && back == 1)
            b->out[0].axis = -1;
        return;
    }
    if (hn_batch_rank_was(b, x) < 2 || hn_batch_rank_was(b, y) < 2) {
        hn_batch_fail(b, "a product with a vector that differs from sample to sample");
        return;
    }
    if ((hn_batch_split(b, x) && !hn_batch_lift(b, x, was)) || (hn_batch_split(b, y) && !hn_batch_lift(b, y, was)))
        return;
    b->out[0] = hn_batch_place(0);
}

/* What is added: along rows it is one for all, or lies as the rows do. */
static gboolean fits_product(HnBatch *b, const HnBatchPlace *at)
{
    const int back = 2 - at->axis;
    if (!hn_batch_has(b, 2) || (!hn_batch_split(b, 2) && broadcasts(b, 2, back)))
        return TRUE;
    if (!hn_batch_split(b, 2) && !hn_batch_put(b, 2, at->axis - 2 + hn_batch_rank_was(b, 2)))
        return FALSE;
    return (from_back(b, 2) == back && hn_batch_alike(&b->in[2].at, at)) ||
           hn_batch_fail(b, "what it adds has its samples elsewhere");
}

void hn_batch_gemm(HnBatch *b, gboolean trans_a, gboolean trans_b)
{
    if (hn_batch_split(b, 0) && hn_batch_split(b, 1)) {
        hn_batch_fail(b, "both operands differ from sample to sample");
        return;
    }
    if (!hn_batch_split(b, 0) && !hn_batch_split(b, 1) && !hn_batch_put(b, 0, trans_a))
        return;
    const gboolean rows = hn_batch_split(b, 0);
    const int i = rows ? 0 : 1, axis = rows ? trans_a : !trans_b;
    const gboolean there = !hn_batch_in_front(b, i) && b->in[i].at.axis == axis;
    if (!there && !hn_batch_put(b, i, axis))
        return;
    b->out[0] = b->in[i].at;
    b->out[0].axis = rows ? 0 : 1;
    fits_product(b, &b->out[0]);
}

/* --- others ------------------------------------------------------------------------------------------------------- */

void hn_batch_quantize(HnBatch *b, gboolean per_axis, int64_t axis)
{
    const HnType *scale = hn_batch_has(b, 1) ? b->in[1].now : NULL;
    if (!others_are_same(b))
        return;
    const gboolean one = hn_type_rank(scale) == 0 || (hn_type_rank(scale) == 1 && hn_dim_is(scale->dims[0], 1));
    if (one || !per_axis) {
        b->out[0] = b->in[0].at;
        return;
    }
    if (hn_type_rank(scale) != 1) { /* of blocks */
        b->apart(b);
        return;
    }
    hn_batch_along(b, axis, FALSE);
}

void hn_batch_recurrent(HnBatch *b, gboolean batch_first)
{
    const int axis = batch_first ? 0 : 1, moved[][2] = { { 0, axis }, { 4, 0 }, { 5, axis }, { 6, axis } };
    for (int i = 0; i < b->n_in; i++)
        if (hn_batch_split(b, i) && i != 0 && (i < 4 || i > 6)) {
            hn_batch_fail(b, "its weights differ from sample to sample");
            return;
        }
    for (guint k = 0; k < G_N_ELEMENTS(moved); k++) {
        const int i = moved[k][0];
        const gboolean there = hn_batch_split(b, i) && !hn_batch_in_front(b, i) && b->in[i].at.axis == moved[k][1];
        if (hn_batch_has(b, i) && !there && !hn_batch_put(b, i, moved[k][1]))
            return;
        if (hn_batch_has(b, i) && !hn_batch_alike(&b->in[i].at, &b->in[0].at)) {
            hn_batch_fail(b, "input %d has its samples in another order than the sequences", i);
            return;
        }
    }
    all_out(b, b->in[0].at);
    b->out[0].axis = batch_first ? 0 : 2;
    for (int k = 1; k < b->n_out; k++)
        b->out[k].axis = axis;
}

void hn_batch_last_two(HnBatch *b)
{
    const int rank = hn_batch_rank(b, 0);
    if (!others_are_same(b))
        return;
    if (b->in[0].at.axis >= rank - 2 && !hn_batch_lift(b, 0, 0))
        return;
    all_out(b, b->in[0].at);
}
