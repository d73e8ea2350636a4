/*
 * Equal, Greater, GreaterOrEqual, Less, LessOrEqual: tests of two broadcast operands. NaN equals nothing and has no
 * order; Equal also compares strings.
 */
#include "op/elementwise.h"
#include "op/unbind.h"

#define EQ(T, W, p, q) ((p) == (q))
#define GT(T, W, p, q) ((p) > (q))
#define GE(T, W, p, q) ((p) >= (q))
#define LT(T, W, p, q) ((p) < (q))
#define LE(T, W, p, q) ((p) <= (q))
#define EQ_BOOL(T, W, p, q) (((p) != 0) == ((q) != 0))
#define EQ_STRING(T, W, p, q) g_bytes_equal(p, q)

typedef GBytes *String;
typedef uint8_t Bool;

#define DEFINE(name, M)                 \
    HN_BINARY_FLOATS(name, HN_TRUTH, M) \
    HN_BINARY_SINTS(name, HN_TRUTH, M)  \
    HN_BINARY_UINTS(name, HN_TRUTH, M)
#define ENTRIES(name) HN_FLOAT_ENTRIES(name), HN_SINT_ENTRIES(name), HN_UINT_ENTRIES(name)

DEFINE(eq, EQ)
DEFINE(gt, GT)
DEFINE(ge, GE)
DEFINE(lt, LT)
DEFINE(le, LE)
HN_BINARY_LOOP(eq_bool, Bool, Bool, uint8_t, EQ_BOOL)
HN_BINARY_LOOP(eq_string, String, String, uint8_t, EQ_STRING)

static const HnBinaryFn eq_fns[HN_DTYPE_COUNT] = { ENTRIES(eq), [HN_BOOL] = eq_bool, [HN_STRING] = eq_string };
static const HnBinaryFn gt_fns[HN_DTYPE_COUNT] = { ENTRIES(gt) };
static const HnBinaryFn ge_fns[HN_DTYPE_COUNT] = { ENTRIES(ge) };
static const HnBinaryFn lt_fns[HN_DTYPE_COUNT] = { ENTRIES(lt) };
static const HnBinaryFn le_fns[HN_DTYPE_COUNT] = { ENTRIES(le) };

/* Sign of a - b in *order where it is the same for all sizes. */
static gboolean dim_order(HnDim a, HnDim b, int *order)
{
    HnDim d = hn_dim_sub(a, b);
    if (hn_dim_equal(a, b))
        *order = 0;
    else if (d.known)
        *order = d.n > 0 ? 1 : d.n < 0 ? -1 : 0;
    else if (hn_dim_never_negative(a) && b.known && b.n < 0)
        *order = 1;
    else if (hn_dim_never_negative(b) && a.known && a.n < 0)
        *order = -1;
    else
        return FALSE;
    return TRUE;
}

#define DEFINE_RULE(name, test)                                                   \
    static HnDim name##_dim(HnDim a, HnDim b)                                     \
    {                                                                             \
        int order;                                                                \
        return dim_order(a, b, &order) ? hn_dim(order test 0) : hn_dim_unknown(); \
    }                                                                             \
    static void name##_infer(HnInfer *x)                                          \
    {                                                                             \
        if (hn_binary_infer(x, HN_BOOL))                                          \
            hn_infer_map2(x, name##_dim);                                         \
    }                                                                             \
    static void name##_ref(HnEval *e)                                             \
    {                                                                             \
        hn_binary_run(e, name##_fns, HN_BOOL);                                    \
    }
DEFINE_RULE(eq, ==)
DEFINE_RULE(gt, >)
DEFINE_RULE(ge, >=)
DEFINE_RULE(lt, <)
DEFINE_RULE(le, <=)

#define COMPARE_FLAGS HN_OP_ELEMENTWISE | HN_OP_HALF_VIA_F32
#define COMPARE_RECORD(mask)                                                                    \
    .in = "TT", .out = "b", .T = mask, .params_size = sizeof(HnBinary), .bind = hn_binary_bind, \
    .cost = hn_cost_elementwise

/* --- opsets that do not have them -------------------------------------------------------------------------------- */

/* Is an element of a float tensor a number? */
static HnValue *ordered(HnUnbind *u, HnValue *v, HnDtype dtype)
{
    return hn_unbind_op2(u, "Or", hn_unbind_op2(u, "Less", v, hn_unbind_scalar(u, dtype, 1)),
                         hn_unbind_op2(u, "Greater", v, hn_unbind_scalar(u, dtype, 0)));
}

/* Before opset 11 floats are equal where both are numbers and neither is larger. */
static void equal_unbind(HnUnbind *u)
{
    HnDtype dtype = hn_unbind_dtype(u, 0);
    HnValue *a = hn_unbind_in(u, 0), *b = hn_unbind_in(u, 1);
    if (!hn_unbind_below(u, 11) || !hn_dtype_in(dtype, HN_T_FLOATS))
        return;
    HnValue *apart = hn_unbind_op2(u, "Or", hn_unbind_op2(u, "Less", a, b), hn_unbind_op2(u, "Greater", a, b));
    HnValue *numbers = hn_unbind_op2(u, "And", ordered(u, a, dtype), ordered(u, b, dtype));
    hn_unbind_take(u, 0, hn_unbind_op2(u, "And", numbers, hn_unbind_op1(u, "Not", apart)));
}

static void or_equal_unbind(HnUnbind *u)
{
    HnValue *a = hn_unbind_in(u, 0), *b = hn_unbind_in(u, 1);
    if (u->to >= 12)
        return;
    const char *op = strcmp(u->node->op_type, "LessOrEqual") == 0 ? "Less" : "Greater";
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Or", hn_unbind_op2(u, op, a, b), hn_unbind_op2(u, "Equal", a, b)));
}

const HnOp hn_op_equal = {
    .name = "Equal",
    .flags = COMPARE_FLAGS | HN_OP_COMMUTATIVE,
    .since = { 1, 7, 11, 13, 19 },
    .lacks = HN_LACKS(
        { 'T', 11, 0, HN_T_UINTS | HN_BIT(HN_F32) | HN_BIT(HN_I8) | HN_BIT(HN_I16) | HN_BIT(HN_F16) | HN_BIT(HN_F64) },
        HN_BF16_SINCE(13), { 'T', 19, 0, HN_BIT(HN_STRING) }),
    .wide = HN_WIDE_PICKS,
    COMPARE_RECORD(HN_T_COMPUTE | HN_BIT(HN_STRING)),
    .unbind = equal_unbind,
    .infer = eq_infer,
    .ref = eq_ref,
};

const HnOp hn_op_greater = {
    .name = "Greater",
    .flags = COMPARE_FLAGS,
    .since = { 1, 7, 9, 13 },
    .lacks = HN_LACKS({ 'T', 9, 0, HN_T_INTS }, HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    COMPARE_RECORD(HN_T_NUM),
    .infer = gt_infer,
    .ref = gt_ref,
};

const HnOp hn_op_greaterorequal = {
    .name = "GreaterOrEqual",
    .flags = COMPARE_FLAGS,
    .since = { 12, 16 },
    .lacks = HN_LACKS(HN_BF16_SINCE(16)),
    .wide = HN_WIDE_PICKS,
    COMPARE_RECORD(HN_T_NUM),
    .unbind = or_equal_unbind,
    .infer = ge_infer,
    .ref = ge_ref,
};

const HnOp hn_op_less = {
    .name = "Less",
    .flags = COMPARE_FLAGS,
    .since = { 1, 7, 9, 13 },
    .lacks = HN_LACKS({ 'T', 9, 0, HN_T_INTS }, HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    COMPARE_RECORD(HN_T_NUM),
    .infer = lt_infer,
    .ref = lt_ref,
};

const HnOp hn_op_lessorequal = {
    .name = "LessOrEqual",
    .flags = COMPARE_FLAGS,
    .since = { 12, 16 },
    .lacks = HN_LACKS(HN_BF16_SINCE(16)),
    .wide = HN_WIDE_PICKS,
    COMPARE_RECORD(HN_T_NUM),
    .unbind = or_equal_unbind,
    .infer = le_infer,
    .ref = le_ref,
};
