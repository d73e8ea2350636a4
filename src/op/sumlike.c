/*
 * SumLike (domain "hone"): sums of input 0 with the shape of input 1, which broadcasts to it: what the gradient of a
 * broadcast operand is. Of input 1 only the shape is read, so that it works where shapes are not known ahead.
 */
#include <string.h>

#include "op/elementwise.h"
#include "op/tape.h"

static void sumlike_infer(HnInfer *x)
{
    const int rx = hn_infer_rank(x, 0), rl = hn_infer_rank(x, 1);
    if (rx >= 0 && rl > rx)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%d axes cannot be summed to %d", rx, rl);
    for (int i = 0; i < rl && rx >= rl; i++) {
        const HnDim from = hn_infer_dim(x, 0, i + rx - rl), to = hn_infer_dim(x, 1, i);
        if (!hn_dim_is(to, 1) && hn_dim_differ(from, to) && !hn_dim_is(from, 1))
            hn_infer_fail(x, HN_ERROR_SHAPE, "axis %d cannot be summed to that size", i);
    }
    if (rl < 0)
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
    else
        hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 0), 1);
}

/* The shape of `like`, its axes laid against the last ones of x; FALSE: it does not broadcast to x. */
static gboolean fits(const HnTensor *x, const HnTensor *like, int64_t *strides)
{
    if (like->ndim > x->ndim)
        return FALSE;
    for (int i = 0; i < like->ndim; i++)
        if (like->dims[i] != 1 && like->dims[i] != x->dims[i + x->ndim - like->ndim])
            return FALSE;
    hn_broadcast_strides(like, x->ndim, strides);
    return TRUE;
}

static void sumlike_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *like = hn_eval_in(e, 1);
    int64_t strides[1][HN_MAX_RANK];
    if (!fits(x, like, strides[0])) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shape of input 1 does not broadcast to that of input 0");
        return;
    }
    void *y = hn_eval_out(e, 0, x->dtype, like->ndim, like->dims);
    double *sum = y != NULL ? hn_eval_scratch(e, like->n, sizeof(double)) : NULL;
    if (sum == NULL)
        return;
    memset(sum, 0, (size_t)like->n * sizeof *sum);
    HnBroadcast p;
    hn_broadcast_start(&p, x->ndim, x->dims, 1, strides);
    int64_t at = 0;
    if (x->n > 0)
        do {
            for (int64_t i = 0; i < p.n; i++)
                sum[p.off[0] + i * p.step[0]] += hn_tensor_get_f64(x, at++);
        } while (hn_broadcast_next(&p));
    if (x->dtype == HN_F32)
        for (int64_t i = 0; i < like->n; i++)
            ((float *)y)[i] = (float)sum[i];
    else
        memcpy(y, sum, (size_t)like->n * sizeof *sum);
    hn_eval_scratch_free(e, sum);
}

static void sumlike_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[0]);
}

static void sumlike_grad(HnTape *t)
{
    HnValue *x = hn_tape_in(t, 0);
    hn_tape_ends(t, 1);
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0,
                     hn_build_op2(t->build, "Expand", hn_tape_dy(t, 0), hn_build_shape(t->build, x, 0, INT64_MAX)));
}

const HnOp hn_op_sumlike = {
    .name = "SumLike",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS,
    .infer = sumlike_infer,
    .cost = sumlike_cost,
    .ref = sumlike_ref,
    .grad = sumlike_grad,
};
