/*
 * Pow: x to the power of y. Since opset 12 the exponent may be of another type; the result has the base's. Powers of
 * integers by integers are exact and wrap; a negative exponent gives the quotient 1 / x^|y|, cut off towards zero.
 */
#include <math.h>

#include "op/convert.h"
#include "op/elementwise.h"
#include "op/tape.h"
#include "op/unbind.h"

static uint64_t int_pow(int64_t base, int64_t y)
{
    uint64_t b = (uint64_t)base, r = 1;
    if (y < 0)
        return base == 1 ? 1 : base == -1 ? (y % 2 != 0 ? UINT64_MAX : 1) : 0;
    for (uint64_t n = (uint64_t)y; n > 0; n >>= 1, b *= b)
        if ((n & 1) != 0)
            r *= b;
    return r;
}

static double float_pow(double x, double y)
{
    return y == 2 ? x * x : y == 1 ? x : pow(x, y);
}

#define POWER_I() int_pow(p, q)
#define POWER_F() float_pow((double)p, (double)q)
#define POWER_I32() hn_saturate_i32(pow((double)p, q))
#define POWER_I64() hn_saturate_i64(pow((double)p, q))

/* Base of type T, exponent of type U. */
#define DEFINE(name, T, U, M)                                                          \
    static void name(void *z, const void *x, const void *y, int64_t n, int sx, int sy) \
    {                                                                                  \
        const T *a = x;                                                                \
        const U *b = y;                                                                \
        T *c = z;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                              \
            const T p = a[sx != 0 ? i : 0];                                            \
            const U q = b[sy != 0 ? i : 0];                                            \
            c[i] = (T)M();                                                             \
        }                                                                              \
    }
DEFINE(f32_f32, float, float, POWER_F)
DEFINE(f32_f64, float, double, POWER_F)
DEFINE(f64_f64, double, double, POWER_F)
DEFINE(i32_i64, int32_t, int64_t, POWER_I)
DEFINE(i64_i64, int64_t, int64_t, POWER_I)
DEFINE(i32_f64, int32_t, double, POWER_I32)
DEFINE(i64_f64, int64_t, double, POWER_I64)

static void pow_infer(HnInfer *x)
{
    HnDtype a = hn_infer_dtype(x, 0), b = hn_infer_dtype(x, 1);
    if (x->node->version < 12 && a != HN_UNDEFINED && b != HN_UNDEFINED && a != b) {
        hn_infer_fail(x, HN_ERROR_TYPE, "input 1 is %s, but input 0 is %s", hn_dtype_name(b), hn_dtype_name(a));
        return;
    }
    if (a == HN_UNDEFINED)
        hn_infer_out_unknown(x, 0, a);
    else
        hn_binary_infer(x, a);
}

static const HnBinaryFn same_fns[HN_DTYPE_COUNT] = { [HN_F32] = f32_f32, [HN_F64] = f64_f64, [HN_I64] = i64_i64 };
static const HnBinaryFn float_fns[HN_DTYPE_COUNT] = {
    [HN_F32] = f32_f64, [HN_F64] = f64_f64, [HN_I32] = i32_f64, [HN_I64] = i64_f64
};
static const HnBinaryFn int_fns[HN_DTYPE_COUNT] = { [HN_I32] = i32_i64, [HN_I64] = i64_i64 };

/* Exponents of other types are widened to f64 or, where base and exponent are integers, to i64. */
static void pow_ref(HnEval *e)
{
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 1);
    if (a->dtype == b->dtype && same_fns[a->dtype] != NULL) {
        hn_binary_run(e, same_fns, HN_UNDEFINED);
        return;
    }
    gboolean ints = hn_dtype_in(a->dtype, HN_T_INTS) && hn_dtype_in(b->dtype, HN_T_INTS);
    HnDtype wide = ints ? HN_I64 : HN_F64;
    HnBinaryFn fn = a->dtype < HN_DTYPE_COUNT ? (ints ? int_fns : float_fns)[a->dtype] : NULL;
    if (fn == NULL || !hn_convertible(b->dtype)) {
        hn_eval_fail_type(e, fn == NULL ? 0 : 1);
        return;
    }
    g_autoptr(HnTensor) y = hn_tensor_new_uninit(wide, b->ndim, b->dims, e->budget, &e->error);
    if (y == NULL)
        return;
    hn_convert(wide, y->data, b, &(HnConvert){ TRUE, HN_E8M0_UP });
    hn_binary_run_on(e, fn, a, y, a->dtype);
}

/* Before opset 12 both are floats of one type. */
static void pow_unbind(HnUnbind *u)
{
    HnDtype a = hn_unbind_dtype(u, 0), b = hn_unbind_dtype(u, 1);
    double exponent;
    HnValue *x = hn_unbind_in(u, 0), *y = hn_unbind_in(u, 1);
    if (!hn_unbind_below(u, 12) || a == HN_UNDEFINED || b == HN_UNDEFINED)
        return;
    if (hn_unbind_number(u, 1, &exponent) && exponent == 2 && hn_unbind_rank(u, 1) == 0) {
        hn_unbind_take(u, 0, hn_unbind_op2(u, "Mul", x, x));
    } else if (a != b && hn_dtype_in(a, HN_T_FLOATS)) {
        hn_node_set_in(u->node, 1, hn_unbind_cast(u, y, a));
    }
}

/* n x^(n - 1), and x^n log(x), which is 0 where x is 0. */
static void pow_grad(HnTape *t)
{
    const HnType *of = hn_types_get(t->types, hn_tape_in(t, 1));
    HnValue *n = hn_tape_in(t, 1);
    if (of == NULL || of->dtype != t->dtype)
        n = hn_build_cast(t->build, n, t->dtype);
    if (hn_tape_needs(t, 0))
        hn_tape_give_sum(t, 0, hn_tape_calc(t, "dy * p * Pow(x, p - 1)", &n));
    if (!hn_tape_needs(t, 1))
        return;
    HnValue *dn = hn_tape_calc(t, "Where(x > 0, dy * y * Log(x), 0)", NULL);
    hn_tape_give_sum(t, 1, n != hn_tape_in(t, 1) && of != NULL ? hn_build_cast(t->build, dn, of->dtype) : dn);
}

const HnOp hn_op_pow = {
    .name = "Pow",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_HALF_VIA_F32,
    .since = { 1, 7, 12, 13, 15 },
    .lacks = HN_LACKS({ 'T', 12, 0, HN_BIT(HN_I32) | HN_BIT(HN_I64) }, { 'U', 12, 0, HN_T_INTS }, HN_BF16_SINCE(13),
                      { 'U', 15, 0, HN_BIT(HN_BF16) }),
    .in = "TU",
    .out = "T",
    .T = HN_T_FLOATS | HN_BIT(HN_I32) | HN_BIT(HN_I64),
    .U = HN_T_NUM,
    .unbind = pow_unbind,
    .params_size = sizeof(HnBinary),
    .bind = hn_binary_bind,
    .infer = pow_infer,
    .cost = hn_cost_elementwise,
    .ref = pow_ref,
    .grad = pow_grad,
    .quant = { .kind = HN_Q_ELEMENTWISE },
    .range = { .divisors = 1 },
};
