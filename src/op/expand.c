/*
 * Expand and Tile: elements repeated. Before opset 6 Tile repeated along one axis, both its numbers being inputs of the
 * data's type.
 */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/move.h"
#include "op/narrow.h"
#include "op/tape.h"
#include "op/unbind.h"

/* Size that `a` of the input and `b` of the shape broadcast to. */
static HnDim expand_dim(HnInfer *x, HnDim a, HnDim b)
{
    if (b.known && b.n < 0)
        hn_infer_fail(x, HN_ERROR_VALUE, "the shape cannot have a size of %" PRId64, b.n);
    if (hn_dim_is(a, 1) || hn_dim_equal(a, b))
        return b;
    if (hn_dim_is(b, 1))
        return a;
    if (a.known && b.known)
        hn_infer_fail(x, HN_ERROR_SHAPE, "sizes %" PRId64 " and %" PRId64 " do not broadcast", a.n, b.n);
    return a.known ? a : b.known ? b : hn_dim_unknown();
}

static void expand_infer(HnInfer *x)
{
    const HnContents *c = hn_infer_contents(x, 1), *data = hn_infer_contents(x, 0);
    int rank = hn_infer_rank(x, 0), n = hn_infer_length(x, 1), out = MAX(rank, n);
    HnDim dims[HN_MAX_RANK];
    if (n > HN_MAX_RANK)
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", n, HN_MAX_RANK);
    if (rank < 0 || n < 0 || n > HN_MAX_RANK) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    for (int i = 0; i < out; i++) {
        int a = i - (out - rank), b = i - (out - n);
        HnDim in = a >= 0 ? hn_infer_dim(x, 0, a) : hn_dim(1);
        HnDim to = b < 0 ? hn_dim(1) : c != NULL ? c->d[b] : hn_dim_unknown();
        dims[i] = expand_dim(x, in, to);
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), out, dims);
    if (x->error != NULL || data == NULL || !hn_infer_is_list(out, dims))
        return;
    HnContents *r = hn_contents_new(out, out == 1 ? (int)dims[0].n : 1);
    for (int i = 0; i < r->n && data->n > 0; i++)
        r->d[i] = data->d[data->n == 1 ? 0 : MIN(i, data->n - 1)];
    hn_infer_out_contents(x, 0, r);
}

static void expand_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t shape[HN_MAX_RANK], dims[HN_MAX_RANK], strides[HN_MAX_RANK];
    size_t size = hn_move_size(e, x->dtype);
    int n = hn_eval_ints(e, 1, shape, HN_MAX_RANK), rank = MAX(n, x->ndim);
    if (size == 0 || n < 0)
        return;
    for (int i = 0; i < rank; i++) {
        int a = i - (rank - x->ndim), b = i - (rank - n);
        int64_t in = a >= 0 ? x->dims[a] : 1, to = b >= 0 ? shape[b] : 1;
        if (to < 0 || (in != to && in != 1 && to != 1)) {
            hn_eval_fail(e, to < 0 ? HN_ERROR_VALUE : HN_ERROR_SHAPE, "size %" PRId64 " does not expand to %" PRId64,
                         in, to);
            return;
        }
        dims[i] = in == 1 ? to : in;
    }
    void *y = hn_move_out(e, 0, x->dtype, rank, dims);
    if (y == NULL)
        return;
    hn_broadcast_strides(x, rank, strides);
    hn_move_strided(y, x->data, size, rank, dims, strides);
    hn_move_done(e, 0);
}

/* Before opset 8: times ones. */
static void expand_unbind(HnUnbind *u)
{
    HnDtype dtype = hn_unbind_dtype(u, 0);
    int64_t dims[HN_MAX_RANK];
    int n = hn_unbind_ints(u, 1, dims);
    if (u->to >= 8 || n < 0 || !hn_dtype_in(dtype, HN_T_NUM))
        return;
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Mul", hn_unbind_in(u, 0), hn_unbind_fill(u, dtype, n, dims, 1)));
}

static gboolean expand_narrow(const HnNarrow *x)
{
    const HnKept *k = hn_narrow_out(x, 0);
    const HnType *t = k != NULL ? hn_node_out(x->node, 0)->type : NULL;
    g_autoptr(HnTensor) shape = hn_narrow_constant(x, 1);
    if (k == NULL || shape == NULL)
        return TRUE;
    const int64_t at = t != NULL ? k->axis - (t->rank - shape->n) : -1;
    if (at >= 0 && hn_tensor_get_i64(shape, at) != 1)
        hn_narrow_set_number(x, 1, at, k->left);
    return t != NULL;
}

static void expand_grad(HnTape *t)
{
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_tape_sum_like(t, hn_tape_dy(t, 0), hn_tape_in(t, 0)));
}

const HnOp hn_op_expand = {
    .name = "Expand",
    .since = { 8, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "T",
    .T = HN_T_PLAIN,
    .unbind = expand_unbind,
    .infer = expand_infer,
    .ref = expand_ref,
    .grad = expand_grad,
    .batch = hn_batch_expand,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
    .narrow = expand_narrow,
};

/* --- Tile -----------------------------------------------------------------------------------------------------------
 */

typedef struct {
    gboolean one_axis; /* inputs are: how often, which axis */
} HnTile;

static void tile_bind(HnBind *b, void *params)
{
    HnTile *p = params;
    p->one_axis = b->version < 6;
    if (p->one_axis != (hn_node_in(b->node, 2) != NULL))
        hn_bind_fail(b, HN_ERROR_GRAPH, p->one_axis ? "input 2 is missing" : "has 3 inputs, at most 2 are allowed");
}

static void tile_infer(HnInfer *x)
{
    const HnTile *p = x->params;
    const HnContents *c = hn_infer_contents(x, 1);
    int rank = hn_infer_rank(x, 0), n = hn_infer_length(x, 1);
    HnDim dims[HN_MAX_RANK];
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (!p->one_axis && n >= 0 && n != rank) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "%d repeats for %d dimensions", n, rank);
        return;
    }
    const HnTensor *times = x->value[1], *axis = p->one_axis ? x->value[2] : NULL;
    gboolean one = axis != NULL && axis->n == 1 && times != NULL && times->n == 1;
    int only = one ? hn_infer_axis(x, hn_tensor_get_i64(axis, 0), rank) : -1;
    for (int a = 0; a < rank; a++) {
        HnDim times_a = c != NULL && !p->one_axis ? c->d[a] : hn_dim_unknown();
        if (one)
            times_a = hn_dim(a == only ? hn_tensor_get_i64(times, 0) : 1);
        if (times_a.known && times_a.n < 0)
            hn_infer_fail(x, HN_ERROR_VALUE, "axis %d cannot be repeated %" PRId64 " times", a, times_a.n);
        dims[a] = hn_dim_mul(hn_infer_dim(x, 0, a), times_a);
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

static gboolean tile_repeats(HnEval *e, int rank, int64_t *repeats)
{
    const HnTile *p = e->params;
    if (p->one_axis) {
        int64_t axis = 0, times = 1;
        if (!hn_eval_int(e, 1, &times) || !hn_eval_int(e, 2, &axis) || (axis = hn_eval_axis(e, axis, rank)) < 0)
            return FALSE;
        for (int a = 0; a < rank; a++)
            repeats[a] = a == axis ? times : 1;
    } else if (hn_eval_ints(e, 1, repeats, rank) != rank) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "there must be %d repeats", rank);
        return FALSE;
    }
    return TRUE;
}

static void tile_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t repeats[HN_MAX_RANK], dims[HN_MAX_RANK], own[HN_MAX_RANK];
    int64_t split[2 * HN_MAX_RANK], strides[2 * HN_MAX_RANK]; /* each axis as [repeats, size] */
    size_t size = hn_move_size(e, x->dtype);
    if (size == 0 || !tile_repeats(e, x->ndim, repeats))
        return;
    hn_strides(x->ndim, x->dims, own);
    for (int a = 0; a < x->ndim; a++) {
        if (repeats[a] < 0 || !hn_mul_i64(repeats[a], x->dims[a], &dims[a])) {
            hn_eval_fail(e, HN_ERROR_VALUE, "axis %d cannot be repeated %" PRId64 " times", a, repeats[a]);
            return;
        }
        split[2 * a] = repeats[a];
        split[2 * a + 1] = x->dims[a];
        strides[2 * a] = 0;
        strides[2 * a + 1] = own[a];
    }
    void *y = hn_move_out(e, 0, x->dtype, x->ndim, dims);
    if (y == NULL)
        return;
    hn_move_strided(y, x->data, size, 2 * x->ndim, split, strides);
    hn_move_done(e, 0);
}

static void tile_grad(HnTape *t)
{
    hn_tape_moved(t);
}

const HnOp hn_op_tile = {
    .name = "Tile",
    .since = { 1, 6, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "TVV",
    .out = "T",
    .T = HN_T_PLAIN,
    .V = HN_BIT(HN_I64) | HN_BIT(HN_F16) | HN_BIT(HN_F32) | HN_BIT(HN_F64), /* floats before opset 6 */
    .min_in = 2,
    .params_size = sizeof(HnTile),
    .bind = tile_bind,
    .infer = tile_infer,
    .ref = tile_ref,
    .grad = tile_grad,
    .batch = hn_batch_tile,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
};
