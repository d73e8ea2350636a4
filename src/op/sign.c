/*
 * Operators of one number that keep to its type: Abs, Neg, Sign, Relu, Erf, Shrink, Not, BitwiseNot; and the tests
 * IsInf and IsNaN. The magnitude of the smallest integer does not exist and wraps to itself.
 */
#include <float.h>
#include <math.h>

#include "op/activation.h"
#include "op/convert.h"
#include "op/elementwise.h"
#include "op/sign.h"
#include "op/types.h"
#include "op/tape.h"
#include "op/unbind.h"

#define SIGN_FLAGS HN_OP_ELEMENTWISE | HN_OP_INPLACE
#define SIGN_COMMON .infer = hn_infer_same, .cost = hn_cost_elementwise

#define LOOP(T, EXPR)                    \
    const T *from = t->data;             \
    T *to = y;                           \
    for (int64_t i = 0; i < t->n; i++) { \
        const T v = from[i];             \
        to[i] = (T)(EXPR);               \
    }
#define SINT_CASES(M)           \
    HN_CASE(HN_I8, int8_t, M)   \
    HN_CASE(HN_I16, int16_t, M) \
    HN_CASE(HN_I32, int32_t, M) \
    HN_CASE(HN_I64, int64_t, M)
#define UINT_CASES(M)            \
    HN_CASE(HN_U8, uint8_t, M)   \
    HN_CASE(HN_U16, uint16_t, M) \
    HN_CASE(HN_U32, uint32_t, M) \
    HN_CASE(HN_U64, uint64_t, M)
#define FLOAT_CASES(M)        \
    HN_CASE(HN_F32, float, M) \
    HN_CASE(HN_F64, double, M)
#define FAIL_CASE                \
    default:                     \
        hn_eval_fail_type(e, 0); \
        break;

#define BEGIN(symbol)                         \
    static void symbol##_ref(HnEval *e)       \
    {                                         \
        const HnTensor *t = hn_eval_in(e, 0); \
        void *y = hn_eval_out_like(e, 0, t);  \
        if (y == NULL)                        \
            return;                           \
        switch (t->dtype) {
#define END   \
    FAIL_CASE \
    }         \
    }

#define ABS_F(T) LOOP(T, fabs((double)v))
#define ABS_S(T) LOOP(T, v < 0 ? 0 - (uint64_t)v : (uint64_t)v)
#define COPY(T) LOOP(T, v)
BEGIN(abs)
FLOAT_CASES(ABS_F)
SINT_CASES(ABS_S)
UINT_CASES(COPY)
END

#define NEG_F(T) LOOP(T, -v)
#define NEG_S(T) LOOP(T, 0 - (uint64_t)v)
BEGIN(neg)
FLOAT_CASES(NEG_F)
SINT_CASES(NEG_S)
END

#define SIGN_F(T) LOOP(T, v > 0 ? 1 : v < 0 ? -1 : v) /* 0 and NaN as they are */
#define SIGN_S(T) LOOP(T, (v > 0) - (v < 0))
#define SIGN_U(T) LOOP(T, v != 0)
BEGIN(sign)
FLOAT_CASES(SIGN_F)
SINT_CASES(SIGN_S)
UINT_CASES(SIGN_U)
END

#define RELU(T) LOOP(T, v <= 0 ? 0 : v) /* NaN stays */
BEGIN(relu)
FLOAT_CASES(RELU)
SINT_CASES(RELU)
END

#define ERF(T) LOOP(T, erf((double)v))
BEGIN(erf)
FLOAT_CASES(ERF)
SINT_CASES(ERF)
UINT_CASES(ERF)
END

static void not_ref(HnEval *e)
{
    const HnTensor *t = hn_eval_in(e, 0);
    void *y = hn_eval_out_like(e, 0, t);
    if (y == NULL)
        return;
    LOOP(uint8_t, v == 0)
}

#define INVERT(T) LOOP(T, ~v)
BEGIN(bitwisenot)
SINT_CASES(INVERT)
UINT_CASES(INVERT)
END

    static HnDim
    neg_dim(HnDim d)
{
    return hn_dim_sub(hn_dim(0), d);
}

static HnDim abs_dim(HnDim d)
{
    return hn_dim_never_negative(d) ? d : d.known && d.n != INT64_MIN ? hn_dim(-d.n) : hn_dim_unknown();
}

static HnDim not_dim(HnDim d)
{
    return d.known ? hn_dim(d.n == 0) : hn_dim_unknown();
}

static void neg_infer(HnInfer *x)
{
    hn_infer_same(x);
    hn_infer_map1(x, neg_dim);
}

static void abs_infer(HnInfer *x)
{
    hn_infer_same(x);
    hn_infer_map1(x, abs_dim);
}

static void not_infer(HnInfer *x)
{
    hn_infer_same(x);
    hn_infer_map1(x, not_dim);
}

#define ONE_TO_ONE(mask) .in = "T", .out = "T", .T = mask

static void abs_grad(HnTape *t)
{
    hn_tape_map(t, "dy * Sign(x)");
}

static void neg_grad(HnTape *t)
{
    hn_tape_map(t, "-dy");
}

static void sign_grad(HnTape *t)
{
    hn_tape_steps(t);
}

static void relu_grad(HnTape *t)
{
    hn_tape_map(t, "Where(y > 0, dy, 0)");
}

/* 2 / sqrt(pi) e^(-x^2) */
static void erf_grad(HnTape *t)
{
    hn_tape_map(t, "dy * 1.1283791670955125739 * Exp(-x * x)");
}

const HnOp hn_op_abs = {
    .name = "Abs",
    .flags = SIGN_FLAGS | HN_OP_HALF_VIA_F32,
    .since = { 1, 6, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    ONE_TO_ONE(HN_T_NUM),
    .infer = abs_infer,
    .cost = hn_cost_elementwise,
    .ref = abs_ref,
    .grad = abs_grad,
    .channels = { .unit = HN_UNIT_SAME },
};

const HnOp hn_op_neg = {
    .name = "Neg",
    .flags = SIGN_FLAGS | HN_OP_HALF_VIA_F32,
    .since = { 1, 6, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    ONE_TO_ONE(HN_T_FLOATS | HN_T_SINTS),
    .infer = neg_infer,
    .cost = hn_cost_elementwise,
    .ref = neg_ref,
    .grad = neg_grad,
    .channels = { .unit = HN_UNIT_SAME },
};

const HnOp hn_op_sign = {
    .name = "Sign",
    .flags = SIGN_FLAGS | HN_OP_HALF_VIA_F32,
    .since = { 9, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    ONE_TO_ONE(HN_T_NUM),
    SIGN_COMMON,
    .ref = sign_ref,
    .grad = sign_grad,
    .quant = { .kind = HN_Q_FIXED_RANGE, .lo = -1, .hi = 1 },
};

const HnOp hn_op_relu = {
    .name = "Relu",
    .flags = SIGN_FLAGS | HN_OP_HALF_VIA_F32,
    .since = { 1, 6, 13, 14 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13), { 'T', 14, 0, HN_T_SINTS }),
    .wide = HN_WIDE_PICKS,
    ONE_TO_ONE(HN_T_FLOATS | HN_T_SINTS),
    SIGN_COMMON,
    .ref = relu_ref,
    .grad = relu_grad,
    .quant = { .kind = HN_Q_ELEMENTWISE, .clamps = TRUE },
    .channels = { .unit = HN_UNIT_SAME },
};

const HnOp hn_op_erf = {
    .name = "Erf",
    .flags = SIGN_FLAGS | HN_OP_HALF_VIA_F32,
    .since = { 9, 13 },
    .lacks = HN_LACKS({ 'T', 0, 13, HN_T_INTS }, HN_BF16_SINCE(13)),
    ONE_TO_ONE(HN_T_NUM),
    SIGN_COMMON,
    .ref = erf_ref,
    .grad = erf_grad,
    .quant = { .kind = HN_Q_FIXED_RANGE, .lo = -1, .hi = 1 },
};

const HnOp hn_op_not = {
    .name = "Not",
    .flags = SIGN_FLAGS,
    .since = { 1 },
    ONE_TO_ONE(HN_T_BOOL),
    .infer = not_infer,
    .cost = hn_cost_elementwise,
    .ref = not_ref,
};

const HnOp hn_op_bitwisenot = {
    .name = "BitwiseNot",
    .flags = SIGN_FLAGS,
    .since = { 18 },
    ONE_TO_ONE(HN_T_INTS),
    SIGN_COMMON,
    .ref = bitwisenot_ref,
};

/* --- Shrink ------------------------------------------------------------------------------------------------------ */

static void shrink_bind(HnBind *b, void *params)
{
    HnActivation *p = params; /* a: lambd, b: bias */
    p->a = (double)hn_bind_float(b, "lambd", 0.5f);
    p->b = (double)hn_bind_float(b, "bias", 0.0f);
}

static double shrink(const HnActivation *p, double v)
{
    return v < -p->a ? v + p->b : v > p->a ? v - p->b : isnan(v) ? v : 0;
}

/* Integers wrap as in Cast. */
static void shrink_ref(HnEval *e)
{
    const HnActivation *p = e->params;
    const HnTensor *t = hn_eval_in(e, 0);
    void *y = hn_eval_out_like(e, 0, t);
    if (y == NULL)
        return;
#define SHRINK_F(T) LOOP(T, shrink(p, (double)v))
#define SHRINK_I(T) LOOP(T, hn_wrap_f64(shrink(p, (double)v)))
    switch (t->dtype) {
        FLOAT_CASES(SHRINK_F)
        SINT_CASES(SHRINK_I)
        UINT_CASES(SHRINK_I)
        FAIL_CASE
    }
#undef SHRINK_F
#undef SHRINK_I
}

static void shrink_grad(HnTape *t)
{
    t->number[0] = ((const HnActivation *)t->params)->a;
    hn_tape_map(t, "Where(Abs(x) > a, dy, 0)");
}

const HnOp hn_op_shrink = {
    .name = "Shrink",
    .flags = SIGN_FLAGS | HN_OP_HALF_VIA_F32,
    .since = { 9 },
    ONE_TO_ONE(HN_T_NUM),
    SIGN_COMMON,
    .params_size = sizeof(HnActivation),
    .bind = shrink_bind,
    .ref = shrink_ref,
    .grad = shrink_grad,
};

/* --- IsInf, IsNaN ------------------------------------------------------------------------------------------------ */

static void isinf_bind(HnBind *b, void *params)
{
    HnIs *p = params;
    p->negative = hn_bind_bool(b, "detect_negative", TRUE);
    p->positive = hn_bind_bool(b, "detect_positive", TRUE);
}

static void isnan_bind(HnBind *b, void *params)
{
    (void)b;
    HnIs *p = params;
    p->nan = TRUE;
}

static void is_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, HN_BOOL, 0);
}

static void is_ref(HnEval *e)
{
    const HnIs p = *(const HnIs *)e->params;
    const HnTensor *t = hn_eval_in(e, 0);
    uint8_t *y = hn_eval_out(e, 0, HN_BOOL, t->ndim, t->dims);
    if (y == NULL)
        return;
#define IS(T)                          \
    const T *v = t->data;              \
    for (int64_t i = 0; i < t->n; i++) \
        y[i] = (uint8_t)(p.nan ? isnan(v[i]) != 0 : isinf(v[i]) && (v[i] > 0 ? p.positive : p.negative));
    switch (t->dtype) {
        FLOAT_CASES(IS)
    default: /* 8 bits */
        for (int64_t i = 0; i < t->n; i++) {
            double v = hn_tensor_get_f64(t, i);
            y[i] = (uint8_t)(p.nan ? isnan(v) != 0 : isinf(v) && (v > 0 ? p.positive : p.negative));
        }
        break;
    }
#undef IS
}

static void isinf_unbind(HnUnbind *u)
{
    const HnIs *p = u->params;
    HnDtype dtype;
    if (u->to >= 10 && !(u->to < 20 && hn_unbind_dtype(u, 0) == HN_BF16))
        return;
    HnValue *x = hn_unbind_real(u, 0, &dtype);
    if (x == NULL)
        return;
    double most = dtype == HN_F32 ? (double)FLT_MAX : DBL_MAX;
    HnValue *above = hn_unbind_op2(u, "Greater", x, hn_unbind_scalar(u, dtype, p->positive ? most : INFINITY));
    HnValue *below = hn_unbind_op2(u, "Less", x, hn_unbind_scalar(u, dtype, p->negative ? -most : -INFINITY));
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Or", above, below));
}

/* Any number is below 1 or above 0. */
static void isnan_unbind(HnUnbind *u)
{
    HnDtype dtype;
    HnValue *x = u->to < 9 ? hn_unbind_real(u, 0, &dtype) : NULL;
    if (x == NULL)
        return;
    HnValue *below = hn_unbind_op2(u, "Less", x, hn_unbind_scalar(u, dtype, 1));
    HnValue *above = hn_unbind_op2(u, "Greater", x, hn_unbind_scalar(u, dtype, 0));
    hn_unbind_take(u, 0, hn_unbind_op1(u, "Not", hn_unbind_op2(u, "Or", below, above)));
}

#define IS_RECORD                                                                                       \
    .flags = HN_OP_ELEMENTWISE | HN_OP_HALF_VIA_F32, .in = "T", .out = "b", .T = HN_T_FLOATS | HN_T_F8, \
    .params_size = sizeof(HnIs), .infer = is_infer, .cost = hn_cost_elementwise, .ref = is_ref

const HnOp hn_op_isinf = {
    .name = "IsInf",
    .unbind = isinf_unbind,
    IS_RECORD,
    .since = { 10, 20 },
    .lacks = HN_LACKS({ 'T', 20, 0, HN_T_F8S | HN_BIT(HN_F16) | HN_BIT(HN_BF16) }),
    .wide = HN_WIDE_PICKS,
    .bind = isinf_bind,
};

const HnOp hn_op_isnan = {
    .name = "IsNaN",
    .unbind = isnan_unbind,
    IS_RECORD,
    .since = { 9, 13, 20 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13), { 'T', 20, 0, HN_T_F8S }),
    .wide = HN_WIDE_PICKS,
    .bind = isnan_bind,
};
