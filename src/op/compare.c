/*
 * Equal, Greater, GreaterOrEqual, Less, LessOrEqual: tests of two broadcast operands. NaN equals nothing and has no
 * order; Equal also compares strings.
 */
#include "op/elementwise.h"

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
    .cost = hn_cost_elementwise, .prune = { .kind = HN_P_JOIN }

const HnOp hn_op_equal = {
    .name = "Equal",
    .flags = COMPARE_FLAGS | HN_OP_COMMUTATIVE,
    .since = { 1, 7, 11, 13, 19 },
    COMPARE_RECORD(HN_T_COMPUTE | HN_BIT(HN_STRING)),
    .infer = eq_infer,
    .ref = eq_ref,
};

const HnOp hn_op_greater = {
    .name = "Greater",
    .flags = COMPARE_FLAGS,
    .since = { 1, 7, 9, 13 },
    COMPARE_RECORD(HN_T_NUM),
    .infer = gt_infer,
    .ref = gt_ref,
};

const HnOp hn_op_greaterorequal = {
    .name = "GreaterOrEqual",
    .flags = COMPARE_FLAGS,
    .since = { 12, 16 },
    COMPARE_RECORD(HN_T_NUM),
    .infer = ge_infer,
    .ref = ge_ref,
};

const HnOp hn_op_less = {
    .name = "Less",
    .flags = COMPARE_FLAGS,
    .since = { 1, 7, 9, 13 },
    COMPARE_RECORD(HN_T_NUM),
    .infer = lt_infer,
    .ref = lt_ref,
};

const HnOp hn_op_lessorequal = {
    .name = "LessOrEqual",
    .flags = COMPARE_FLAGS,
    .since = { 12, 16 },
    COMPARE_RECORD(HN_T_NUM),
    .infer = le_infer,
    .ref = le_ref,
};
