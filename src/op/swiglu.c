/*
 * SwiGLU: y = a * sigmoid(alpha * a) * b, for gate a and value b of one shape; no broadcasting.
 */
#include "op/activation.h"

#include <math.h>

#include "op/types.h"
#include "op/tape.h"
#include "op/unbind.h"

static void swiglu_bind(HnBind *b, void *params)
{
    HnActivation *p = params;
    p->a = (double)hn_bind_float(b, "alpha", 1);
}

static void swiglu_infer(HnInfer *x)
{
    int ra = hn_infer_rank(x, 0), rb = hn_infer_rank(x, 1);
    gboolean differ = ra >= 0 && rb >= 0 && ra != rb;
    for (int i = 0; i < ra && rb >= 0 && !differ; i++)
        differ = hn_dim_differ(hn_infer_dim(x, 0, i), hn_infer_dim(x, 1, i));
    if (differ)
        hn_infer_fail(x, HN_ERROR_SHAPE, "gate and value have different shapes");
    hn_infer_out_like(x, 0, ra >= 0 ? 0 : 1);
}

static void swiglu_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 6 * hn_type_count(x->out[0]); /* scale, exp, add, divide, two products */
}

static void swiglu_ref(HnEval *e)
{
    const HnActivation *p = e->params;
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 1);
    int64_t dims[HN_MAX_RANK];
    void *y;
    if (hn_eval_broadcast(e, a, b, dims) < 0)
        return;
    if (a->n != b->n || a->ndim != b->ndim) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "gate and value have different shapes");
        return;
    }
    if ((y = hn_eval_out_like(e, 0, a)) == NULL)
        return;
#define RUN(T)                                                      \
    const T *g = a->data, *v = b->data;                             \
    for (int64_t i = 0; i < a->n; i++) {                            \
        double x = (double)g[i];                                    \
        ((T *)y)[i] = (T)(x / (1 + exp(-p->a * x)) * (double)v[i]); \
    }
    HN_FOR_FLOAT(a->dtype, RUN)
#undef RUN
}

static void swiglu_unbind(HnUnbind *u)
{
    const HnActivation *p = u->params;
    HnDtype dtype;
    HnValue *a = u->to < 28 ? hn_unbind_real(u, 0, &dtype) : NULL, *b = a != NULL ? hn_unbind_real(u, 1, &dtype) : NULL;
    if (b == NULL)
        return;
    HnValue *s = hn_unbind_op1(u, "Sigmoid", hn_unbind_op2(u, "Mul", a, hn_unbind_scalar(u, dtype, p->a)));
    hn_unbind_take_real(u, 0, hn_unbind_op2(u, "Mul", hn_unbind_op2(u, "Mul", a, s), b));
}

static void swiglu_grad(HnTape *t)
{
    t->number[0] = ((const HnActivation *)t->params)->a;
    HnValue *s = hn_tape_calc(t, "Sigmoid(a * x)", NULL);
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_tape_calc(t, "dy * x1 * (p + a * x * p * (1 - p))", &s));
    if (hn_tape_needs(t, 1))
        hn_tape_give(t, 1, hn_tape_calc(t, "dy * x * p", &s));
}

const HnOp hn_op_swiglu = {
    .name = "SwiGLU",
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_ELEMENTWISE | HN_OP_INPLACE,
    .since = { 28 },
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS,
    .unbind = swiglu_unbind,
    .params_size = sizeof(HnActivation),
    .bind = swiglu_bind,
    .infer = swiglu_infer,
    .cost = swiglu_cost,
    .ref = swiglu_ref,
    .grad = swiglu_grad,
    .quant = { .kind = HN_Q_ELEMENTWISE },
};
