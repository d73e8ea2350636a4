/*
 * Functions of one number: trigonometry, exponentials, roots, rounding. Computed in double, then rounded once.
 */
#include <math.h>

#include "op/elementwise.h"
#include "op/tape.h"
#include "op/unbind.h"

/* An expression of double v over all elements; f32 and f64. */
#define DEFINE_REF(symbol, EXPR)                  \
    static void symbol##_ref(HnEval *e)           \
    {                                             \
        const HnTensor *t = hn_eval_in(e, 0);     \
        void *y = hn_eval_out_like(e, 0, t);      \
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

#define MATH_FLAGS HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_HALF_VIA_F32
/* Before opset 11: floor(x), and one more where the rest is above a half, or a half and floor(x) odd. */
static void round_unbind(HnUnbind *u)
{
    HnDtype dtype;
    HnValue *x = u->to < 11 ? hn_unbind_real(u, 0, &dtype) : NULL;
    if (x == NULL)
        return;
    HnValue *floor = hn_unbind_op1(u, "Floor", x), *rest = hn_unbind_op2(u, "Sub", x, floor);
    HnValue *half = hn_unbind_scalar(u, dtype, 0.5), *halved = hn_unbind_op2(u, "Mul", floor, half);
    HnValue *odd = hn_unbind_op2(u, "Greater", halved, hn_unbind_op1(u, "Floor", halved));
    HnValue *above = hn_unbind_op2(u, "Greater", rest, half);
    HnValue *below = hn_unbind_op2(u, "Less", rest, half);
    HnValue *tie = hn_unbind_op2(u, "And", odd, hn_unbind_op1(u, "Not", hn_unbind_op2(u, "Or", above, below)));
    HnValue *up = hn_unbind_cast(u, hn_unbind_op2(u, "Or", above, tie), dtype);
    hn_unbind_take_real(u, 0, hn_unbind_op2(u, "Add", floor, up));
}

#define DEFINE_RECORD(symbol, onnx_name, infer_fn, ...) \
    const HnOp hn_op_##symbol = {                       \
        .name = onnx_name,                              \
        .flags = MATH_FLAGS,                            \
        .in = "T",                                      \
        .out = "T",                                     \
        .T = HN_T_FLOATS,                               \
        .infer = infer_fn,                              \
        .cost = hn_cost_elementwise,                    \
        .ref = symbol##_ref,                            \
        .grad = symbol##_grad,                          \
        __VA_ARGS__,                                    \
    };

/* Whole numbers stay as they are; hn_infer_map1() keeps nothing else. */
static void rounding_infer(HnInfer *x)
{
    hn_infer_same(x);
    hn_infer_map1(x, hn_dim_same);
}

#define RANGE(from, to) .quant = { .kind = HN_Q_FIXED_RANGE, .lo = from, .hi = to }
#define DIVISOR .range = { .divisors = 1 }
#define NEEDS_RANGES .quant = { .kind = HN_Q_ELEMENTWISE }

DEFINE_REF(acos, acos(v))
DEFINE_REF(acosh, acosh(v))
DEFINE_REF(asin, asin(v))
DEFINE_REF(asinh, asinh(v))
DEFINE_REF(atan, atan(v))
DEFINE_REF(atanh, atanh(v))
DEFINE_REF(ceil, ceil(v))
DEFINE_REF(cos, cos(v))
DEFINE_REF(cosh, cosh(v))
DEFINE_REF(exp, exp(v))
DEFINE_REF(floor, floor(v))
DEFINE_REF(log, log(v))
DEFINE_REF(reciprocal, 1.0 / v)
DEFINE_REF(round, rint(v)) /* halves to even */
DEFINE_REF(sin, sin(v))
DEFINE_REF(sinh, sinh(v))
DEFINE_REF(sqrt, sqrt(v))
DEFINE_REF(tan, tan(v))
DEFINE_REF(tanh, tanh(v))

#define DEFINE_GRAD(symbol, expression)  \
    static void symbol##_grad(HnTape *t) \
    {                                    \
        hn_tape_map(t, expression);      \
    }
#define DEFINE_STEPS_GRAD(symbol)        \
    static void symbol##_grad(HnTape *t) \
    {                                    \
        hn_tape_steps(t);                \
    }

DEFINE_GRAD(acos, "-dy / Sqrt(1 - x * x)")
DEFINE_GRAD(acosh, "dy / Sqrt(x * x - 1)")
DEFINE_GRAD(asin, "dy / Sqrt(1 - x * x)")
DEFINE_GRAD(asinh, "dy / Sqrt(x * x + 1)")
DEFINE_GRAD(atan, "dy / (x * x + 1)")
DEFINE_GRAD(atanh, "dy / (1 - x * x)")
DEFINE_STEPS_GRAD(ceil)
DEFINE_GRAD(cos, "-dy * Sin(x)")
DEFINE_GRAD(cosh, "dy * Sinh(x)")
DEFINE_GRAD(exp, "dy * y")
DEFINE_STEPS_GRAD(floor)
DEFINE_GRAD(log, "dy / x")
DEFINE_GRAD(reciprocal, "-dy * y * y")
DEFINE_STEPS_GRAD(round)
DEFINE_GRAD(sin, "dy * Cos(x)")
DEFINE_GRAD(sinh, "dy * Cosh(x)")
DEFINE_GRAD(sqrt, "0.5 * dy / y")
DEFINE_GRAD(tan, "dy * (1 + y * y)")
DEFINE_GRAD(tanh, "dy * (1 - y * y)")

DEFINE_RECORD(acos, "Acos", hn_infer_same, .since = { 7, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)),
              RANGE(0.0f, 3.1415927f))
DEFINE_RECORD(acosh, "Acosh", hn_infer_same, .since = { 9, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)))
DEFINE_RECORD(asin, "Asin", hn_infer_same, .since = { 7, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)),
              RANGE(-1.5707964f, 1.5707964f))
DEFINE_RECORD(asinh, "Asinh", hn_infer_same, .since = { 9, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)))
DEFINE_RECORD(atan, "Atan", hn_infer_same, .since = { 7, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)),
              RANGE(-1.5707964f, 1.5707964f))
DEFINE_RECORD(atanh, "Atanh", hn_infer_same, .since = { 9, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)))
DEFINE_RECORD(ceil, "Ceil", rounding_infer, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)))
DEFINE_RECORD(cos, "Cos", hn_infer_same, .since = { 7, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)), RANGE(-1, 1))
DEFINE_RECORD(cosh, "Cosh", hn_infer_same, .since = { 9, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)))
DEFINE_RECORD(exp, "Exp", hn_infer_same, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)), NEEDS_RANGES)
DEFINE_RECORD(floor, "Floor", rounding_infer, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)))
DEFINE_RECORD(log, "Log", hn_infer_same, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)), DIVISOR)
DEFINE_RECORD(reciprocal, "Reciprocal", hn_infer_same, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)),
              DIVISOR)
DEFINE_RECORD(round, "Round", rounding_infer, .since = { 11, 22 }, .unbind = round_unbind,
              .lacks = HN_LACKS(HN_BF16_SINCE(22)))
DEFINE_RECORD(sin, "Sin", hn_infer_same, .since = { 7, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)), RANGE(-1, 1))
DEFINE_RECORD(sinh, "Sinh", hn_infer_same, .since = { 9, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)))
DEFINE_RECORD(sqrt, "Sqrt", hn_infer_same, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)), NEEDS_RANGES,
              DIVISOR)
DEFINE_RECORD(tan, "Tan", hn_infer_same, .since = { 7, 22 }, .lacks = HN_LACKS(HN_BF16_SINCE(22)))
DEFINE_RECORD(tanh, "Tanh", hn_infer_same, .since = { 1, 6, 13 }, .lacks = HN_LACKS(HN_BF16_SINCE(13)), RANGE(-1, 1))
