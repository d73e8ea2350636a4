/*
 * OneHot. Before opset 11 negative indices were outside; since then they count from the back of the depth.
 */
#include "op/onehot.h"

#include <inttypes.h>
#include <string.h>

#include "op/move.h"
#include "op/types.h"

static void onehot_bind(HnBind *b, void *params)
{
    HnOneHot *p = params;
    p->axis = hn_bind_int(b, "axis", -1);
    p->from_back = b->version >= 11;
}

static void onehot_infer(HnInfer *x)
{
    const HnOneHot *p = x->params;
    const HnContents *c = hn_infer_contents(x, 1);
    const HnTensor *depth = x->value[1];
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK], n = c != NULL && c->n == 1 ? c->d[0] : hn_dim_unknown();
    if (depth != NULL && depth->n == 1)
        n = hn_dim(hn_tensor_get_i64(depth, 0));
    if (n.known && n.n < 0)
        hn_infer_fail(x, HN_ERROR_VALUE, "the depth cannot be %" PRId64, n.n);
    if (rank >= HN_MAX_RANK)
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", rank + 1, HN_MAX_RANK);
    if (rank < 0 || rank >= HN_MAX_RANK) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 2));
        return;
    }
    int axis = hn_infer_axis(x, p->axis, rank + 1);
    for (int a = 0; a <= rank; a++)
        dims[a] = a == axis ? n : hn_infer_dim(x, 0, a < axis ? a : a - 1);
    hn_infer_out(x, 0, hn_infer_dtype(x, 2), rank + 1, dims);
}

static void onehot_ref(HnEval *e)
{
    const HnOneHot *p = e->params;
    const HnTensor *at = hn_eval_in(e, 0), *values = hn_eval_in(e, 2);
    size_t size = hn_move_size(e, values->dtype);
    int64_t depth, dims[HN_MAX_RANK + 1];
    if (size == 0 || !hn_eval_int(e, 1, &depth))
        return;
    if (depth < 0 || values->n != 2 || at->ndim >= HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_VALUE, "a depth of %" PRId64 " and %" PRId64 " values make no one-hot tensor", depth,
                     values->n);
        return;
    }
    int axis = hn_eval_axis(e, p->axis, at->ndim + 1);
    if (axis < 0)
        return;
    for (int a = 0; a <= at->ndim; a++)
        dims[a] = a == axis ? depth : at->dims[a < axis ? a : a - 1];
    void *out = hn_move_out(e, 0, values->dtype, at->ndim + 1, dims);
    if (out == NULL)
        return;
    hn_move_fill(out, values->data, size, e->out[0]->n);
    int64_t inner = hn_span(at->dims, axis, at->ndim);
#define SET(T)                                                   \
    T *y = out, on = ((const T *)values->data)[1];               \
    for (int64_t i = 0; i < at->n && depth > 0; i++) {           \
        int64_t k = hn_tensor_get_i64(at, i);                    \
        k += k < 0 && p->from_back ? depth : 0;                  \
        if (k >= 0 && k < depth)                                 \
            y[(i / inner * depth + k) * inner + i % inner] = on; \
    }
    HN_FOR_MOVE(size, SET)
#undef SET
    hn_move_done(e, 0);
}

const HnOp hn_op_onehot = {
    .name = "OneHot",
    .since = { 9, 11, 28 },
    .in = "UVT",
    .out = "T",
    .T = HN_T_PLAIN,
    .U = HN_T_NUM,
    .V = HN_T_NUM,
    .params_size = sizeof(HnOneHot),
    .bind = onehot_bind,
    .infer = onehot_infer,
    .cost = hn_cost_move,
    .ref = onehot_ref,
};
