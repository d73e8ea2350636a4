/*
 * PRelu: x where it is positive, slope * x elsewhere. The slope broadcasts to x, not the reverse. Before opset 7 it had
 * one element, or one for each channel (axis 1).
 */
#include <string.h>

#include "op/elementwise.h"
#include "op/tape.h"

typedef struct {
    gboolean channels; /* before opset 7 */
} HnPRelu;

static void prelu_bind(HnBind *b, void *params)
{
    HnPRelu *p = params;
    p->channels = b->version < 7;
}

#define PRELU_F(T, W, p, q) ((p) >= 0 ? (p) : (p) * (q))
#define PRELU_S(T, W, p, q) ((p) >= 0 ? (W)(p) : (W)(p) * (W)(q))
#define PRELU_U(T, W, p, q) ((void)(q), (p))

HN_BINARY_FLOATS(prelu, HN_SAME, PRELU_F)
HN_BINARY_LOOP(prelu_i32, int32_t, uint32_t, int32_t, PRELU_S)
HN_BINARY_LOOP(prelu_i64, int64_t, uint64_t, int64_t, PRELU_S)
HN_BINARY_LOOP(prelu_u32, uint32_t, uint32_t, uint32_t, PRELU_U)
HN_BINARY_LOOP(prelu_u64, uint64_t, uint64_t, uint64_t, PRELU_U)

static const HnBinaryFn prelu_fns[HN_DTYPE_COUNT] = {
    HN_FLOAT_ENTRIES(prelu), [HN_I32] = prelu_i32, [HN_I64] = prelu_i64, [HN_U32] = prelu_u32, [HN_U64] = prelu_u64
};

/* Axis of x that the slope's first axis lies against; negative: it has more axes than x. */
static int slope_axis(const HnPRelu *p, int rank, int slope_rank)
{
    return p->channels && slope_rank == 1 && rank >= 2 ? 1 : rank - slope_rank;
}

static void prelu_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0), slope_rank = hn_infer_rank(x, 1);
    if (rank >= 0 && slope_rank >= 0) {
        int first = slope_axis(x->params, rank, slope_rank);
        for (int i = 0; i < slope_rank; i++) {
            HnDim d = hn_infer_dim(x, 1, i);
            if (!hn_dim_is(d, 1) && (first + i < 0 || hn_dim_differ(d, hn_infer_dim(x, 0, first + i)))) {
                hn_infer_fail(x, HN_ERROR_SHAPE, "axis %d of the slope does not broadcast to the input", i);
                return;
            }
        }
    }
    hn_infer_same(x);
}

static void prelu_ref(HnEval *e)
{
    const HnTensor *t = hn_eval_in(e, 0), *slope = hn_eval_in(e, 1);
    HnBinaryFn fn = (unsigned)t->dtype < HN_DTYPE_COUNT ? prelu_fns[t->dtype] : NULL;
    int64_t strides[2][HN_MAX_RANK] = { { 0 } }, s = 1;
    if (fn == NULL || slope->dtype != t->dtype) {
        hn_eval_fail_type(e, fn == NULL ? 0 : 1);
        return;
    }
    if (t->ndim > HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", t->ndim, HN_MAX_RANK);
        return;
    }
    hn_broadcast_strides(t, t->ndim, strides[0]);
    int first = slope_axis(e->params, t->ndim, slope->ndim);
    for (int i = slope->ndim - 1; i >= 0; i--) {
        if (slope->dims[i] == 1)
            continue;
        if (first + i < 0 || slope->dims[i] != t->dims[first + i]) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "axis %d of the slope does not broadcast to the input", i);
            return;
        }
        strides[1][first + i] = s;
        s *= slope->dims[i];
    }
    void *z = hn_eval_out_like(e, 0, t);
    size_t size = hn_dtype_size(t->dtype);
    if (z != NULL)
        hn_binary_apply(fn, t->ndim, t->dims, z, size, t->data, size, slope->data, size, strides);
}

static void prelu_grad(HnTape *t)
{
    hn_tape_operand(t, 0, "Where(x >= 0, dy, dy * x1)");
    hn_tape_operand(t, 1, "Where(x >= 0, 0, dy * x)");
}

const HnOp hn_op_prelu = {
    .name = "PRelu",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_HALF_VIA_F32,
    .since = { 1, 6, 7, 9, 16 },
    .lacks =
        HN_LACKS({ 'T', 9, 0, HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64) }, HN_BF16_SINCE(16)),
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS | HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64),
    .params_size = sizeof(HnPRelu),
    .bind = prelu_bind,
    .infer = prelu_infer,
    .cost = hn_cost_elementwise,
    .ref = prelu_ref,
    .grad = prelu_grad,
    .quant = { .kind = HN_Q_ELEMENTWISE },
    .trained = 1 << 1,
};
