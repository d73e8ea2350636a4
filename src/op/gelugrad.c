/*
 * GeluGrad (domain "hone"): dy (Phi(x) + x phi(x)), the gradient of Gelu by the normal distribution; inputs dy and x of
 * one shape.
 */
#include <math.h>

#include "op/one_shape.h"
#include "op/op.h"
#include "op/types.h"

static void gelugrad_infer(HnInfer *x)
{
    hn_infer_one_shape(x, 2);
    hn_infer_same(x);
}

static void gelugrad_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 30 * hn_type_count(x->out[0]);
}

static double slope(double x)
{
    const double phi = 0.39894228040143267794 * exp(-0.5 * x * x);
    return 0.5 * erfc(-0.70710678118654752440 * x) + (phi > 0 ? x * phi : 0);
}

static void gelugrad_ref(HnEval *e)
{
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
        ((T *)dx)[i] = (T)((double)((const T *)dy->data)[i] * slope((double)((const T *)x->data)[i]));
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
    .infer = gelugrad_infer,
    .cost = gelugrad_cost,
    .ref = gelugrad_ref,
};
