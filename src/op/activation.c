/*
 * Activations: functions of one number with up to two parameters. Computed in double, then rounded once.
 */
#include "op/activation.h"

#include <math.h>

#include "op/elementwise.h"
#include "op/tape.h"
#include "op/unbind.h"

static void alpha_bind(HnBind *b, HnActivation *p, float alpha)
{
    p->a = (double)hn_bind_float(b, "alpha", alpha);
}

static void one_bind(HnBind *b, void *params)
{
    alpha_bind(b, params, 1.0f); /* Celu, Elu, Swish, ThresholdedRelu */
}

static void leakyrelu_bind(HnBind *b, void *params)
{
    alpha_bind(b, params, 0.01f);
}

static void hardsigmoid_bind(HnBind *b, void *params)
{
    HnActivation *p = params;
    alpha_bind(b, p, 0.2f);
    p->b = (double)hn_bind_float(b, "beta", 0.5f);
}

static void selu_bind(HnBind *b, void *params)
{
    HnActivation *p = params;
    alpha_bind(b, p, b->version < 6 ? 1.6732f : 1.67326319217681884765625f);
    p->b = (double)hn_bind_float(b, "gamma", b->version < 6 ? 1.0507f : 1.05070102214813232421875f);
}

gboolean hn_activation_gelu_tanh(HnBind *b)
{
    static const char *const words[] = { "none", "tanh", NULL };
    return hn_bind_word(b, "approximate", words, 0) == 1;
}

static void gelu_bind(HnBind *b, void *params)
{
    HnActivation *p = params;
    p->tanh = hn_activation_gelu_tanh(b);
}

/* log(1 + exp(v)) without overflow */
static double softplus(double v)
{
    return fmax(v, 0.0) + log1p(exp(-fabs(v)));
}

static double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

static double clamp01(double v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* 0.5 v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3))), or with the exact normal distribution */
static double gelu(const HnActivation *p, double v)
{
    if (p->tanh)
        return 0.5 * v * (1.0 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
    return 0.5 * v * erfc(-v * 0.70710678118654752440);
}

/* An expression of double v and params p over all elements; f32 and f64. */
#define DEFINE_REF(symbol, EXPR)                  \
    static void symbol##_ref(HnEval *e)           \
    {                                             \
        const HnActivation *p = e->params;        \
        const HnTensor *t = hn_eval_in(e, 0);     \
        void *y = hn_eval_out_like(e, 0, t);      \
        (void)p;                                  \
        if (y == NULL)                            \
            return;                               \
        if (t->dtype == HN_F32) {                 \
            const float *from = t->data;          \
            float *to = y;                        \
            for (int64_t i = 0; i < t->n; i++) {  \
                const double v = (double)from[i]; \
                to[i] = (float)(EXPR);            \
            }                                     \
        } else if (t->dtype == HN_F64) {          \
            const double *from = t->data;         \
            double *to = y;                       \
            for (int64_t i = 0; i < t->n; i++) {  \
                const double v = from[i];         \
                to[i] = (EXPR);                   \
            }                                     \
        } else {                                  \
            hn_eval_fail_type(e, 0);              \
        }                                         \
    }

/* NaN comes through all of them: comparisons are written so that it takes the branch that computes with it. */
DEFINE_REF(celu, v >= 0 ? v : p->a * expm1(v / p->a))
DEFINE_REF(elu, v >= 0 ? v : p->a * expm1(v))
DEFINE_REF(gelu, gelu(p, v))
DEFINE_REF(hardsigmoid, clamp01(p->a *v + p->b))
DEFINE_REF(hardswish, v *clamp01(v / 6 + 0.5))
DEFINE_REF(leakyrelu, v >= 0 ? v : p->a * v)
DEFINE_REF(mish, v *tanh(softplus(v)))
DEFINE_REF(selu, p->b *(v > 0 ? v : p->a * expm1(v)))
DEFINE_REF(sigmoid, sigmoid(v))
DEFINE_REF(softplus, isnan(v) ? v : softplus(v))
DEFINE_REF(softsign, v / (1.0 + fabs(v)))
DEFINE_REF(swish, v *sigmoid(p->a *v))
DEFINE_REF(thresholdedrelu, v > p->a ? v : isnan(v) ? v : 0)

/* --- gradients: a and b are the parameters ------------------------------------------------------------------------ */

static void map(HnTape *t, const char *expression)
{
    const HnActivation *p = t->params;
    t->number[0] = p->a;
    t->number[1] = p->b;
    hn_tape_map(t, expression);
}

#define DEFINE_GRAD(symbol, expression)  \
    static void symbol##_grad(HnTape *t) \
    {                                    \
        map(t, expression);              \
    }

DEFINE_GRAD(celu, "dy * Where(x >= 0, 1, Exp(x / a))")
DEFINE_GRAD(elu, "dy * Where(x >= 0, 1, y + a)")
DEFINE_GRAD(hardsigmoid, "Where(And(y > 0, y < 1), dy * a, 0)")
DEFINE_GRAD(hardswish, "dy * Where(x > 3, 1, Where(x > -3, x / 3 + 0.5, 0))")
DEFINE_GRAD(leakyrelu, "Where(x >= 0, dy, dy * a)")
DEFINE_GRAD(selu, "dy * Where(x > 0, b, y + a * b)")
DEFINE_GRAD(sigmoid, "dy * y * (1 - y)")
DEFINE_GRAD(softplus, "dy * Sigmoid(x)")
DEFINE_GRAD(softsign, "dy * (1 - Abs(y)) * (1 - Abs(y))")
DEFINE_GRAD(thresholdedrelu, "Where(x > a, dy, 0)")

static void gelu_grad(HnTape *t)
{
    const HnActivation *p = t->params;
    if (!hn_tape_needs(t, 0))
        return;
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, 0) };
    HnNode *n = hn_build_node(t->build, "GeluGrad", HN_DOMAIN_INTERNAL, 2, in, 1);
    if (p->tanh)
        hn_node_set_string(n, "approximate", "tanh");
    hn_tape_give(t, 0, hn_node_out(n, 0));
}

/* With t = tanh(softplus(x)): t + x (1 - t^2) sigmoid(x). */
static void mish_grad(HnTape *t)
{
    HnValue *th = hn_tape_needs(t, 0) ? hn_tape_calc(t, "Tanh(Softplus(x))", NULL) : NULL;
    if (th != NULL)
        hn_tape_give(t, 0, hn_tape_calc(t, "dy * (p + x * (1 - p * p) * Sigmoid(x))", &th));
}

static void swish_grad(HnTape *t)
{
    const HnActivation *p = t->params;
    t->number[0] = p->a;
    HnValue *s = hn_tape_needs(t, 0) ? hn_tape_calc(t, "Sigmoid(a * x)", NULL) : NULL;
    if (s != NULL)
        hn_tape_give(t, 0, hn_tape_calc(t, "dy * (p + a * y * (1 - p))", &s));
}

/* --- opsets that do not have them -------------------------------------------------------------------------------- */

static HnValue *times(HnUnbind *u, HnValue *v, HnDtype dtype, double c)
{
    return c == 1 ? v : hn_unbind_op2(u, "Mul", v, hn_unbind_scalar(u, dtype, c));
}

static void celu_unbind(HnUnbind *u)
{
    const HnActivation *p = u->params;
    HnDtype dtype;
    if (u->to >= 12 && !hn_dtype_in(hn_unbind_dtype(u, 0), HN_BIT(HN_F64)))
        return;
    HnValue *x = u->to < 28 ? hn_unbind_real(u, 0, &dtype) : NULL;
    if (x == NULL)
        return;
    HnNode *e = hn_unbind_node(u, "Elu", 1, (HnValue *[]){ times(u, x, dtype, 1 / p->a) }, 1);
    hn_unbind_take_real(u, 0, times(u, hn_node_out(e, 0), dtype, p->a));
}

/* 0.5 x (1 + erf(x / sqrt(2))), or tanh(sqrt(2/pi) (x + 0.044715 x^3)) in the place of erf */
static void gelu_unbind(HnUnbind *u)
{
    const HnActivation *p = u->params;
    HnDtype dtype;
    HnValue *x = u->to < 20 ? hn_unbind_real(u, 0, &dtype) : NULL, *s;
    if (x == NULL)
        return;
    if (p->tanh) {
        HnValue *cube = hn_unbind_op2(u, "Mul", hn_unbind_op2(u, "Mul", x, x), x);
        s = hn_unbind_op2(u, "Add", x, times(u, cube, dtype, 0.044715));
        s = hn_unbind_op1(u, "Tanh", times(u, s, dtype, 0.79788456080286535588));
    } else {
        s = hn_unbind_op1(u, "Erf", times(u, x, dtype, 0.70710678118654752440));
    }
    s = hn_unbind_op2(u, "Add", s, hn_unbind_scalar(u, dtype, 1));
    hn_unbind_take_real(u, 0, times(u, hn_unbind_op2(u, "Mul", x, s), dtype, 0.5));
}

static void hardswish_unbind(HnUnbind *u)
{
    HnDtype dtype;
    HnValue *x = u->to < 14 ? hn_unbind_real(u, 0, &dtype) : NULL;
    if (x == NULL)
        return;
    HnNode *h = hn_unbind_node(u, "HardSigmoid", 1, &x, 1);
    hn_node_set_float(h, "alpha", 1.0f / 6);
    hn_node_set_float(h, "beta", 0.5f);
    hn_unbind_take_real(u, 0, hn_unbind_op2(u, "Mul", x, hn_node_out(h, 0)));
}

static void mish_unbind(HnUnbind *u)
{
    HnDtype dtype;
    HnValue *x = u->to < 18 ? hn_unbind_real(u, 0, &dtype) : NULL;
    if (x != NULL)
        hn_unbind_take_real(u, 0,
                            hn_unbind_op2(u, "Mul", x, hn_unbind_op1(u, "Tanh", hn_unbind_op1(u, "Softplus", x))));
}

static void swish_unbind(HnUnbind *u)
{
    const HnActivation *p = u->params;
    HnDtype dtype;
    HnValue *x = u->to < 24 ? hn_unbind_real(u, 0, &dtype) : NULL;
    if (x != NULL)
        hn_unbind_take_real(u, 0, hn_unbind_op2(u, "Mul", x, hn_unbind_op1(u, "Sigmoid", times(u, x, dtype, p->a))));
}

static void thresholdedrelu_unbind(HnUnbind *u)
{
    const HnActivation *p = u->params;
    HnDtype dtype;
    HnValue *x = u->to < 10 ? hn_unbind_real(u, 0, &dtype) : NULL;
    if (x == NULL)
        return;
    HnValue *low = hn_unbind_op2(u, "LessOrEqual", x, hn_unbind_scalar(u, dtype, p->a));
    hn_unbind_take_real(u, 0, hn_unbind_op3(u, "Where", low, hn_unbind_scalar(u, dtype, 0), x));
}

#define DEFINE_RECORD(symbol, onnx_name, bind_fn, ...)                   \
    const HnOp hn_op_##symbol = {                                        \
        .name = onnx_name,                                               \
        .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_HALF_VIA_F32, \
        .in = "T",                                                       \
        .out = "T",                                                      \
        .T = HN_T_FLOATS,                                                \
        .params_size = sizeof(HnActivation),                             \
        .bind = bind_fn,                                                 \
        .infer = hn_infer_same,                                          \
        .cost = hn_cost_elementwise,                                     \
        .ref = symbol##_ref,                                             \
        .grad = symbol##_grad,                                           \
        __VA_ARGS__,                                                     \
    };
#define RANGE(from, to) .quant = { .kind = HN_Q_FIXED_RANGE, .lo = from, .hi = to }
#define NEEDS_RANGES .quant = { .kind = HN_Q_ELEMENTWISE }

DEFINE_RECORD(celu, "Celu", one_bind, .since = { 12, 28 }, .unbind = celu_unbind,
              .lacks = HN_LACKS({ 'T', 28, 0, HN_BIT(HN_F16) | HN_BIT(HN_F64) | HN_BIT(HN_BF16) }), NEEDS_RANGES)
DEFINE_RECORD(elu, "Elu", one_bind, .since = { 1, 6, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)), NEEDS_RANGES)
DEFINE_RECORD(gelu, "Gelu", gelu_bind, .since = { 20 }, .unbind = gelu_unbind, NEEDS_RANGES)
DEFINE_RECORD(hardsigmoid, "HardSigmoid", hardsigmoid_bind, .since = { 1, 6, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)),
              RANGE(0, 1))
DEFINE_RECORD(hardswish, "HardSwish", NULL, .since = { 14, 22 }, .unbind = hardswish_unbind,
              .lacks = HN_LACKS(HN_BF16_SINCE(22)), NEEDS_RANGES)
DEFINE_RECORD(leakyrelu, "LeakyRelu", leakyrelu_bind, .since = { 1, 6, 16 }, .lacks = HN_LACKS(HN_BF16_SINCE(16)),
              NEEDS_RANGES, .channels = { .unit = HN_UNIT_SAME })
DEFINE_RECORD(mish, "Mish", NULL, .since = { 18, 22 }, .unbind = mish_unbind, .lacks = HN_LACKS(HN_BF16_SINCE(22)),
              NEEDS_RANGES)
DEFINE_RECORD(selu, "Selu", selu_bind, .since = { 1, 6, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)), NEEDS_RANGES)
DEFINE_RECORD(sigmoid, "Sigmoid", NULL, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)), RANGE(0, 1))
DEFINE_RECORD(softplus, "Softplus", NULL, .since = { 1, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)), NEEDS_RANGES)
DEFINE_RECORD(softsign, "Softsign", NULL, .since = { 1, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)), RANGE(-1, 1))
DEFINE_RECORD(swish, "Swish", one_bind, .since = { 24 }, .unbind = swish_unbind, NEEDS_RANGES)
DEFINE_RECORD(thresholdedrelu, "ThresholdedRelu", one_bind, .since = { 10, 22 }, .unbind = thresholdedrelu_unbind,
              .lacks = HN_LACKS(HN_BF16_SINCE(22)), NEEDS_RANGES)
