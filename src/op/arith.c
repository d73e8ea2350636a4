/*
 * Add, Sub, Mul, Div, Mod: arithmetic on two broadcast operands; and the machinery of all binary operators. Integers
 * wrap; a quotient is cut off towards zero, and an integer division by zero gives 0.
 */
#include <math.h>
#include <string.h>

#include "op/elementwise.h"
#include "op/tape.h"
#include "op/unbind.h"

/* --- walking over broadcast operands --------------------------------------------------------------------------------
 */

/* Can axis i (inner) be counted together with the axis kept last in p? */
static gboolean mergeable(const HnBroadcast *p, int64_t dim, int64_t (*strides)[HN_MAX_RANK], int i)
{
    int last = p->ndim - 1;
    for (int j = 0; j < p->k; j++)
        if (p->strides[j][last] != strides[j][i] * dim)
            return FALSE;
    return p->ndim > 0;
}

void hn_broadcast_start(HnBroadcast *p, int ndim, const int64_t *dims, int k, int64_t (*strides)[HN_MAX_RANK])
{
    *p = (HnBroadcast){ .n = 1, .total = hn_span(dims, 0, ndim), .k = k };
    for (int i = 0; i < ndim; i++) {
        if (dims[i] == 1)
            continue;
        if (p->ndim > 0 && mergeable(p, dims[i], strides, i))
            p->dims[p->ndim - 1] *= dims[i];
        else
            p->dims[p->ndim++] = dims[i];
        for (int j = 0; j < k; j++)
            p->strides[j][p->ndim - 1] = strides[j][i];
    }
    for (int j = 0; j < k; j++)
        p->rows[j] = p->strides[j];
    if (p->ndim == 0)
        return;
    p->ndim--;
    p->n = p->dims[p->ndim];
    for (int j = 0; j < k; j++)
        p->step[j] = p->strides[j][p->ndim] != 0;
}

size_t hn_element_size(HnDtype dtype)
{
    return dtype == HN_STRING ? sizeof(GBytes *) : hn_dtype_size(dtype);
}

void hn_binary_apply(HnBinaryFn fn, int ndim, const int64_t *dims, void *z, size_t z_size, const void *x, size_t x_size,
                     const void *y, size_t y_size, int64_t (*strides)[HN_MAX_RANK])
{
    HnBroadcast p;
    hn_broadcast_start(&p, ndim, dims, 2, strides);
    if (p.total == 0)
        return;
    char *to = z;
    do {
        fn(to, (const char *)x + (size_t)p.off[0] * x_size, (const char *)y + (size_t)p.off[1] * y_size, p.n, p.step[0],
           p.step[1]);
        to += (size_t)p.n * z_size;
    } while (hn_broadcast_next(&p));
}

/* --- binary operators ------------------------------------------------------------------------------------------------
 */

void hn_binary_bind(HnBind *b, void *params)
{
    HnBinary *p = params;
    p->limited = b->version < 7;
    if (!p->limited)
        return;
    p->broadcast = hn_bind_bool(b, "broadcast", FALSE);
    p->has_axis = hn_bind_has(b, "axis");
    p->axis = hn_bind_int(b, "axis", 0);
}

/* First axis of the first operand against which the second one is laid; < 0: it does not fit. */
static int64_t limited_axis(const HnBinary *p, int rank_a, int rank_b)
{
    int64_t axis = !p->has_axis ? rank_a - rank_b : p->axis < 0 && p->axis >= -rank_a ? p->axis + rank_a : p->axis;
    return rank_b <= rank_a && axis >= 0 && axis <= rank_a - rank_b ? axis : -1;
}

static gboolean limited_infer(HnInfer *x, HnDtype dtype)
{
    const HnBinary *p = x->params;
    int ra = hn_infer_rank(x, 0), rb = hn_infer_rank(x, 1);
    if (ra >= 0 && rb >= 0) {
        gboolean one = rb <= ra && p->broadcast;
        for (int i = 0; i < rb; i++)
            one = one && hn_dim_is(hn_infer_dim(x, 1, i), 1);
        int64_t axis = limited_axis(p, ra, rb);
        if (!one && (p->broadcast ? axis < 0 : ra != rb)) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "%d axes of input 1 do not fit the %d axes of input 0", rb, ra);
            return FALSE;
        }
        for (int i = 0; i < rb && !one; i++) {
            HnDim da = hn_infer_dim(x, 0, (int)axis + i), db = hn_infer_dim(x, 1, i);
            if (hn_dim_differ(da, db) && !(p->broadcast && hn_dim_is(db, 1))) {
                hn_infer_fail(x, HN_ERROR_SHAPE, "axis %d of input 1 does not fit axis %d of input 0%s", i,
                              (int)axis + i, p->broadcast ? "" : ", and attribute 'broadcast' is not set");
                return FALSE;
            }
        }
    }
    if (ra < 0)
        hn_infer_out_unknown(x, 0, dtype);
    else
        hn_infer_out_shape_of(x, 0, dtype, 0);
    return TRUE;
}

gboolean hn_binary_infer(HnInfer *x, HnDtype dtype)
{
    const HnBinary *p = x->params;
    HnDim dims[HN_MAX_RANK];
    if (dtype == HN_UNDEFINED)
        dtype = hn_infer_dtype(x, 0) != HN_UNDEFINED ? hn_infer_dtype(x, 0) : hn_infer_dtype(x, 1);
    if (p->limited)
        return limited_infer(x, dtype);
    int rank = hn_infer_broadcast(x, 0, 1, dims);
    if (x->error != NULL)
        return FALSE;
    hn_infer_out(x, 0, dtype, rank, dims);
    return TRUE;
}

/* Strides of b laid against a; FALSE: failed. */
static gboolean limited_strides(HnEval *e, const HnBinary *p, const HnTensor *a, const HnTensor *b, int64_t *strides)
{
    memset(strides, 0, HN_MAX_RANK * sizeof *strides);
    if (a->ndim > HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", a->ndim, HN_MAX_RANK);
        return FALSE;
    }
    if (p->broadcast && b->n == 1 && b->ndim <= a->ndim)
        return TRUE;
    int64_t axis = limited_axis(p, a->ndim, b->ndim), s = 1;
    gboolean fits = p->broadcast ? axis >= 0 : a->ndim == b->ndim;
    axis = p->broadcast ? axis : 0;
    for (int i = b->ndim - 1; i >= 0 && fits; i--) {
        fits = b->dims[i] == a->dims[axis + i] || (p->broadcast && b->dims[i] == 1);
        strides[axis + i] = b->dims[i] == 1 ? 0 : s;
        s *= b->dims[i];
    }
    if (!fits)
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shape of input 1 does not fit that of input 0");
    return fits;
}

void hn_eval_fail_type(HnEval *e, int i)
{
    hn_eval_fail(e, HN_ERROR_TYPE, "input %d cannot be %s", i, hn_dtype_name(e->in[i]->dtype));
}

void hn_binary_run_on(HnEval *e, HnBinaryFn fn, const HnTensor *a, const HnTensor *b, HnDtype dtype)
{
    const HnBinary *p = e->params;
    int64_t dims[HN_MAX_RANK], strides[2][HN_MAX_RANK];
    int ndim = a->ndim;
    if (p->limited) {
        if (!limited_strides(e, p, a, b, strides[1]))
            return;
        memcpy(dims, a->dims, (size_t)ndim * sizeof *dims);
    } else {
        if ((ndim = hn_eval_broadcast(e, a, b, dims)) < 0)
            return;
        hn_broadcast_strides(b, ndim, strides[1]);
    }
    hn_broadcast_strides(a, ndim, strides[0]);
    void *z = hn_eval_out(e, 0, dtype, ndim, dims);
    if (z != NULL)
        hn_binary_apply(fn, ndim, dims, z, hn_element_size(dtype), a->data, hn_element_size(a->dtype), b->data,
                        hn_element_size(b->dtype), strides);
}

void hn_binary_run(HnEval *e, const HnBinaryFn *fns, HnDtype dtype)
{
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 1);
    HnBinaryFn fn = (unsigned)a->dtype < HN_DTYPE_COUNT ? fns[a->dtype] : NULL;
    if (fn == NULL || a->dtype != b->dtype)
        hn_eval_fail_type(e, fn == NULL ? 0 : 1);
    else
        hn_binary_run_on(e, fn, a, b, dtype == HN_UNDEFINED ? a->dtype : dtype);
}

/* --- following contents ----------------------------------------------------------------------------------------------
 */

HnContents *hn_infer_contents(const HnInfer *x, int i)
{
    if (i >= x->n_in)
        return NULL;
    const HnTensor *t = x->value[i];
    if (t == NULL && x->contents[i] != NULL) {
        HnContents *c = hn_contents_new(x->contents[i]->rank, x->contents[i]->n);
        memcpy(c->d, x->contents[i]->d, (size_t)c->n * sizeof *c->d);
        return c;
    }
    if (t == NULL || t->ndim > 1 || t->n > HN_CONTENTS_MAX || !hn_dtype_in(t->dtype, HN_T_COMPUTE))
        return NULL;
    HnContents *c = hn_contents_new(t->ndim, (int)t->n);
    for (int k = 0; k < c->n; k++) {
        double v = hn_tensor_get_f64(t, k);
        gboolean whole = t->dtype == HN_U64 ? v < 0x1p63 : hn_dtype_in(t->dtype, HN_T_INTS) || v == floor(v);
        if (whole && fabs(v) <= 0x1p63)
            c->d[k] = hn_dim(hn_tensor_get_i64(t, k));
    }
    return c;
}

gboolean hn_dim_never_negative(HnDim d)
{
    return d.known ? d.n >= 0 : d.sym != NULL && strchr(d.sym, '-') == NULL;
}

HnDim hn_dim_fit(HnDim d, HnDtype dtype)
{
    if (!d.known)
        return d;
    unsigned bits = hn_dtype_bits(dtype);
    int64_t hi = INT64_MAX, lo = INT64_MIN;
    if (dtype == HN_BOOL)
        lo = 0, hi = 1;
    else if (hn_dtype_in(dtype, HN_T_UINTS))
        lo = 0, hi = bits < 64 ? ((int64_t)1 << bits) - 1 : INT64_MAX;
    else if (hn_dtype_in(dtype, HN_T_SINTS) && bits < 64)
        hi = ((int64_t)1 << (bits - 1)) - 1, lo = -hi - 1;
    else if (!hn_dtype_in(dtype, HN_T_INTS)) { /* as many bits as the shortest mantissa around: bf16 has 8 */
        hi = dtype == HN_F64 ? (int64_t)1 << 53 : dtype == HN_F32 ? 1 << 24 : dtype == HN_F16 ? 1 << 11 : 1 << 8;
        lo = -hi;
    }
    return d.n >= lo && d.n <= hi ? d : hn_dim_unknown();
}

HnDim hn_dim_same(HnDim d)
{
    return d;
}

void hn_infer_map1(HnInfer *x, HnDim (*fn)(HnDim a))
{
    g_autofree HnContents *a = hn_infer_contents(x, 0);
    if (a == NULL || x->error != NULL || x->n_out < 1 || x->out[0] == NULL)
        return;
    HnContents *c = hn_contents_new(a->rank, a->n);
    for (int k = 0; k < c->n; k++)
        c->d[k] = hn_dim_fit(fn(a->d[k]), x->out[0]->dtype);
    hn_infer_out_contents(x, 0, c);
}

void hn_infer_map2(HnInfer *x, HnDim (*fn)(HnDim a, HnDim b))
{
    g_autofree HnContents *a = hn_infer_contents(x, 0);
    g_autofree HnContents *b = hn_infer_contents(x, 1);
    if (a == NULL || b == NULL || x->error != NULL || x->n_out < 1 || x->out[0] == NULL)
        return;
    if (a->n != b->n && a->n != 1 && b->n != 1)
        return;
    HnContents *c = hn_contents_new(MAX(a->rank, b->rank), a->n == 1 ? b->n : a->n);
    for (int k = 0; k < c->n; k++)
        c->d[k] = hn_dim_fit(fn(a->d[a->n == 1 ? 0 : k], b->d[b->n == 1 ? 0 : k]), x->out[0]->dtype);
    hn_infer_out_contents(x, 0, c);
}

/* --- the operators ----------------------------------------------------------------------------------------------- */

#define ADD_F(T, W, p, q) ((p) + (q))
#define SUB_F(T, W, p, q) ((p) - (q))
#define MUL_F(T, W, p, q) ((p) * (q))
#define DIV_F(T, W, p, q) ((p) / (q))
#define ADD_I(T, W, p, q) ((W)(p) + (W)(q))
#define SUB_I(T, W, p, q) ((W)(p) - (W)(q))
#define MUL_I(T, W, p, q) ((W)(p) * (W)(q))
/* the smallest number divided by -1 wraps */
#define DIV_S(T, W, p, q) ((q) == 0 ? (W)0 : (q) == -1 ? (W)0 - (W)(p) : (W)((p) / (q)))
#define DIV_U(T, W, p, q) ((q) == 0 ? 0 : (p) / (q))
/* with the sign of the divisor, or of the dividend (rem) */
#define MOD_S(T, W, p, q) \
    ((q) == 0 || (q) == -1 ? 0 : (p) % (q) + ((p) % (q) != 0 && ((p) % (q) < 0) != ((q) < 0) ? (q) : 0))
#define MOD_U(T, W, p, q) ((q) == 0 ? 0 : (p) % (q))
#define REM_S(T, W, p, q) ((q) == 0 || (q) == -1 ? 0 : (p) % (q))
#define MOD_F(T, W, p, q) floor_mod((double)(p), (double)(q))
#define REM_F(T, W, p, q) fmod((double)(p), (double)(q))

static double floor_mod(double p, double q)
{
    double m = fmod(p, q);
    if (m == 0)
        return copysign(0.0, q);
    return (m < 0) != (q < 0) ? m + q : m;
}

#define DEFINE(name, F, S, U)                                                                             \
    HN_BINARY_FLOATS(name, HN_SAME, F)                                                                    \
    HN_BINARY_SINTS(name, HN_SAME, S)                                                                     \
    HN_BINARY_UINTS(name, HN_SAME, U)                                                                     \
    static const HnBinaryFn name##_fns[HN_DTYPE_COUNT] = { HN_FLOAT_ENTRIES(name), HN_SINT_ENTRIES(name), \
                                                           HN_UINT_ENTRIES(name) };
DEFINE(add, ADD_F, ADD_I, ADD_I)
DEFINE(sub, SUB_F, SUB_I, SUB_I)
DEFINE(mul, MUL_F, MUL_I, MUL_I)
DEFINE(div, DIV_F, DIV_S, DIV_U)
DEFINE(mod, MOD_F, MOD_S, MOD_U)
DEFINE(rem, REM_F, REM_S, MOD_U)

/* Quotients of integers: floor and truncation agree where nothing is negative. Of floats: exact ones only. */
static HnDim div_int(HnDim a, HnDim b)
{
    if (a.known && b.known) {
        if (b.n == 0 || (b.n == -1 && a.n == INT64_MIN))
            return hn_dim_unknown();
        return hn_dim(a.n / b.n);
    }
    return hn_dim_never_negative(a) && hn_dim_never_negative(b) ? hn_dim_floor_div(a, b) : hn_dim_unknown();
}

static HnDim div_exact(HnDim a, HnDim b)
{
    if (a.known && b.known)
        return b.n > 0 && a.n % b.n == 0 ? hn_dim(a.n / b.n) : hn_dim_unknown();
    HnDim q = hn_dim_never_negative(a) && hn_dim_never_negative(b) ? hn_dim_floor_div(a, b) : hn_dim_unknown();
    return hn_dim_equal(hn_dim_mul(q, b), a) ? q : hn_dim_unknown();
}

static HnDim mod_dim(HnDim a, HnDim b)
{
    if (!hn_dim_never_negative(a) || !hn_dim_never_negative(b) || hn_dim_is(b, 0))
        return hn_dim_unknown();
    return hn_dim_mod(a, b);
}

static void add_infer(HnInfer *x)
{
    if (hn_binary_infer(x, HN_UNDEFINED))
        hn_infer_map2(x, hn_dim_add);
}

static void sub_infer(HnInfer *x)
{
    if (hn_binary_infer(x, HN_UNDEFINED))
        hn_infer_map2(x, hn_dim_sub);
}

static void mul_infer(HnInfer *x)
{
    if (hn_binary_infer(x, HN_UNDEFINED))
        hn_infer_map2(x, hn_dim_mul);
}

static void div_infer(HnInfer *x)
{
    if (hn_binary_infer(x, HN_UNDEFINED))
        hn_infer_map2(x, hn_dtype_in(hn_infer_dtype(x, 0), HN_T_INTS) ? div_int : div_exact);
}

static void add_ref(HnEval *e)
{
    hn_binary_run(e, add_fns, HN_UNDEFINED);
}

static void sub_ref(HnEval *e)
{
    hn_binary_run(e, sub_fns, HN_UNDEFINED);
}

static void mul_ref(HnEval *e)
{
    hn_binary_run(e, mul_fns, HN_UNDEFINED);
}

static void div_ref(HnEval *e)
{
    hn_binary_run(e, div_fns, HN_UNDEFINED);
}

static void add_grad(HnTape *t)
{
    hn_tape_operand(t, 0, "dy");
    hn_tape_operand(t, 1, "dy");
}

static void sub_grad(HnTape *t)
{
    hn_tape_operand(t, 0, "dy");
    hn_tape_operand(t, 1, "-dy");
}

static void mul_grad(HnTape *t)
{
    hn_tape_operand(t, 0, "dy * x1");
    hn_tape_operand(t, 1, "dy * x0");
}

static void div_grad(HnTape *t)
{
    hn_tape_operand(t, 0, "dy / x1");
    hn_tape_operand(t, 1, "-dy * y / x1");
}

#define ARITH_FLAGS HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_HALF_VIA_F32
#define ARITH_RECORD                                                                                      \
    .since = { 1, 6, 7, 13, 14 }, .in = "TT", .out = "T", .T = HN_T_NUM, .params_size = sizeof(HnBinary), \
    .bind = hn_binary_bind, .cost = hn_cost_elementwise

const HnOp hn_op_add = {
    .name = "Add",
    .lacks =
        HN_LACKS(HN_BF16_SINCE(13), { 'T', 14, 0, HN_BIT(HN_U8) | HN_BIT(HN_I8) | HN_BIT(HN_U16) | HN_BIT(HN_I16) }),
    .wide = HN_WIDE_WRAPS,
    .flags = ARITH_FLAGS | HN_OP_COMMUTATIVE,
    ARITH_RECORD,
    .infer = add_infer,
    .quant = { .kind = HN_Q_ELEMENTWISE, .bytes = HN_QB_PAIR },
    .ref = add_ref,
    .grad = add_grad,
    .range = { .addends = 1 | 1 << 1 },
    .channels = { .unit = HN_UNIT_SUM },
    .trained = 1 | 1 << 1,
};

const HnOp hn_op_sub = {
    .name = "Sub",
    .lacks =
        HN_LACKS(HN_BF16_SINCE(13), { 'T', 14, 0, HN_BIT(HN_U8) | HN_BIT(HN_I8) | HN_BIT(HN_U16) | HN_BIT(HN_I16) }),
    .wide = HN_WIDE_WRAPS,
    .flags = ARITH_FLAGS,
    ARITH_RECORD,
    .infer = sub_infer,
    .quant = { .kind = HN_Q_ELEMENTWISE, .bytes = HN_QB_PAIR },
    .ref = sub_ref,
    .grad = sub_grad,
    .range = { .addends = 1 | 1 << 1 },
    .trained = 1 | 1 << 1,
};

const HnOp hn_op_mul = {
    .name = "Mul",
    .lacks =
        HN_LACKS(HN_BF16_SINCE(13), { 'T', 14, 0, HN_BIT(HN_U8) | HN_BIT(HN_I8) | HN_BIT(HN_U16) | HN_BIT(HN_I16) }),
    .wide = HN_WIDE_WRAPS,
    .flags = ARITH_FLAGS | HN_OP_COMMUTATIVE,
    ARITH_RECORD,
    .infer = mul_infer,
    .quant = { .kind = HN_Q_ELEMENTWISE, .bytes = HN_QB_PAIR },
    .ref = mul_ref,
    .grad = mul_grad,
    .channels = { .unit = HN_UNIT_CONSTANT },
    .trained = 1 | 1 << 1,
};

const HnOp hn_op_div = {
    .name = "Div",
    .lacks =
        HN_LACKS(HN_BF16_SINCE(13), { 'T', 14, 0, HN_BIT(HN_U8) | HN_BIT(HN_I8) | HN_BIT(HN_U16) | HN_BIT(HN_I16) }),
    .wide = HN_WIDE_WRAPS,
    .flags = ARITH_FLAGS,
    ARITH_RECORD,
    .infer = div_infer,
    .quant = { .kind = HN_Q_ELEMENTWISE },
    .ref = div_ref,
    .grad = div_grad,
    .range = { .divisors = 2 },
};

/* mode: 0 floor, 1 cut off (as C's fmod), 2 floor of floats at an opset that does not have it */
static void mod_bind(HnBind *b, void *params)
{
    HnBinary *p = params;
    int64_t fmod_set = hn_bind_int(b, "fmod", 0);
    if (fmod_set != 0 && fmod_set != 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'fmod' is %" PRId64 ", neither 0 nor 1", fmod_set);
    p->mode = fmod_set == 1 ? 1 : b->version < 28 ? 2 : 0;
}

static void mod_infer(HnInfer *x)
{
    const HnBinary *p = x->params;
    if (p->mode == 2 && hn_dtype_in(hn_infer_dtype(x, 0), HN_T_FLOATS)) {
        hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "attribute 'fmod' must be 1 for floats before opset 28");
        return;
    }
    if (hn_binary_infer(x, HN_UNDEFINED))
        hn_infer_map2(x, mod_dim);
}

static void mod_ref(HnEval *e)
{
    const HnBinary *p = e->params;
    hn_binary_run(e, p->mode == 1 ? rem_fns : mod_fns, HN_UNDEFINED);
}

/* Before opset 28 floats have no remainder with the sign of the divisor: C's one, and the divisor where signs differ.
 */
static void mod_unbind(HnUnbind *u)
{
    const HnBinary *p = u->params;
    HnDtype dtype = hn_unbind_dtype(u, 0);
    if (!hn_unbind_below(u, 28) || p->mode == 1 || !hn_dtype_in(dtype, HN_T_FLOATS))
        return;
    HnValue *in[] = { hn_unbind_in(u, 0), hn_unbind_in(u, 1) };
    HnNode *n = hn_unbind_node(u, "Mod", 2, in, 1);
    hn_node_set_int(n, "fmod", 1);
    HnValue *r = hn_node_out(n, 0), *zero = hn_unbind_scalar(u, dtype, 0);
    HnValue *signs = hn_unbind_op2(u, "Xor", hn_unbind_op2(u, "Less", r, zero), hn_unbind_op2(u, "Less", in[1], zero));
    HnValue *none = hn_unbind_op2(u, "Equal", r, zero);
    HnValue *off = hn_unbind_op2(u, "And", signs, hn_unbind_op1(u, "Not", none));
    HnValue *other = hn_unbind_op3(u, "Where", off, hn_unbind_op2(u, "Add", r, in[1]), r);
    HnValue *signed_zero = hn_unbind_op2(u, "Mul", hn_unbind_op1(u, "Sign", in[1]), zero);
    hn_unbind_take(u, 0, hn_unbind_op3(u, "Where", none, signed_zero, other));
}

/* x - n * divisor, n the same around */
static void mod_grad(HnTape *t)
{
    hn_tape_operand(t, 0, "dy");
    hn_tape_operand(t, 1, "-dy * (x0 - y) / x1");
}

const HnOp hn_op_mod = {
    .name = "Mod",
    .flags = ARITH_FLAGS,
    .since = { 10, 13, 28 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    .in = "TT",
    .out = "T",
    .T = HN_T_NUM,
    .unbind = mod_unbind,
    .params_size = sizeof(HnBinary),
    .bind = mod_bind,
    .infer = mod_infer,
    .cost = hn_cost_elementwise,
    .ref = mod_ref,
    .grad = mod_grad,
};
