/*
 * CausalConvWithState: y[t] = sum of w[j] x[t - k + 1 + j] + bias of each channel by itself, where a state holds the k
 * - 1 places in front of x; SiLU behind it where asked for. The new state is the last k - 1 places.
 */
#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/types.h"
#include "op/unbind.h"

enum { CC_X, CC_WEIGHT, CC_BIAS, CC_STATE };

typedef struct {
    gboolean silu;
} HnCausalConv;

static void causalconv_bind(HnBind *b, void *params)
{
    static const char *const words[] = { "none", "silu", "swish", NULL };
    ((HnCausalConv *)params)->silu = hn_bind_word(b, "activation", words, 0) > 0;
}

static void check_rank(HnInfer *x, int i, int rank)
{
    const int r = hn_infer_rank(x, i);
    if (r >= 0 && r != rank)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions instead of %d", i, r, rank);
}

static void check_dim(HnInfer *x, int i, int axis, HnDim want)
{
    if (hn_infer_has(x, i) && hn_infer_rank(x, i) > axis && hn_dim_differ(hn_infer_dim(x, i, axis), want))
        hn_infer_fail(x, HN_ERROR_SHAPE, "axis %d of input %d is of another size", axis, i);
}

static void causalconv_infer(HnInfer *x)
{
    check_rank(x, CC_X, 3);
    check_rank(x, CC_WEIGHT, 3);
    check_rank(x, CC_BIAS, 1);
    check_rank(x, CC_STATE, 3);
    hn_infer_out_like(x, 0, 0);
    if (x->error != NULL)
        return;
    const gboolean known = hn_infer_rank(x, CC_X) == 3, taps = hn_infer_rank(x, CC_WEIGHT) == 3;
    HnDim dims[3] = { hn_dim_unknown(), hn_dim_unknown(), hn_dim_unknown() };
    if (known) {
        dims[0] = hn_infer_dim(x, CC_X, 0);
        dims[1] = hn_infer_dim(x, CC_X, 1);
    }
    if (taps) {
        dims[2] = hn_dim_sub(hn_infer_dim(x, CC_WEIGHT, 2), hn_dim(1));
        check_dim(x, CC_WEIGHT, 0, dims[1]);
        check_dim(x, CC_WEIGHT, 1, hn_dim(1));
    }
    if (dims[2].known && dims[2].n < 0)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the kernel is empty");
    check_dim(x, CC_BIAS, 0, dims[1]);
    for (int a = 0; a < 3; a++)
        check_dim(x, CC_STATE, a, dims[a]);
    hn_infer_out(x, 1, hn_infer_dtype(x, 0), 3, dims);
}

static gboolean fits(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, CC_X), *w = hn_eval_in(e, CC_WEIGHT), *b = hn_eval_in(e, CC_BIAS),
                   *s = hn_eval_in(e, CC_STATE);
    gboolean ok = x->ndim == 3 && w->ndim == 3 && w->dims[0] == x->dims[1] && w->dims[1] == 1 && w->dims[2] >= 1;
    ok = ok && (b == NULL || (b->ndim == 1 && b->dims[0] == x->dims[1]));
    ok = ok && (s == NULL ||
                (s->ndim == 3 && s->dims[0] == x->dims[0] && s->dims[1] == x->dims[1] && s->dims[2] == w->dims[2] - 1));
    if (!ok)
        hn_eval_fail(e, HN_ERROR_SHAPE, "input, kernel, bias and state do not fit");
    return ok;
}

/* Place t of a row with the state in front of it. */
static double place(const HnTensor *x, const HnTensor *s, int64_t row, int64_t back, int64_t t)
{
    if (t >= back)
        return hn_tensor_get_f64(x, row * x->dims[2] + t - back);
    return s != NULL ? hn_tensor_get_f64(s, row * back + t) : 0;
}

static void causalconv_ref(HnEval *e)
{
    const HnCausalConv *p = e->params;
    if (!fits(e))
        return;
    const HnTensor *x = e->in[CC_X], *w = e->in[CC_WEIGHT], *b = hn_eval_in(e, CC_BIAS), *s = hn_eval_in(e, CC_STATE);
    const int64_t n = x->dims[2], k = w->dims[2], channels = x->dims[1], rows = x->dims[0] * channels;
    if (hn_eval_out_like(e, 0, x) == NULL ||
        hn_eval_out(e, 1, x->dtype, 3, (int64_t[]){ x->dims[0], channels, k - 1 }) == NULL)
        return;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t t = 0; t < n; t++) {
            double sum = b != NULL ? hn_tensor_get_f64(b, r % channels) : 0;
            for (int64_t j = 0; j < k; j++)
                sum += hn_tensor_get_f64(w, r % channels * k + j) * place(x, s, r, k - 1, t + j);
            hn_tensor_set_f64(e->out[0], r * n + t, p->silu ? sum / (1 + exp(-sum)) : sum);
        }
        for (int64_t j = 0; j < k - 1; j++)
            hn_tensor_set_f64(e->out[1], r * (k - 1) + j, place(x, s, r, k - 1, n + j));
    }
}

static void causalconv_cost(const HnInfer *x, HnCost *c)
{
    if (x->in[CC_WEIGHT] != NULL && hn_infer_rank(x, CC_WEIGHT) == 3)
        c->flops = 2 * hn_type_count(x->out[0]) * (double)hn_infer_dim(x, CC_WEIGHT, 2).n;
}

/* Zeros in the place of a state that is not given: its shape follows from inputs 0 and 1. */
static HnValue *no_state(HnUnbind *u, HnDtype dtype)
{
    HnValue *parts[] = { hn_unbind_shape(u, hn_unbind_in(u, CC_X), 0, 2),
                         hn_unbind_op2(u, "Sub", hn_unbind_size(u, hn_unbind_in(u, CC_WEIGHT), 2),
                                       hn_unbind_int(u, 1)) };
    HnNode *n = hn_unbind_node(u, "ConstantOfShape", 1, (HnValue *[]){ hn_unbind_concat(u, 2, parts, 0) }, 1);
    HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
    a->t = hn_tensor_new(dtype, 1, (int64_t[]){ 1 }, NULL, NULL);
    hn_node_set_attr(n, a);
    return hn_node_out(n, 0);
}

/* Before opset 27: Concat, a depthwise Conv, Swish, and a Slice. */
static void causalconv_unbind(HnUnbind *u)
{
    const HnCausalConv *p = u->params;
    HnDtype dtype;
    if (u->to >= 27)
        return;
    const int64_t channels = hn_unbind_dim(u, CC_WEIGHT, 0), taps = hn_unbind_dim(u, CC_WEIGHT, 2);
    if (channels < 0 || taps < 0) {
        hn_unbind_refuse(u, "the kernel is of a size that is not known");
        return;
    }
    HnValue *real = hn_unbind_real(u, CC_X, &dtype), *in[3];
    if (real == NULL)
        return;
    HnValue *state = hn_unbind_in(u, CC_STATE) != NULL ? hn_unbind_real(u, CC_STATE, &dtype) : no_state(u, dtype);
    in[0] = hn_unbind_concat(u, 2, (HnValue *[]){ state, real }, 2);
    in[1] = hn_unbind_real(u, CC_WEIGHT, &dtype);
    in[2] = hn_unbind_in(u, CC_BIAS) != NULL ? hn_unbind_real(u, CC_BIAS, &dtype) : NULL;
    HnNode *conv = hn_unbind_node(u, "Conv", in[2] != NULL ? 3 : 2, in, 1);
    hn_node_set_int(conv, "group", channels);
    HnValue *y = hn_node_out(conv, 0);
    hn_unbind_take_real(u, 0, p->silu ? hn_unbind_op1(u, "Swish", y) : y);
    if (hn_unbind_wants(u, 1))
        hn_unbind_take_real(
            u, 1, taps > 1 ? hn_unbind_slice(u, in[0], 2, 1 - taps, INT64_MAX) : hn_unbind_slice(u, in[0], 2, 0, 0));
}

void hn_causalconv_batch(HnBatch *b)
{
    hn_batch_first_of(b, 1 | 1 << 3);
}

const HnOp hn_op_causalconvwithstate = {
    .name = "CausalConvWithState",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 27 },
    .in = "TTTT",
    .out = "TT",
    .T = HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16),
    .min_in = 2,
    .unbind = causalconv_unbind,
    .params_size = sizeof(HnCausalConv),
    .bind = causalconv_bind,
    .infer = causalconv_infer,
    .cost = causalconv_cost,
    .ref = causalconv_ref,
    .batch = hn_causalconv_batch,
    .range = { .kind = HN_R_PRODUCTS, .addends = 1 << CC_BIAS },
};
