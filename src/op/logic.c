/*
 * And, Or, Xor of truth values; BitwiseAnd, BitwiseOr, BitwiseXor and BitShift of integers.
 */
#include "op/elementwise.h"

#define AND_B(T, W, p, q) ((p) != 0 && (q) != 0)
#define OR_B(T, W, p, q) ((p) != 0 || (q) != 0)
#define XOR_B(T, W, p, q) (((p) != 0) != ((q) != 0))
#define AND_I(T, W, p, q) ((p) & (q))
#define OR_I(T, W, p, q) ((p) | (q))
#define XOR_I(T, W, p, q) ((p) ^ (q))
/* Shifts by less than 0 or by the whole width leave nothing but the sign, and of that only to the right. */
#define BITS(T) (8 * (int)sizeof(T))
#define LEFT_S(T, W, p, q) ((q) < 0 || (q) >= BITS(T) ? (W)0 : (W)(p) << (q))
#define LEFT_U(T, W, p, q) ((q) >= (T)BITS(T) ? (W)0 : (W)(p) << (q))
#define RIGHT_S(T, W, p, q) ((p) >> ((q) < 0 || (q) >= BITS(T) ? BITS(T) - 1 : (int)(q)))
#define RIGHT_U(T, W, p, q) ((q) >= (T)BITS(T) ? 0 : (p) >> (q))

#define DEFINE_BOOL(name, M)                           \
    HN_BINARY_LOOP(name, uint8_t, uint8_t, uint8_t, M) \
    static const HnBinaryFn name##_fns[HN_DTYPE_COUNT] = { [HN_BOOL] = name };
#define DEFINE_INT(name, S, U)        \
    HN_BINARY_SINTS(name, HN_SAME, S) \
    HN_BINARY_UINTS(name, HN_SAME, U) \
    static const HnBinaryFn name##_fns[HN_DTYPE_COUNT] = { HN_SINT_ENTRIES(name), HN_UINT_ENTRIES(name) };

DEFINE_BOOL(and, AND_B)
DEFINE_BOOL(or, OR_B)
DEFINE_BOOL(xor, XOR_B)
DEFINE_INT(bit_and, AND_I, AND_I)
DEFINE_INT(bit_or, OR_I, OR_I)
DEFINE_INT(bit_xor, XOR_I, XOR_I)
DEFINE_INT(left, LEFT_S, LEFT_U)
DEFINE_INT(right, RIGHT_S, RIGHT_U)

static HnDim and_dim(HnDim a, HnDim b)
{
    if (hn_dim_is(a, 0) || hn_dim_is(b, 0))
        return hn_dim(0);
    return a.known && b.known ? hn_dim(1) : hn_dim_unknown();
}

static HnDim or_dim(HnDim a, HnDim b)
{
    if ((a.known && a.n != 0) || (b.known && b.n != 0))
        return hn_dim(1);
    return a.known && b.known ? hn_dim(0) : hn_dim_unknown();
}

static HnDim xor_dim(HnDim a, HnDim b)
{
    return a.known && b.known ? hn_dim((a.n != 0) != (b.n != 0)) : hn_dim_unknown();
}

#define DEFINE_RULE(name)                      \
    static void name##_infer(HnInfer *x)       \
    {                                          \
        if (hn_binary_infer(x, HN_BOOL))       \
            hn_infer_map2(x, name##_dim);      \
    }                                          \
    static void name##_ref(HnEval *e)          \
    {                                          \
        hn_binary_run(e, name##_fns, HN_BOOL); \
    }
DEFINE_RULE(and)
DEFINE_RULE(or)
DEFINE_RULE(xor)

static void bits_infer(HnInfer *x)
{
    hn_binary_infer(x, HN_UNDEFINED);
}

static void bitwiseand_ref(HnEval *e)
{
    hn_binary_run(e, bit_and_fns, HN_UNDEFINED);
}

static void bitwiseor_ref(HnEval *e)
{
    hn_binary_run(e, bit_or_fns, HN_UNDEFINED);
}

static void bitwisexor_ref(HnEval *e)
{
    hn_binary_run(e, bit_xor_fns, HN_UNDEFINED);
}

/* mode: 0 left, 1 right */
static void bitshift_bind(HnBind *b, void *params)
{
    static const char *const words[] = { "LEFT", "RIGHT", NULL };
    HnBinary *p = params;
    hn_bind_require(b, "direction");
    p->mode = hn_bind_word(b, "direction", words, 0);
}

static void bitshift_ref(HnEval *e)
{
    const HnBinary *p = e->params;
    hn_binary_run(e, p->mode == 1 ? right_fns : left_fns, HN_UNDEFINED);
}

#define LOGIC_RECORD                                                                                           \
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_COMMUTATIVE, .since = { 1, 7 }, .in = "TT", .out = "b", \
    .T = HN_T_BOOL, .params_size = sizeof(HnBinary), .bind = hn_binary_bind, .cost = hn_cost_elementwise
#define BITS_RECORD                                                                               \
    .in = "TT", .out = "T", .T = HN_T_INTS, .params_size = sizeof(HnBinary), .infer = bits_infer, \
    .cost = hn_cost_elementwise

const HnOp hn_op_and = {
    .name = "And",
    LOGIC_RECORD,
    .infer = and_infer,
    .ref = and_ref,
};

const HnOp hn_op_or = {
    .name = "Or",
    LOGIC_RECORD,
    .infer = or_infer,
    .ref = or_ref,
};

const HnOp hn_op_xor = {
    .name = "Xor",
    LOGIC_RECORD,
    .infer = xor_infer,
    .ref = xor_ref,
};

const HnOp hn_op_bitwiseand = {
    .name = "BitwiseAnd",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_COMMUTATIVE,
    .since = { 18 },
    BITS_RECORD,
    .ref = bitwiseand_ref,
};

const HnOp hn_op_bitwiseor = {
    .name = "BitwiseOr",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_COMMUTATIVE,
    .since = { 18 },
    BITS_RECORD,
    .ref = bitwiseor_ref,
};

const HnOp hn_op_bitwisexor = {
    .name = "BitwiseXor",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_COMMUTATIVE,
    .since = { 18 },
    BITS_RECORD,
    .ref = bitwisexor_ref,
};

const HnOp hn_op_bitshift = {
    .name = "BitShift",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE,
    .since = { 11, 28 },
    .lacks = HN_LACKS({ 'T', 28, 0, HN_T_SINTS }),
    BITS_RECORD,
    .bind = bitshift_bind,
    .ref = bitshift_ref,
};
