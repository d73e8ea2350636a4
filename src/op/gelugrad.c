/*
 * GeluGrad (domain "hone"): the gradient of Gelu, inputs dy and x of one shape. dy (Phi(x) + x phi(x)), or, with
 * `approximate` as Gelu has it, of x s(2 u) with s = 1 / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3):
 * dy (s + 2 x u' s (1 - s)).
 */
#include <math.h>

#include "op/activation.h"
#include "op/one_shape.h"
#include "op/types.h"

static void gelugrad_bind(HnBind *b, void *params)
{
    HnActivation *p = params;
    p->tanh = hn_activation_gelu_tanh(b);
}

static void gelugrad_infer(HnInfer *x)
{
    hn_infer_one_shape(x, 2);
    hn_infer_same(x);
}

static void gelugrad_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 30 * hn_type_count(x->out[0]);
}

static double slope_tanh(double x)
{
    const double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x), s = 1 / (1 + exp(-2 * u)), t = s * (1 - s);
    return s + (t > 0 ? 2 * x * 0.79788456080286535588 * (1 + 0.134145 * x * x) * t : 0);
}

static double slope(const HnActivation *p, double x)
{
    if (p->tanh)
        return slope_tanh(x);
    const double phi = 0.39894228040143267794 * exp(-0.5 * x * x);
    return 0.5 * erfc(-0.70710678118654752440 * x) + (phi > 0 ? x * phi : 0);
}

static void gelugrad_ref(HnEval *e)
{
    const HnActivation *p = e->params;
    const HnTensor *dy = hn_eval_in(e, 0), *x = hn_eval_in(e, 1);
    if (dy->n != x->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "inputs have different shapes");
        return;
    }
    void *dx = hn_eval_out_like(e, 0, dy);
    if (dx == NULL)
        return;
#define RUN(T)                         \
    for (int64_t i = 0; i < x->n; i++) \
        ((T *)dx)[i] = (T)((double)((const T *)dy->data)[i] * slope(p, (double)((const T *)x->data)[i]));
    HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
}

const HnOp hn_op_gelugrad = {
    .name = "GeluGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_ELEMENTWISE | HN_OP_INPLACE,
    .since = { 1 },
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnActivation),
    .bind = gelugrad_bind,
    .infer = gelugrad_infer,
    .cost = gelugrad_cost,
    .ref = gelugrad_ref,
};
