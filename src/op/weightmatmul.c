#include "op/weightmatmul.h"

#include <string.h>

#include "op/batch.h"
#include "op/quantlinear.h"

static void weights_bind(HnBind *b, void *params)
{
    HnWeights *p = params;
    p->turned = hn_bind_bool(b, "turned", FALSE);
    p->block = hn_bind_int(b, "block", 0);
    if (p->block < 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'block' is %" PRId64, p->block);
}

static void matmul_bind(HnBind *b, void *params)
{
    weights_bind(b, params);
    ((HnWeights *)params)->axis = hn_bind_int(b, "axis", -1);
}

gboolean hn_scale_grid(const HnWeights *p, const HnTensor *w, const HnTensor *scale, HnScaleGrid *g)
{
    const int k = p->turned ? 1 : 0; /* the axis that blocks divide */
    *g = (HnScaleGrid){ 1, 0, 1, 0 };
    if (scale->n == 1)
        return TRUE;
    if (p->block == 0) {
        *(k == 1 ? &g->row_step : &g->col_step) = 1;
        return scale->ndim == 1 && scale->n == w->dims[1 - k];
    }
    *(k == 1 ? &g->col_block : &g->row_block) = p->block;
    if (scale->ndim != 2 || scale->dims[1 - k] != w->dims[1 - k] ||
        scale->dims[k] != w->dims[k] / p->block + (w->dims[k] % p->block != 0))
        return FALSE;
    g->row_step = scale->dims[1];
    g->col_step = 1;
    return TRUE;
}

gboolean hn_weights_fit(const HnWeights *p, const HnTensor *w, const HnTensor *scale, const HnTensor *zero,
                        const HnTensor *bias)
{
    HnScaleGrid g;
    return hn_scale_grid(p, w, scale, &g) && (zero == NULL || zero->n == scale->n) &&
           (bias == NULL || bias->n == w->dims[p->turned ? 0 : 1]);
}

static gboolean check(HnEval *e, const HnTensor *w, const HnTensor *scale, const HnTensor *zero, HnScaleGrid *g)
{
    if (w->ndim < 2 || w->n != w->dims[0] * w->dims[1])
        hn_eval_fail(e, HN_ERROR_SHAPE, "the weights are no matrix");
    else if (!hn_scale_grid(e->params, w, scale, g))
        hn_eval_fail(e, HN_ERROR_SHAPE, "the scale does not fit the weights");
    else if (zero != NULL && zero->n != scale->n)
        hn_eval_fail(e, HN_ERROR_SHAPE, "scale and zero point differ in shape");
    return e->error == NULL;
}

/* w[i] of column `col` and row `row`. */
static double weight(const HnTensor *w, const HnTensor *scale, const HnTensor *zero, const HnScaleGrid *g, int64_t row,
                     int64_t col)
{
    const int64_t at = hn_scale_at(g, row, col);
    const int64_t v = hn_tensor_get_i64(w, row * w->dims[1] + col) - (zero != NULL ? hn_tensor_get_i64(zero, at) : 0);
    return (double)((float)v * (float)hn_tensor_get_f64(scale, at));
}

/* --- WeightMatMul ------------------------------------------------------------------------------------------------- */

static void matmul_infer(HnInfer *x)
{
    const HnWeights *p = x->params;
    hn_linear_rows_infer(x, HN_WEIGHT_X, p->axis, HN_WEIGHT_W, p->turned, HN_F32);
}

static void matmul_cost(const HnInfer *x, HnCost *c)
{
    hn_linear_rows_cost(x, c, HN_WEIGHT_W, ((const HnWeights *)x->params)->turned);
}

static void matmul_ref(HnEval *e)
{
    const HnWeights *p = e->params;
    const HnTensor *x = hn_eval_in(e, HN_WEIGHT_X), *w = hn_eval_in(e, HN_WEIGHT_W);
    const HnTensor *scale = hn_eval_in(e, HN_WEIGHT_SCALE), *zero = hn_eval_in(e, HN_WEIGHT_ZERO);
    const HnTensor *bias = hn_eval_in(e, HN_WEIGHT_BIAS);
    HnScaleGrid grid;
    int64_t dims[HN_MAX_RANK];
    if (!check(e, w, scale, zero, &grid))
        return;
    const int64_t k = w->dims[p->turned ? 1 : 0], n = w->dims[p->turned ? 0 : 1];
    const int64_t axis = p->axis < 0 ? x->ndim + p->axis : p->axis;
    gboolean fits = axis >= 0 && axis < x->ndim && x->dims[axis] == k;
    for (int64_t i = axis + 1; fits && i < x->ndim; i++)
        fits = x->dims[i] == 1;
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the inner sizes differ");
        return;
    }
    if (bias != NULL && (bias->ndim != 1 || bias->n != n)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the bias does not have one element per column");
        return;
    }
    memcpy(dims, x->dims, (gsize)x->ndim * sizeof *dims);
    dims[axis] = n;
    float *y = hn_eval_out(e, 0, HN_F32, x->ndim, dims);
    for (int64_t r = 0; y != NULL && n > 0 && r < e->out[0]->n / n; r++)
        for (int64_t c = 0; c < n; c++) {
            double sum = bias != NULL ? (double)((const float *)bias->data)[c] : 0;
            for (int64_t i = 0; i < k; i++)
                sum += (double)((const float *)x->data)[r * k + i] *
                       weight(w, scale, zero, &grid, p->turned ? c : i, p->turned ? i : c);
            y[r * n + c] = (float)sum;
        }
}

/* --- WeightGather ------------------------------------------------------------------------------------------------- */

static void gather_infer(HnInfer *x)
{
    const int rank = hn_infer_rank(x, HN_ROWS_AT), of = hn_infer_rank(x, HN_ROWS_W);
    HnDim dims[HN_MAX_RANK];
    hn_infer_matrix(x, HN_ROWS_W);
    if (rank < 0 || rank >= HN_MAX_RANK || x->error != NULL) {
        hn_infer_out_unknown(x, 0, HN_F32);
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = hn_infer_dim(x, HN_ROWS_AT, i);
    dims[rank] = of >= 2 ? hn_infer_dim(x, HN_ROWS_W, 1) : hn_dim_unknown();
    hn_infer_out(x, 0, HN_F32, rank + 1, dims);
}

static void gather_ref(HnEval *e)
{
    const HnTensor *w = hn_eval_in(e, HN_ROWS_W), *at = hn_eval_in(e, HN_ROWS_AT);
    const HnTensor *scale = hn_eval_in(e, HN_ROWS_SCALE), *zero = hn_eval_in(e, HN_ROWS_ZERO);
    HnScaleGrid grid;
    int64_t dims[HN_MAX_RANK];
    if (!check(e, w, scale, zero, &grid))
        return;
    if (at->ndim >= HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the places have %d dimensions", at->ndim);
        return;
    }
    memcpy(dims, at->dims, (gsize)at->ndim * sizeof *dims);
    dims[at->ndim] = w->dims[1];
    float *y = hn_eval_out(e, 0, HN_F32, at->ndim + 1, dims);
    for (int64_t i = 0; y != NULL && i < at->n; i++) {
        const int64_t row = hn_tensor_get_i64(at, i), from = row < 0 ? row + w->dims[0] : row;
        if (from < 0 || from >= w->dims[0]) {
            hn_eval_fail(e, HN_ERROR_VALUE, "index %" PRId64 " is outside an axis of %" PRId64, row, w->dims[0]);
            return;
        }
        for (int64_t d = 0; d < w->dims[1]; d++)
            *y++ = (float)weight(w, scale, zero, &grid, from, d);
    }
}

static void matmul_batch(HnBatch *b)
{
    hn_batch_along(b, ((const HnWeights *)b->params)->axis, FALSE);
}

#define BITS (HN_BIT(HN_I8) | HN_BIT(HN_U8) | HN_BIT(HN_I4) | HN_BIT(HN_U4))

const HnOp hn_op_weightmatmul = {
    .name = "WeightMatMul",
    .domain = HN_DOMAIN_INTERNAL,
    .since = { 1 },
    .in = "fTfTf",
    .out = "f",
    .T = BITS,
    .min_in = 3,
    .params_size = sizeof(HnWeights),
    .bind = matmul_bind,
    .infer = matmul_infer,
    .cost = matmul_cost,
    .ref = matmul_ref,
    .batch = matmul_batch,
};

const HnOp hn_op_weightgather = {
    .name = "WeightGather",
    .domain = HN_DOMAIN_INTERNAL,
    .since = { 1 },
    .in = "TfTj",
    .out = "f",
    .T = BITS,
    .min_in = 2,
    .params_size = sizeof(HnWeights),
    .bind = weights_bind,
    .infer = gather_infer,
    .ref = gather_ref,
};
