#include "op/quantpool.h"

#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/quantlinear.h"

#define INPUT(e, name) hn_eval_in(e, HN_MEAN_##name)

gboolean hn_quant_pool_place(const HnQuantPool *p, int ndim, const int64_t *x, HnWindowAxis *axes, int64_t *dims,
                             GError **error)
{
    if (!p->whole)
        return hn_pool_place(&p->pool, ndim, x, axes, dims, error);
    if (ndim < 3 || ndim > HN_MAX_RANK) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "the input has %d dimensions, at least 3 are needed", ndim);
        return FALSE;
    }
    dims[0] = x[0];
    dims[1] = x[1];
    for (int i = 2; i < ndim; i++) {
        axes[i - 2] = (HnWindowAxis){ .in = x[i], .out = 1, .kernel = x[i], .stride = 1, .dilation = 1 };
        dims[i] = 1;
    }
    return TRUE;
}

static void quantpool_bind(HnBind *b, void *params)
{
    HnQuantPool *p = params;
    p->whole = hn_bind_bool(b, "whole", FALSE);
    p->flat = hn_bind_bool(b, "flat", FALSE);
    p->lo = hn_bind_float(b, "lo", -INFINITY);
    p->hi = hn_bind_float(b, "hi", INFINITY);
    p->pool.count_pad = hn_bind_bool(b, "count_include_pad", FALSE);
    if (p->whole)
        return;
    hn_bind_require(b, "kernel_shape");
    hn_window_bind(b, &p->pool.window, HN_WINDOW_DILATIONS | HN_WINDOW_CEIL);
    if (p->flat || p->pool.window.kernel == NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'kernel_shape' is empty, or 'flat' stands without 'whole'");
}

static void quantpool_infer(HnInfer *x)
{
    const HnQuantPool *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    const HnDtype dtype = !hn_infer_has(x, HN_MEAN_Y_SCALE)  ? HN_F32
                          : !hn_infer_has(x, HN_MEAN_Y_ZERO) ? HN_U8
                                                             : hn_infer_dtype(x, HN_MEAN_Y_ZERO);
    HnDim dims[HN_MAX_RANK];
    if (rank >= 0 && rank < 3) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 3 are needed", rank);
        return;
    }
    if (rank >= 0 && !p->whole && !hn_window_check(&p->pool.window, rank - 2, &x->error))
        return;
    for (int i = 0; i < rank; i++) {
        const HnDim in = hn_infer_dim(x, 0, i);
        dims[i] = i < 2      ? in
                  : p->whole ? hn_dim(1)
                             : hn_window_out(&p->pool.window, i - 2, in, p->pool.window.kernel[i - 2]);
        if (dims[i].known && dims[i].n < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "a window of %" PRId64 " does not fit into spatial axis %d",
                          p->pool.window.kernel[i - 2], i - 2);
            return;
        }
    }
    hn_infer_out(x, 0, dtype, rank > 0 && p->flat ? 2 : rank, dims);
}

static void quantpool_cost(const HnInfer *x, HnCost *c)
{
    const HnQuantPool *p = x->params;
    c->flops = p->whole ? hn_type_count(x->in[0]) : hn_type_count(x->out[0]);
    for (int i = 0; i < p->pool.window.n && !p->whole; i++)
        c->flops *= (double)p->pool.window.kernel[i];
}

/* --- ref --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnTensor *x;
    int64_t plane; /* first element of it */
    int64_t zero;
    int64_t *sum;
} Sums;

static void add_row(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len)
{
    const Sums *s = data;
    (void)k;
    for (int64_t i = 0; i < len; i++)
        s->sum[y + i] += hn_tensor_get_i64(s->x, s->plane + x + i * step) - s->zero;
}

static void finish(const HnQuantPool *p, HnDtype dtype, float scale, float step, int zero, int64_t sum, double elements,
                   void *y)
{
    float v = elements > 0 ? (float)sum * (scale / (float)elements) : 0;
    if (dtype == HN_F32) {
        v = p->lo > v ? p->lo : v;
        *(float *)y = p->hi < v ? p->hi : v;
        return;
    }
    const HnQuantProduct limits = { .lo = p->lo, .hi = p->hi };
    const HnQuantBounds b = hn_quant_bounds(&limits, dtype, step, zero);
    v = v > b.lo ? v : b.lo; /* which NaN becomes */
    v = v < b.hi ? v : b.hi;
    *(uint8_t *)y = (uint8_t)((int)nearbyintf(v) + zero);
}

static gboolean single(HnEval *e)
{
    for (int i = HN_MEAN_X_SCALE; i < HN_MEAN_INPUTS; i++)
        if (hn_eval_in(e, i) != NULL && hn_eval_in(e, i)->n != 1) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "a scale or zero point has another number of elements");
            return FALSE;
        }
    return TRUE;
}

static void quantpool_ref(HnEval *e)
{
    const HnQuantPool *p = e->params;
    const HnTensor *x = INPUT(e, X), *xz = INPUT(e, X_ZERO), *ys = INPUT(e, Y_SCALE), *yz = INPUT(e, Y_ZERO);
    HnWindowAxis axis[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK], n;
    if (!single(e) || !hn_quant_pool_place(p, x->ndim, x->dims, axis, dims, &e->error))
        return;
    const HnDtype dtype = ys == NULL ? HN_F32 : yz == NULL ? HN_U8 : yz->dtype;
    char *y = hn_eval_out(e, 0, dtype, p->flat ? 2 : x->ndim, dims);
    if (y == NULL || !hn_dims_count(x->ndim, dims, &n) || n == 0)
        return;
    const int64_t planes = dims[0] * dims[1], out = n / planes, in = x->n / planes;
    const int spatial = x->ndim - 2;
    const float step = ys != NULL ? *(const float *)ys->data : 1,
                scale = *(const float *)INPUT(e, X_SCALE)->data / step;
    Sums s = { x, 0, xz != NULL ? hn_tensor_get_i64(xz, 0) : 0, hn_eval_scratch(e, out, sizeof(int64_t)) };
    for (int64_t plane = 0; s.sum != NULL && plane < planes; plane++) {
        int64_t idx[HN_MAX_RANK] = { 0 };
        s.plane = plane * in;
        memset(s.sum, 0, (gsize)out * sizeof *s.sum);
        if (in > 0)
            hn_window_rows(spatial, axis, add_row, &s);
        for (int64_t o = 0; o < out; o++) {
            double elements = 1;
            for (int i = 0; i < spatial; i++)
                elements *= (double)hn_pool_held(&axis[i], idx[i], p->pool.count_pad);
            finish(p, dtype, scale, step, yz != NULL ? (int)hn_tensor_get_i64(yz, 0) : 0, s.sum[o], elements,
                   y + (gsize)(plane * out + o) * hn_dtype_size(dtype));
            for (int i = spatial - 1; i >= 0 && ++idx[i] == axis[i].out; i--)
                idx[i] = 0;
        }
    }
    hn_eval_scratch_free(e, s.sum);
}

#define BYTES (HN_BIT(HN_I8) | HN_BIT(HN_U8))

const HnOp hn_op_quantaveragepool = {
    .name = "QuantAveragePool",
    .domain = HN_DOMAIN_INTERNAL,
    .since = { 1 },
    .in = "TfTfV",
    .out = ".",
    .T = BYTES,
    .V = BYTES,
    .min_in = 2,
    .params_size = sizeof(HnQuantPool),
    .bind = quantpool_bind,
    .infer = quantpool_infer,
    .cost = quantpool_cost,
    .ref = quantpool_ref,
    .batch = hn_batch_first,
};
