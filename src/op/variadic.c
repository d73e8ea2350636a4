/*
 * Max, Min, Sum, Mean of any number of tensors, broadcast as in numpy; before opset 8 all had to be of one shape. NaN
 * wins over any number.
 */
#include <string.h>

#include "op/elementwise.h"
#include "op/tape.h"
#include "op/unbind.h"

typedef struct {
    gboolean same_shape; /* before opset 8 */
} HnVariadic;

static void variadic_bind(HnBind *b, void *params)
{
    HnVariadic *p = params;
    p->same_shape = b->version < 8;
}

#define MAX_F(T, W, p, q) ((p) > (q) || (p) != (p) ? (p) : (q))
#define MIN_F(T, W, p, q) ((p) < (q) || (p) != (p) ? (p) : (q))
#define MAX_I(T, W, p, q) ((p) > (q) ? (p) : (q))
#define MIN_I(T, W, p, q) ((p) < (q) ? (p) : (q))
#define FIRST(T, W, p, q) ((void)(q), (p))
#define DEFINE(name, F, I)                                                                                \
    HN_BINARY_FLOATS(name, HN_SAME, F)                                                                    \
    HN_BINARY_SINTS(name, HN_SAME, I)                                                                     \
    HN_BINARY_UINTS(name, HN_SAME, I)                                                                     \
    static const HnBinaryFn name##_fns[HN_DTYPE_COUNT] = { HN_FLOAT_ENTRIES(name), HN_SINT_ENTRIES(name), \
                                                           HN_UINT_ENTRIES(name) };
DEFINE(max, MAX_F, MAX_I)
DEFINE(min, MIN_F, MIN_I)
DEFINE(first, FIRST, FIRST)

/* double sum += element, by the type of the element */
#define DEFINE_SUM(name, U)                                                            \
    static void name(void *z, const void *x, const void *y, int64_t n, int sx, int sy) \
    {                                                                                  \
        const double *a = x;                                                           \
        const U *b = y;                                                                \
        double *c = z;                                                                 \
        for (int64_t i = 0; i < n; i++)                                                \
            c[i] = a[sx != 0 ? i : 0] + (double)b[sy != 0 ? i : 0];                    \
    }
DEFINE_SUM(sum_f32, float)
DEFINE_SUM(sum_f64, double)

/* Broadcast shape of all inputs: its rank; -1: failed. */
static int common_shape(HnEval *e, int64_t *dims)
{
    const HnVariadic *p = e->params;
    const HnTensor *first = e->in[0];
    int ndim = hn_eval_broadcast(e, first, first, dims);
    for (int i = 1; i < e->n_in && ndim >= 0; i++) {
        const HnTensor *t = e->in[i];
        if (t == NULL || t->dtype != first->dtype) {
            hn_eval_fail(e, HN_ERROR_TYPE, "input %d is not of the type of input 0", i);
            return -1;
        }
        if (p->same_shape && !hn_tensor_has_dims(t, ndim, dims)) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d is not of the shape of input 0", i);
            return -1;
        }
        /* a view of what came out so far */
        int64_t n;
        if (!hn_dims_count(ndim, dims, &n)) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "the broadcast shape overflows");
            return -1;
        }
        g_autoptr(HnTensor) so_far = hn_tensor_new_borrowed(HN_U8, ndim, dims, (void *)t->data);
        ndim = hn_eval_broadcast(e, so_far, t, dims);
    }
    return ndim;
}

/* acc = fn(acc, input i) */
static void accumulate(HnEval *e, HnBinaryFn fn, int i, int ndim, const int64_t *dims, void *acc, size_t size)
{
    int64_t strides[2][HN_MAX_RANK];
    const HnTensor *t = e->in[i];
    hn_strides(ndim, dims, strides[0]);
    hn_broadcast_strides(t, ndim, strides[1]);
    hn_binary_apply(fn, ndim, dims, acc, size, acc, size, t->data, hn_dtype_size(t->dtype), strides);
}

static void pick_run(HnEval *e, const HnBinaryFn *fns)
{
    int64_t dims[HN_MAX_RANK], strides[2][HN_MAX_RANK];
    const HnTensor *t = e->in[0];
    int ndim = common_shape(e, dims);
    if (ndim < 0)
        return;
    if ((unsigned)t->dtype >= HN_DTYPE_COUNT || fns[t->dtype] == NULL) {
        hn_eval_fail_type(e, 0);
        return;
    }
    void *z = hn_eval_out(e, 0, t->dtype, ndim, dims);
    if (z == NULL)
        return;
    size_t size = hn_dtype_size(t->dtype);
    const HnTensor *second = e->in[e->n_in > 1 ? 1 : 0];
    hn_broadcast_strides(t, ndim, strides[0]);
    hn_broadcast_strides(second, ndim, strides[1]);
    hn_binary_apply(e->n_in > 1 ? fns[t->dtype] : first_fns[t->dtype], ndim, dims, z, size, t->data, size, second->data,
                    size, strides);
    for (int i = 2; i < e->n_in; i++)
        accumulate(e, fns[t->dtype], i, ndim, dims, z, size);
}

static void sum_run(HnEval *e, double divisor)
{
    int64_t dims[HN_MAX_RANK];
    const HnTensor *t = e->in[0];
    int ndim = common_shape(e, dims);
    if (ndim < 0)
        return;
    if (t->dtype != HN_F32 && t->dtype != HN_F64) {
        hn_eval_fail_type(e, 0);
        return;
    }
    void *z = hn_eval_out(e, 0, t->dtype, ndim, dims);
    int64_t n = hn_span(dims, 0, ndim);
    double *acc = z != NULL ? hn_eval_scratch(e, n, sizeof *acc) : NULL;
    if (acc == NULL)
        return;
    memset(acc, 0, (size_t)n * sizeof *acc);
    for (int i = 0; i < e->n_in; i++)
        accumulate(e, t->dtype == HN_F32 ? sum_f32 : sum_f64, i, ndim, dims, acc, sizeof *acc);
    if (t->dtype == HN_F32) {
        for (int64_t i = 0; i < n; i++)
            ((float *)z)[i] = (float)(acc[i] / divisor);
    } else {
        for (int64_t i = 0; i < n; i++)
            ((double *)z)[i] = acc[i] / divisor;
    }
    hn_eval_scratch_free(e, acc);
}

static gboolean variadic_infer(HnInfer *x)
{
    const HnVariadic *p = x->params;
    for (int i = 1; i < x->n_in && p->same_shape; i++) {
        int rank = hn_infer_rank(x, 0), other = hn_infer_rank(x, i);
        gboolean differ = rank >= 0 && other >= 0 && rank != other;
        for (int a = 0; a < MIN(rank, other); a++)
            differ = differ || hn_dim_differ(hn_infer_dim(x, 0, a), hn_infer_dim(x, i, a));
        if (differ) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d is not of the shape of input 0", i);
            return FALSE;
        }
    }
    hn_infer_broadcast_all(x);
    return x->error == NULL;
}

/* Contents of all inputs, combined pairwise. */
static void pick_infer(HnInfer *x, HnDim (*fn)(HnDim a, HnDim b))
{
    if (!variadic_infer(x))
        return;
    g_autofree HnContents *c = hn_infer_contents(x, 0);
    for (int i = 1; i < x->n_in && c != NULL; i++) {
        g_autofree HnContents *a = g_steal_pointer(&c);
        g_autofree HnContents *b = hn_infer_contents(x, i);
        if (b == NULL || (a->n != b->n && a->n != 1 && b->n != 1))
            return;
        c = hn_contents_new(MAX(a->rank, b->rank), a->n == 1 ? b->n : a->n);
        for (int k = 0; k < c->n; k++)
            c->d[k] = fn(a->d[a->n == 1 ? 0 : k], b->d[b->n == 1 ? 0 : k]);
    }
    if (c != NULL)
        hn_infer_out_contents(x, 0, g_steal_pointer(&c));
}

static void max_infer(HnInfer *x)
{
    pick_infer(x, hn_dim_max);
}

static void min_infer(HnInfer *x)
{
    pick_infer(x, hn_dim_min);
}

static void sum_infer(HnInfer *x)
{
    variadic_infer(x);
}

static void max_ref(HnEval *e)
{
    pick_run(e, max_fns);
}

static void min_ref(HnEval *e)
{
    pick_run(e, min_fns);
}

static void sum_ref(HnEval *e)
{
    sum_run(e, 1);
}

static void mean_ref(HnEval *e)
{
    sum_run(e, e->n_in);
}

static void variadic_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->out[0]) * MAX(x->n_in - 1, 1);
}

static gboolean shapes_agree(const HnUnbind *u)
{
    for (guint i = 1; i < u->node->in->len; i++) {
        if (hn_unbind_rank(u, 0) < 0 || hn_unbind_rank(u, (int)i) != hn_unbind_rank(u, 0))
            return FALSE;
        for (int a = 0; a < hn_unbind_rank(u, 0); a++)
            if (hn_unbind_dim(u, 0, a) < 0 || hn_unbind_dim(u, (int)i, a) != hn_unbind_dim(u, 0, a))
                return FALSE;
    }
    return TRUE;
}

/* Before opset 8 shapes had to agree. */
static void sum_unbind(HnUnbind *u)
{
    HnDtype dtype = hn_unbind_dtype(u, 0);
    gboolean mean = strcmp(u->node->op_type, "Mean") == 0;
    if (!hn_unbind_below(u, 8) || shapes_agree(u))
        return;
    if (mean && dtype == HN_UNDEFINED) {
        hn_unbind_refuse(u, "inputs had to be of one shape before opset 8, and their type is not known");
        return;
    }
    HnValue *v = hn_unbind_in(u, 0);
    for (guint i = 1; i < u->node->in->len; i++)
        v = hn_unbind_op2(u, "Add", v, hn_unbind_in(u, (int)i));
    hn_unbind_take(u, 0, mean ? hn_unbind_op2(u, "Div", v, hn_unbind_scalar(u, dtype, u->node->in->len)) : v);
}

/* Before opset 12 integers of 64 bits had no Max: Where and a comparison do. */
static void pick_unbind(HnUnbind *u)
{
    HnDtype dtype = hn_unbind_dtype(u, 0);
    const char *compare = strcmp(u->node->op_type, "Max") == 0 ? "Greater" : "Less";
    if (hn_unbind_below(u, 8) && !shapes_agree(u)) {
        hn_unbind_refuse(u, "inputs had to be of one shape before opset 8");
        return;
    }
    if (!hn_unbind_below(u, 12) || (dtype != HN_I64 && dtype != HN_U64))
        return;
    HnValue *v = hn_unbind_in(u, 0);
    for (guint i = 1; i < u->node->in->len; i++) {
        HnValue *w = hn_unbind_in(u, (int)i);
        v = hn_unbind_op3(u, "Where", hn_unbind_op2(u, compare, v, w), v, w);
    }
    hn_unbind_take(u, 0, v);
}

/* Those that are the result share its gradient evenly, as in PyTorch. */
static void pick_grad(HnTape *t)
{
    const guint n = t->node->in->len;
    g_autofree HnValue **is = g_new(HnValue *, n);
    for (guint i = 0; i < n; i++)
        is[i] = hn_build_cast(t->build, hn_build_op2(t->build, "Equal", hn_tape_in(t, (int)i), hn_tape_out(t, 0)),
                              t->dtype);
    HnValue *count = n > 1 ? hn_node_out(hn_build_node(t->build, "Sum", NULL, (int)n, is, 1), 0) : is[0];
    HnValue *share = hn_tape_calc(t, "dy / p", &count);
    for (guint i = 0; i < n; i++)
        if (hn_tape_needs(t, (int)i))
            hn_tape_give_sum(t, (int)i, hn_build_op2(t->build, "Mul", share, is[i]));
}

static void sum_grad(HnTape *t)
{
    for (guint i = 0; i < t->node->in->len; i++)
        hn_tape_operand(t, (int)i, "dy");
}

static void mean_grad(HnTape *t)
{
    t->number[0] = t->node->in->len;
    for (guint i = 0; i < t->node->in->len; i++)
        hn_tape_operand(t, (int)i, "dy / a");
}

#define VARIADIC_RECORD(mask)                                                                                    \
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_HALF_VIA_F32 | HN_OP_COMMUTATIVE, .in = "T*", .out = "T", \
    .T = mask, .min_in = 1, .params_size = sizeof(HnVariadic), .bind = variadic_bind, .cost = variadic_cost,     \
    .quant = { .kind = HN_Q_ELEMENTWISE }

const HnOp hn_op_max = {
    .name = "Max",
    VARIADIC_RECORD(HN_T_NUM),
    .since = { 1, 6, 8, 12, 13 },
    .lacks = HN_LACKS({ 'T', 12, 0, HN_T_INTS }, HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .unbind = pick_unbind,
    .infer = max_infer,
    .ref = max_ref,
    .grad = pick_grad,
};

const HnOp hn_op_min = {
    .name = "Min",
    VARIADIC_RECORD(HN_T_NUM),
    .since = { 1, 6, 8, 12, 13 },
    .lacks = HN_LACKS({ 'T', 12, 0, HN_T_INTS }, HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .unbind = pick_unbind,
    .infer = min_infer,
    .ref = min_ref,
    .grad = pick_grad,
};

const HnOp hn_op_sum = {
    .name = "Sum",
    VARIADIC_RECORD(HN_T_FLOATS),
    .since = { 1, 6, 8, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    .unbind = sum_unbind,
    .infer = sum_infer,
    .ref = sum_ref,
    .grad = sum_grad,
    .channels = { .unit = HN_UNIT_SUM },
};

const HnOp hn_op_mean = {
    .name = "Mean",
    VARIADIC_RECORD(HN_T_FLOATS),
    .since = { 1, 6, 8, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .unbind = sum_unbind,
    .infer = sum_infer,
    .ref = mean_ref,
    .grad = mean_grad,
};
