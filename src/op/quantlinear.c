#include "op/quantlinear.h"

#include <math.h>

#include "op/batch.h"
#include "op/index.h"

#define INPUT(e, name) hn_eval_in(e, HN_QUANT_##name)

static void product_bind(HnBind *b, HnQuantProduct *p)
{
    p->lo = hn_bind_float(b, "lo", -INFINITY);
    p->hi = hn_bind_float(b, "hi", INFINITY);
}

static void quantconv_bind(HnBind *b, void *params)
{
    HnQuantProduct *p = params;
    hn_conv_bind(b, &p->conv);
    product_bind(b, p);
}

static void quantmatmul_bind(HnBind *b, void *params)
{
    HnQuantProduct *p = params;
    p->turned = hn_bind_bool(b, "turned", FALSE);
    product_bind(b, p);
}

static HnDtype result_type(const HnInfer *x)
{
    return !hn_infer_has(x, HN_QUANT_Y_SCALE)  ? HN_F32
           : !hn_infer_has(x, HN_QUANT_Y_ZERO) ? HN_U8
                                               : hn_infer_dtype(x, HN_QUANT_Y_ZERO);
}

static void quantconv_infer(HnInfer *x)
{
    hn_conv_infer(x, HN_QUANT_X, HN_QUANT_W, result_type(x));
}

void hn_infer_matrix(HnInfer *x, int w)
{
    const int of = hn_infer_rank(x, w);
    gboolean fits = of != 0 && of != 1;
    for (int i = 2; i < of; i++)
        fits = fits && !hn_dim_differ(hn_infer_dim(x, w, i), hn_dim(1));
    if (!fits)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the weights are no matrix");
}

void hn_linear_rows_infer(HnInfer *x, int rows, int64_t axis, int w, gboolean turned, HnDtype result)
{
    const int rank = hn_infer_rank(x, rows), of = hn_infer_rank(x, w);
    const int64_t at = axis < 0 ? rank + axis : axis;
    HnDim dims[HN_MAX_RANK];
    hn_infer_matrix(x, w);
    if (rank >= 0 && (at < 0 || at >= rank))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has no axis %" PRId64, axis);
    for (int64_t i = at + 1; i < rank; i++)
        if (hn_dim_differ(hn_infer_dim(x, rows, (int)i), hn_dim(1)))
            hn_infer_fail(x, HN_ERROR_SHAPE, "the axes of input 0 behind axis %" PRId64 " are not of size 1", axis);
    if (rank > at && at >= 0 && of >= 2 &&
        hn_dim_differ(hn_infer_dim(x, rows, (int)at), hn_infer_dim(x, w, turned ? 1 : 0)))
        hn_infer_fail(x, HN_ERROR_SHAPE, "the inner sizes differ");
    if (rank <= 0 || x->error != NULL) {
        hn_infer_out_unknown(x, 0, result);
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = hn_infer_dim(x, rows, i);
    dims[at] = of >= 2 ? hn_infer_dim(x, w, turned ? 0 : 1) : hn_dim_unknown();
    hn_infer_out(x, 0, result, rank, dims);
}

void hn_linear_rows_cost(const HnInfer *x, HnCost *c, int w, gboolean turned)
{
    c->flops = 2 * hn_type_count(x->out[0]) * (double)hn_infer_dim(x, w, turned ? 1 : 0).n;
}

static void quantmatmul_infer(HnInfer *x)
{
    hn_linear_rows_infer(x, HN_QUANT_X, -1, HN_QUANT_W, ((const HnQuantProduct *)x->params)->turned, result_type(x));
}

static void quantconv_cost(const HnInfer *x, HnCost *c)
{
    double taps = 1;
    for (int i = 1; i < hn_infer_rank(x, HN_QUANT_W); i++)
        taps *= (double)hn_infer_dim(x, HN_QUANT_W, i).n;
    c->flops = 2 * hn_type_count(x->out[0]) * taps;
}

static void quantmatmul_cost(const HnInfer *x, HnCost *c)
{
    hn_linear_rows_cost(x, c, HN_QUANT_W, ((const HnQuantProduct *)x->params)->turned);
}

/* --- ref --------------------------------------------------------------------------------------------------------- */

/* Elements less their zero point: one, or one for each block of elements or, with block 0, each of `cols` columns. */
static int32_t *centred(HnEval *e, const HnTensor *t, const HnTensor *zero, int64_t block, int64_t cols)
{
    int32_t *v = hn_eval_scratch(e, t->n, sizeof *v);
    for (int64_t i = 0; v != NULL && i < t->n; i++) {
        const int64_t z = zero == NULL || zero->n == 1 ? 0 : block > 0 ? i / block : i % cols;
        v[i] = (int32_t)(hn_tensor_get_i64(t, i) - (zero != NULL ? hn_tensor_get_i64(zero, z) : 0));
    }
    return v;
}

static gboolean fits(const HnTensor *t, int64_t channels)
{
    return t == NULL || t->n == 1 || (t->ndim == 1 && t->n == channels);
}

static gboolean check(HnEval *e, int64_t channels)
{
    const HnTensor *b = INPUT(e, BIAS), *ys = INPUT(e, Y_SCALE), *yz = INPUT(e, Y_ZERO), *wz = INPUT(e, W_ZERO);
    const HnTensor *xz = INPUT(e, X_ZERO);
    const gboolean data = fits(INPUT(e, X_SCALE), 1) && fits(xz, 1) && fits(ys, 1) && fits(yz, 1);
    if (!data || !fits(INPUT(e, W_SCALE), channels) || !fits(wz, channels))
        hn_eval_fail(e, HN_ERROR_SHAPE, "a scale or zero point has another number of elements");
    else if (b != NULL && (b->ndim != 1 || b->n != channels || (b->dtype != HN_I32 && b->dtype != HN_F32)))
        hn_eval_fail(e, HN_ERROR_SHAPE, "the bias does not have one i32 or f32 element per output channel");
    return e->error == NULL;
}

HnQuantBounds hn_quant_bounds(const HnQuantProduct *p, HnDtype dtype, float scale, int zero)
{
    const float lowest = (float)((dtype == HN_U8 ? 0 : -128) - zero), highest = lowest + 255;
    const float lo = nearbyintf(p->lo / scale), hi = nearbyintf(p->hi / scale);
    return (HnQuantBounds){ lo > lowest ? MIN(lo, highest) : lowest, hi < highest ? MAX(hi, lowest) : highest };
}

/* Element i is of channel i / inner % channels. */
static void finish(HnEval *e, const int32_t *sum, void *y, HnDtype dtype, int64_t n, int64_t channels, int64_t inner)
{
    const HnQuantProduct *p = e->params;
    const HnTensor *b = INPUT(e, BIAS), *yz = INPUT(e, Y_ZERO), *ws = INPUT(e, W_SCALE);
    const float xs = *(const float *)INPUT(e, X_SCALE)->data;
    const float ys = INPUT(e, Y_SCALE) != NULL ? *(const float *)INPUT(e, Y_SCALE)->data : 1;
    const int zero = yz != NULL ? (int)hn_tensor_get_i64(yz, 0) : 0;
    const float *bias = b != NULL && b->dtype == HN_F32 ? b->data : NULL;
    const HnQuantBounds bound = hn_quant_bounds(p, dtype, ys, zero);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i / inner % channels;
        const float scale = xs * ((const float *)ws->data)[ws->n > 1 ? c : 0];
        if (dtype == HN_F32) {
            float v = (float)sum[i] * scale;
            v = bias != NULL ? v + bias[c] : v;
            v = p->lo > v ? p->lo : v;
            ((float *)y)[i] = p->hi < v ? p->hi : v;
            continue;
        }
        float v = (float)sum[i] * (scale / ys);
        v = bias != NULL ? v + bias[c] / ys : v;
        v = v > bound.lo ? v : bound.lo; /* which NaN becomes */
        v = v < bound.hi ? v : bound.hi;
        const int byte = (int)nearbyintf(v) + zero;
        if (dtype == HN_U8)
            ((uint8_t *)y)[i] = (uint8_t)byte;
        else
            ((int8_t *)y)[i] = (int8_t)byte;
    }
}

static HnDtype eval_type(const HnEval *e)
{
    return INPUT(e, Y_SCALE) == NULL ? HN_F32 : INPUT(e, Y_ZERO) == NULL ? HN_U8 : INPUT(e, Y_ZERO)->dtype;
}

static void quantconv_ref(HnEval *e)
{
    const HnQuantProduct *p = e->params;
    const HnTensor *x = INPUT(e, X), *w = INPUT(e, W), *b = INPUT(e, BIAS);
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK], n;
    if (!hn_conv_plan(&p->conv, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error) || !check(e, w->dims[0]))
        return;
    hn_conv_out_dims(&plan, FALSE, dims);
    const HnDtype dtype = eval_type(e);
    void *y = hn_eval_out(e, 0, dtype, x->ndim, dims);
    if (y == NULL || !hn_dims_count(x->ndim, dims, &n))
        return;
    int32_t *sum = hn_eval_scratch(e, n, sizeof *sum);
    int32_t *xc = sum != NULL ? centred(e, x, INPUT(e, X_ZERO), MAX(1, x->n), 1) : NULL;
    int32_t *wc = xc != NULL ? centred(e, w, INPUT(e, W_ZERO), MAX(1, w->n / MAX(1, w->dims[0])), 1) : NULL;
    if (wc != NULL && hn_conv_run(e, &plan, HN_I32, xc, wc, b != NULL && b->dtype == HN_I32 ? b->data : NULL, sum))
        finish(e, sum, y, dtype, n, dims[1], MAX(1, plan.y_plane));
    hn_eval_scratch_free(e, wc);
    hn_eval_scratch_free(e, xc);
    hn_eval_scratch_free(e, sum);
}

static void multiply(const HnQuantProduct *p, const int32_t *x, const int32_t *w, const int32_t *bias, int64_t rows,
                     int64_t k, int64_t n, int32_t *sum)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < n; c++) {
            uint32_t v = bias != NULL ? (uint32_t)bias[c] : 0;
            for (int64_t i = 0; i < k; i++)
                v += (uint32_t)x[r * k + i] * (uint32_t)w[p->turned ? c * k + i : i * n + c];
            sum[r * n + c] = (int32_t)v;
        }
}

static void quantmatmul_ref(HnEval *e)
{
    const HnQuantProduct *p = e->params;
    const HnTensor *x = INPUT(e, X), *w = INPUT(e, W), *b = INPUT(e, BIAS);
    int64_t dims[HN_MAX_RANK], count;
    if (x->ndim < 1 || w->ndim != 2 || x->dims[x->ndim - 1] != w->dims[p->turned ? 1 : 0]) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the inner sizes differ");
        return;
    }
    const int64_t k = w->dims[p->turned ? 1 : 0], n = w->dims[p->turned ? 0 : 1];
    if (!check(e, n))
        return;
    for (int i = 0; i < x->ndim; i++)
        dims[i] = i < x->ndim - 1 ? x->dims[i] : n;
    const HnDtype dtype = eval_type(e);
    void *y = hn_eval_out(e, 0, dtype, x->ndim, dims);
    if (y == NULL || !hn_dims_count(x->ndim, dims, &count) || count == 0)
        return;
    int32_t *sum = hn_eval_scratch(e, count, sizeof *sum);
    int32_t *xc = sum != NULL ? centred(e, x, INPUT(e, X_ZERO), MAX(1, x->n), 1) : NULL;
    int32_t *wc = xc != NULL ? centred(e, w, INPUT(e, W_ZERO), p->turned ? MAX(1, k) : 0, n) : NULL;
    if (wc != NULL) {
        multiply(p, xc, wc, b != NULL && b->dtype == HN_I32 ? b->data : NULL, count / n, k, n, sum);
        finish(e, sum, y, dtype, count, n, 1);
    }
    hn_eval_scratch_free(e, wc);
    hn_eval_scratch_free(e, xc);
    hn_eval_scratch_free(e, sum);
}

#define BYTES (HN_BIT(HN_I8) | HN_BIT(HN_U8))

const HnOp hn_op_quantconv = {
    .name = "QuantConv",
    .domain = HN_DOMAIN_INTERNAL,
    .since = { 1 },
    .in = "TfTUfU.fV",
    .out = ".",
    .T = BYTES,
    .U = BYTES,
    .V = BYTES,
    .min_in = 5,
    .params_size = sizeof(HnQuantProduct),
    .bind = quantconv_bind,
    .infer = quantconv_infer,
    .cost = quantconv_cost,
    .ref = quantconv_ref,
    .batch = hn_batch_first,
};

const HnOp hn_op_quantmatmul = {
    .name = "QuantMatMul",
    .domain = HN_DOMAIN_INTERNAL,
    .since = { 1 },
    .in = "TfTUfU.fV",
    .out = ".",
    .T = BYTES,
    .U = BYTES,
    .V = BYTES,
    .min_in = 5,
    .params_size = sizeof(HnQuantProduct),
    .bind = quantmatmul_bind,
    .infer = quantmatmul_infer,
    .cost = quantmatmul_cost,
    .ref = quantmatmul_ref,
    .batch = hn_batch_rows,
};
