/*
 * LayerNormGrad (domain "hone"): gradients of y = (x - mean) inv scale + bias by x, scale and bias, where mean and inv
 * = 1 / deviation are those of rows, from `axis` to the end, and scale and bias have the shape of a row. Inputs: dy, x,
 * scale. With x^ = (x - mean) inv and g = dy scale, over the n elements of a row,
 *
 *     dx = inv (g - mean(g) - x^ mean(g x^)),  dscale = sum dy x^,  dbias = sum dy, over all rows
 *
 * (J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016). With `centred` = 0 no mean is taken off: that of
 * RMSNormalization. What rows' moments are is computed anew: they are in the cache when dx is made. Sums are in double.
 */
#include <math.h>
#include <string.h>

#include "op/index.h"
#include "op/layernorm.h"
#include "op/types.h"

enum { DY, X, SCALE };

static void layernormgrad_bind(HnBind *b, void *params)
{
    HnLayerNormGrad *p = params;
    p->axis = hn_bind_int(b, "axis", -1);
    p->epsilon = hn_bind_float(b, "epsilon", 1e-5f);
    p->centred = hn_bind_bool(b, "centred", TRUE);
}

static void layernormgrad_infer(HnInfer *x)
{
    const HnLayerNormGrad *p = x->params;
    if (hn_infer_rank(x, X) >= 0)
        hn_infer_axis(x, p->axis, hn_infer_rank(x, X));
    hn_infer_out_like(x, 0, X);
    for (int k = 1; k < x->n_out; k++)
        hn_infer_out_like(x, k, SCALE);
}

static void layernormgrad_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 14 * hn_type_count(x->in[X]); /* moments 4, sums 6, dx 4 */
}

/* A row's, and what is added up over rows. */
typedef struct {
    int64_t n;
    double epsilon;
    gboolean centred;
    double *scale, *dscale, *dbias; /* [n] */
} Row;

#define DEFINE_ROW(T)                                                                              \
    static void row_##T(const Row *r, T *dx, const T *dy, const T *x)                              \
    {                                                                                              \
        double mean = 0, squares = 0, g = 0, along = 0;                                            \
        for (int64_t i = 0; i < r->n && r->centred; i++)                                           \
            mean += (double)x[i] / (double)r->n;                                                   \
        for (int64_t i = 0; i < r->n; i++)                                                         \
            squares += ((double)x[i] - mean) * ((double)x[i] - mean);                              \
        const double inv = 1 / sqrt(squares / (double)r->n + r->epsilon);                          \
        for (int64_t i = 0; i < r->n; i++) {                                                       \
            const double hat = ((double)x[i] - mean) * inv;                                        \
            r->dscale[i] += (double)dy[i] * hat;                                                   \
            r->dbias[i] += (double)dy[i];                                                          \
            g += (double)dy[i] * r->scale[i] / (double)r->n;                                       \
            along += (double)dy[i] * r->scale[i] * hat / (double)r->n;                             \
        }                                                                                          \
        for (int64_t i = 0; i < r->n; i++) {                                                       \
            const double hat = ((double)x[i] - mean) * inv;                                        \
            dx[i] = (T)(inv * ((double)dy[i] * r->scale[i] - (r->centred ? g : 0) - hat * along)); \
        }                                                                                          \
    }
DEFINE_ROW(float)
DEFINE_ROW(double)

static void layernormgrad_ref(HnEval *e)
{
    const HnLayerNormGrad *p = e->params;
    const HnTensor *dy = hn_eval_in(e, DY), *x = hn_eval_in(e, X), *scale = hn_eval_in(e, SCALE);
    const int axis = hn_eval_axis(e, p->axis, x->ndim);
    if (axis < 0)
        return;
    Row r = { .n = hn_span(x->dims, axis, x->ndim), .epsilon = (double)p->epsilon, .centred = p->centred };
    if (dy->n != x->n || scale->n != r.n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "an input does not fit the rows of input 1");
        return;
    }
    void *dx = hn_eval_out_like(e, 0, x), *to[2] = { hn_eval_out_like(e, 1, scale), hn_eval_out_like(e, 2, scale) };
    r.scale = dx != NULL && to[0] != NULL && to[1] != NULL ? hn_eval_scratch(e, MAX(r.n, 1), 3 * sizeof(double)) : NULL;
    if (r.scale == NULL)
        return;
    r.dscale = r.scale + r.n;
    r.dbias = r.dscale + r.n;
    memset(r.dscale, 0, 2 * (size_t)r.n * sizeof(double));
    for (int64_t i = 0; i < r.n; i++)
        r.scale[i] = hn_tensor_get_f64(scale, i);
    for (int64_t at = 0; at < x->n; at += r.n) {
#define RUN(T) row_##T(&r, (T *)dx + at, (const T *)dy->data + at, (const T *)x->data + at);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
    for (int64_t i = 0; i < r.n; i++) {
        hn_tensor_set_f64(e->out[1], i, r.dscale[i]);
        hn_tensor_set_f64(e->out[2], i, r.dbias[i]);
    }
    hn_eval_scratch_free(e, r.scale);
}

const HnOp hn_op_layernormgrad = {
    .name = "LayerNormGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTT",
    .out = "TTT",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnLayerNormGrad),
    .bind = layernormgrad_bind,
    .infer = layernormgrad_infer,
    .cost = layernormgrad_cost,
    .ref = layernormgrad_ref,
};
