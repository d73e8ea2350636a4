/*
 * ConvInteger and QLinearConv: convolutions of 8-bit elements, summed in 32 bits that wrap. Padding is the zero point,
 * that is a true zero.
 */
#include <math.h>

#include "op/batch.h"
#include "op/conv.h"
#include "op/index.h"

static void convinteger_infer(HnInfer *x)
{
    hn_conv_infer(x, 0, 1, HN_I32);
}

static void qlinearconv_infer(HnInfer *x)
{
    hn_conv_infer(x, 0, 3, hn_infer_dtype(x, 7));
}

static void cost_of(const HnInfer *x, HnCost *c, int weights)
{
    double taps = 1;
    for (int i = 1; i < hn_infer_rank(x, weights); i++)
        taps *= (double)hn_infer_dim(x, weights, i).n;
    c->flops = 2 * hn_type_count(x->out[0]) * taps;
}

static void convinteger_cost(const HnInfer *x, HnCost *c)
{
    cost_of(x, c, 1);
}

static void qlinearconv_cost(const HnInfer *x, HnCost *c)
{
    cost_of(x, c, 3);
}

static gboolean is_byte(const HnTensor *t)
{
    return t->dtype == HN_U8 || t->dtype == HN_I8;
}

/* A scalar, or one element per output channel where `channels` is not 0. */
static gboolean check_scale(HnEval *e, const HnTensor *t, int64_t channels, const char *what)
{
    if (t == NULL || t->n == 1 || (channels > 0 && t->ndim == 1 && t->n == channels))
        return TRUE;
    hn_eval_fail(e, HN_ERROR_SHAPE, "the %s has %" PRId64 " elements", what, t->n);
    return FALSE;
}

/* Elements less their zero point (NULL: 0), which belongs to blocks of `block` elements where it has several. */
static int32_t *centred(HnEval *e, const HnTensor *t, const HnTensor *zero, int64_t block)
{
    int32_t *v = hn_eval_scratch(e, t->n, sizeof *v);
    for (int64_t i = 0; v != NULL && i < t->n; i += block) {
        int32_t z = zero != NULL ? (int32_t)hn_tensor_get_i64(zero, zero->n > 1 ? i / block : 0) : 0;
        if (t->dtype == HN_U8)
            for (int64_t k = i; k < i + block; k++)
                v[k] = ((const uint8_t *)t->data)[k] - z;
        else
            for (int64_t k = i; k < i + block; k++)
                v[k] = ((const int8_t *)t->data)[k] - z;
    }
    return v;
}

static gboolean run(HnEval *e, const HnConvPlan *plan, const HnTensor *x, const HnTensor *x_zero, const HnTensor *w,
                    const HnTensor *w_zero, const HnTensor *bias, int32_t *y)
{
    int64_t channels = w->dims[0];
    if (!is_byte(x) || !is_byte(w)) {
        hn_eval_fail(e, HN_ERROR_TYPE, "input and weights are not of 8 bits");
        return FALSE;
    }
    if (!check_scale(e, x_zero, 0, "input's zero point") || !check_scale(e, w_zero, channels, "weights' zero point"))
        return FALSE;
    if (bias != NULL && (bias->dtype != HN_I32 || bias->ndim != 1 || bias->n != channels)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the bias does not have one i32 element per output channel");
        return FALSE;
    }
    int32_t *xc = centred(e, x, x_zero, MAX(1, x->n)), *wc = centred(e, w, w_zero, w->n > 0 ? w->n / channels : 1);
    gboolean done =
        xc != NULL && wc != NULL && hn_conv_run(e, plan, HN_I32, xc, wc, bias != NULL ? bias->data : NULL, y);
    hn_eval_scratch_free(e, xc);
    hn_eval_scratch_free(e, wc);
    return done;
}

static void convinteger_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *w = hn_eval_in(e, 1);
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK];
    if (!hn_conv_plan(e->params, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error))
        return;
    hn_conv_out_dims(&plan, FALSE, dims);
    int32_t *y = hn_eval_out(e, 0, HN_I32, x->ndim, dims);
    if (y != NULL)
        run(e, &plan, x, hn_eval_in(e, 2), w, hn_eval_in(e, 3), NULL, y);
}

/* y = saturated(round_half_even(sum * scale) + zero), elements of one channel's plane */
static void requantize(HnDtype dtype, void *y, const int32_t *sum, int64_t n, float scale, int32_t zero)
{
    double lo = dtype == HN_U8 ? 0 : -128, hi = dtype == HN_U8 ? 255 : 127;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)nearbyintf((float)sum[i] * scale) + zero; /* in single precision, as others do */
        v = v >= hi ? hi : v > lo ? v : lo;                          /* NaN goes to lo */
        if (dtype == HN_U8)
            ((uint8_t *)y)[i] = (uint8_t)v;
        else
            ((int8_t *)y)[i] = (int8_t)v;
    }
}

static void qlinearconv_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *w = hn_eval_in(e, 3), *zero = hn_eval_in(e, 7);
    const HnTensor *x_scale = hn_eval_in(e, 1), *w_scale = hn_eval_in(e, 4), *y_scale = hn_eval_in(e, 6);
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK], n;
    if (!hn_conv_plan(e->params, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error))
        return;
    hn_conv_out_dims(&plan, FALSE, dims);
    if (!is_byte(zero) || x_scale->dtype != HN_F32 || w_scale->dtype != HN_F32 || y_scale->dtype != HN_F32) {
        hn_eval_fail(e, HN_ERROR_TYPE, "a scale is not f32 or the output not of 8 bits");
        return;
    }
    if (!check_scale(e, x_scale, 0, "input's scale") || !check_scale(e, w_scale, w->dims[0], "weights' scale") ||
        !check_scale(e, y_scale, 0, "output's scale") || !check_scale(e, zero, 0, "output's zero point"))
        return;
    char *y = hn_eval_out(e, 0, zero->dtype, x->ndim, dims);
    if (y == NULL || !hn_dims_count(x->ndim, dims, &n))
        return;
    int32_t *sum = hn_eval_scratch(e, n, sizeof *sum);
    if (sum != NULL && run(e, &plan, x, hn_eval_in(e, 2), w, hn_eval_in(e, 5), hn_eval_in(e, 8), sum)) {
        const float *ws = w_scale->data, xs = *(const float *)x_scale->data, ys = *(const float *)y_scale->data;
        for (int64_t i = 0; n > 0 && i < plan.batch * dims[1]; i++) {
            int64_t from = i * plan.y_plane;
            requantize(zero->dtype, y + from, sum + from, plan.y_plane, xs * ws[w_scale->n > 1 ? i % dims[1] : 0] / ys,
                       (int32_t)hn_tensor_get_i64(zero, 0));
        }
    }
    hn_eval_scratch_free(e, sum);
}

const HnOp hn_op_convinteger = {
    .name = "ConvInteger",
    .flags = HN_OP_INTEGERS,
    .since = { 10 },
    .in = "TUTU",
    .out = "W",
    .T = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .U = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .W = HN_BIT(HN_I32),
    .min_in = 2,
    .params_size = sizeof(HnConv),
    .bind = hn_conv_bind,
    .infer = convinteger_infer,
    .cost = convinteger_cost,
    .ref = convinteger_ref,
    .batch = hn_batch_first,
};

const HnOp hn_op_qlinearconv = {
    .name = "QLinearConv",
    .flags = HN_OP_INTEGERS,
    .since = { 10 },
    .in = "TfTUfUfVW",
    .out = "V",
    .T = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .U = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .V = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .W = HN_BIT(HN_I32),
    .min_in = 8,
    .params_size = sizeof(HnConv),
    .bind = hn_conv_bind,
    .infer = qlinearconv_infer,
    .cost = qlinearconv_cost,
    .ref = qlinearconv_ref,
    .batch = hn_batch_first,
};
