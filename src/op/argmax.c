/*
 * ArgMax and ArgMin along one axis (default 0). Of equal values the first counts, or since opset 12 the last where
 * `select_last_index` says so. A NaN is more extreme than everything.
 */
#include "op/argmax.h"

#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/types.h"
#include "op/unbind.h"

static void arg_bind(HnBind *b, void *params)
{
    HnArg *p = params;
    p->axis = hn_bind_int(b, "axis", 0);
    p->keepdims = hn_bind_bool(b, "keepdims", TRUE);
    p->last = b->version >= 12 && hn_bind_bool(b, "select_last_index", FALSE);
}

static void arg_infer(HnInfer *x)
{
    const HnArg *p = x->params;
    int rank = hn_infer_rank(x, 0), n = 0;
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, HN_I64);
        return;
    }
    HnDim dims[HN_MAX_RANK];
    int axis = hn_infer_axis(x, p->axis, rank);
    for (int a = 0; a < rank; a++)
        if (a != axis)
            dims[n++] = hn_infer_dim(x, 0, a);
        else if (p->keepdims)
            dims[n++] = hn_dim(1);
    hn_infer_out(x, 0, HN_I64, n, dims);
}

static void arg_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[0]);
}

/* x [outer,n,inner] with n > 0 -> y [outer,inner] */
#define DEFINE_ARG(T)                                                                                                 \
    static void arg_##T(int64_t *y, const T *x, int64_t outer, int64_t n, int64_t inner, gboolean min, gboolean last) \
    {                                                                                                                 \
        for (int64_t o = 0; o < outer; o++, x += n * inner, y += inner) {                                             \
            for (int64_t i = 0; i < inner; i++)                                                                       \
                y[i] = 0;                                                                                             \
            for (int64_t k = 1; k < n; k++)                                                                           \
                for (int64_t i = 0; i < inner; i++) {                                                                 \
                    T a = x[k * inner + i], b = x[y[i] * inner + i];                                                  \
                    gboolean same = a == b || (a != a && b != b);                                                     \
                    if (same ? last : b == b && (a != a || (min ? a < b : a > b)))                                    \
                        y[i] = k;                                                                                     \
                }                                                                                                     \
        }                                                                                                             \
    }
DEFINE_ARG(float)
DEFINE_ARG(double)
DEFINE_ARG(int8_t)
DEFINE_ARG(uint8_t)
DEFINE_ARG(int16_t)
DEFINE_ARG(uint16_t)
DEFINE_ARG(int32_t)
DEFINE_ARG(uint32_t)
DEFINE_ARG(int64_t)
DEFINE_ARG(uint64_t)

static void arg_eval(HnEval *e, gboolean min)
{
    const HnArg *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t dims[HN_MAX_RANK];
    int axis = hn_eval_axis(e, p->axis, x->ndim), rank = 0;
    if (axis < 0)
        return;
    for (int a = 0; a < x->ndim; a++)
        if (a != axis)
            dims[rank++] = x->dims[a];
        else if (p->keepdims)
            dims[rank++] = 1;
    int64_t *y = hn_eval_out(e, 0, HN_I64, rank, dims);
    if (y == NULL || e->out[0]->n == 0)
        return;
    int64_t outer = hn_span(x->dims, 0, axis), n = x->dims[axis], inner = hn_span(x->dims, axis + 1, x->ndim);
    if (n == 0) {
        hn_eval_fail(e, HN_ERROR_VALUE, "axis %d is empty and has no extreme", axis);
        return;
    }
#define RUN(T) arg_##T(y, x->data, outer, n, inner, min, p->last);
    HN_FOR_NUM(x->dtype, RUN)
#undef RUN
}

static void argmax_ref(HnEval *e)
{
    arg_eval(e, FALSE);
}

static void argmin_ref(HnEval *e)
{
    arg_eval(e, TRUE);
}

/* Before opset 12 only the first of equals could be had: the last is the first from the other end. */
static void arg_unbind(HnUnbind *u)
{
    const HnArg *p = u->params;
    if (!hn_unbind_below(u, 12) || !p->last)
        return;
    HnValue *x = hn_unbind_in(u, 0), *axis = hn_unbind_int(u, p->axis);
    HnValue *in[] = { x, hn_unbind_int(u, -1), hn_unbind_int(u, INT64_MIN), axis, hn_unbind_int(u, -1) };
    HnValue *back = hn_node_out(hn_unbind_node(u, "Slice", 5, in, 1), 0);
    HnNode *n = hn_unbind_node(u, u->node->op_type, 1, &back, 1);
    hn_node_set_int(n, "axis", p->axis);
    hn_node_set_int(n, "keepdims", p->keepdims);
    HnValue *size = hn_unbind_size(u, x, p->axis);
    HnValue *last = hn_unbind_reshape(u, hn_unbind_op2(u, "Sub", size, hn_unbind_int(u, 1)), NULL, 0);
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Sub", last, hn_node_out(n, 0)));
}

#define ARG_RECORD                                                                                 \
    .flags = HN_OP_HALF_VIA_F32, .since = { 1, 11, 12, 13 }, .in = "T", .out = "i", .T = HN_T_NUM, \
    .params_size = sizeof(HnArg), .bind = arg_bind, .infer = arg_infer, .cost = arg_cost

void hn_arg_batch(HnBatch *b)
{
    const HnArg *p = b->params;
    const int a = hn_batch_axis(p->axis, hn_batch_rank_was(b, 0));
    HnBatchReduced r = { .keepdims = p->keepdims, .one = TRUE };
    if (a < 0) {
        hn_batch_fail(b, "its axis is not known");
        return;
    }
    r.mark[a] = TRUE;
    hn_batch_reduce(b, &r);
}

const HnOp hn_op_argmax = {
    .name = "ArgMax",
    .unbind = arg_unbind,
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }, { "select_last_index", HN_ATTR_INT, .since = 12 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    ARG_RECORD,
    .ref = argmax_ref,
    .batch = hn_arg_batch,
};

const HnOp hn_op_argmin = {
    .name = "ArgMin",
    .unbind = arg_unbind,
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }, { "select_last_index", HN_ATTR_INT, .since = 12 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    ARG_RECORD,
    .ref = argmin_ref,
    .batch = hn_arg_batch,
};
