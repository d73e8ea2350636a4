/*
 * OneHot. Before opset 11 negative indices were outside; since then they count from the back of the depth.
 */
#include "op/onehot.h"

#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/types.h"
#include "op/unbind.h"

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

/* Since opset 11 a negative index counts from the back; before, it stands for no place at all. */
static void onehot_unbind(HnUnbind *u)
{
    const HnOneHot *p = u->params;
    const HnTensor *known = hn_unbind_value(u, 0);
    HnDtype index = hn_unbind_dtype(u, 0), depth = hn_unbind_dtype(u, 1);
    gboolean negative = known == NULL && !hn_dtype_in(index, HN_T_UINTS);
    for (int64_t i = 0; known != NULL && i < known->n; i++)
        negative = negative || hn_tensor_get_f64(known, i) < 0;
    if (p->from_back == (u->to >= 11) || !negative)
        return;
    if (!hn_dtype_in(index, HN_T_NUM) || !hn_dtype_in(depth, HN_T_NUM)) {
        hn_unbind_refuse(u, "opset 11 gave negative indices a meaning, and the types are not known");
        return;
    }
    HnValue *i = hn_unbind_cast(u, hn_unbind_in(u, 0), HN_I64), *n = hn_unbind_cast(u, hn_unbind_in(u, 1), HN_I64);
    HnValue *below = hn_unbind_op2(u, "Less", i, hn_unbind_scalar(u, HN_I64, 0));
    n = hn_unbind_reshape(u, n, NULL, 0);
    HnValue *other = p->from_back ? hn_unbind_op2(u, "Add", i, n) : n;
    hn_node_set_in(u->node, 0, hn_unbind_op3(u, "Where", below, other, i));
}

/* Of the two values: what came of the second one has the same tensor of 0 and 1, the first one made the rest. */
static void onehot_grad(HnTape *t)
{
    static const int64_t two = 2, one = 1;
    HnTensor *e = hn_tensor_new(t->dtype, 1, &two, NULL, NULL);
    hn_tensor_set_f64(e, 0, 0);
    hn_tensor_set_f64(e, 1, 1);
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_build_constant(t->build, "values", e) };
    HnNode *hot = hn_build_node(t->build, "OneHot", NULL, 3, in, 1);
    hn_node_share_attrs(hot, t->node);
    hn_tape_ends(t, 0);
    hn_tape_ends(t, 1);
    HnValue *v[] = { hn_tape_calc(t, "ReduceSum(dy)", NULL),
                     hn_tape_calc(t, "ReduceSum(dy * p)", (HnValue *[]){ hn_node_out(hot, 0) }) };
    HnValue *parts[] = { hn_build_reshape(t->build, hn_tape_calc(t, "p - q", v), &one, 1),
                         hn_build_reshape(t->build, v[1], &one, 1) };
    hn_tape_give(t, 2, hn_build_concat(t->build, 2, parts, 0));
}

void hn_onehot_batch(HnBatch *b)
{
    const HnOneHot *p = b->params;
    const int a = hn_batch_axis(p->axis, hn_batch_rank_was(b, 0) + 1);
    if (a < 0 || hn_batch_split(b, 1) || hn_batch_split(b, 2)) {
        hn_batch_fail(b, "its depth or its values differ from sample to sample, or its axis is not known");
        return;
    }
    b->out[0] = b->in[0].at;
    if (hn_batch_in_front(b, 0))
        hn_node_set_int(b->node, "axis", a + 1);
    else
        b->out[0].axis += a <= b->in[0].at.axis;
}

const HnOp hn_op_onehot = {
    .name = "OneHot",
    .since = { 9, 11, 28 },
    .lacks = HN_LACKS(HN_BF16_SINCE(28)),
    .wide = HN_WIDE_PICKS,
    .in = "UVT",
    .out = "T",
    .T = HN_T_PLAIN,
    .U = HN_T_NUM,
    .V = HN_T_NUM,
    .unbind = onehot_unbind,
    .params_size = sizeof(HnOneHot),
    .bind = onehot_bind,
    .infer = onehot_infer,
    .cost = hn_cost_move,
    .ref = onehot_ref,
    .grad = onehot_grad,
    .batch = hn_onehot_batch,
    .range = { .exact = "UV" },
};
