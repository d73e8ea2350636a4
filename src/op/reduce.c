/*
 * ReduceSum and its nine relatives: a function of all elements along some axes. The axes were an attribute until opset
 * 12 (ReduceSum) or 17 (the others) and are an optional input since; none means all, unless noop_with_empty_axes is
 * set: then each element is reduced alone.
 */
#include "op/reduce.h"

#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/types.h"
#include "op/unbind.h"

static void bind_since(HnBind *b, HnReduce *p, int64_t since)
{
    p->keepdims = hn_bind_bool(b, "keepdims", TRUE);
    p->from_input = b->version >= since;
    if (p->from_input) {
        p->noop = hn_bind_bool(b, "noop_with_empty_axes", FALSE);
    } else {
        p->axes = hn_bind_ints(b, "axes", &p->n_axes);
        if (b->node->in->len > 1)
            hn_bind_fail(b, HN_ERROR_GRAPH, "has %u inputs, 1 is allowed", b->node->in->len);
    }
}

static void reduce_bind(HnBind *b, void *params)
{
    bind_since(b, params, 18);
}

static void reducesum_bind(HnBind *b, void *params)
{
    bind_since(b, params, 13);
}

/* --- inference --------------------------------------------------------------------------------------------------- */

/* mask[i]: axis i is reduced. FALSE: not known, or failed. */
static gboolean infer_mask(HnInfer *x, int rank, gboolean *mask)
{
    const HnReduce *p = x->params;
    int64_t axes[HN_MAX_RANK];
    const int64_t *v = p->axes;
    int n = (int)MIN(p->n_axes, HN_MAX_RANK);
    if (p->n_axes > rank) {
        hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "attribute 'axes' has %" PRId64 " elements for %d dimensions", p->n_axes,
                      rank);
        return FALSE;
    }
    if (p->from_input && hn_infer_has(x, 1)) {
        if (!hn_infer_ints(x, 1, axes, HN_MAX_RANK, &n))
            return FALSE;
        v = axes;
    }
    for (int i = 0; i < rank; i++)
        mask[i] = n == 0 && !p->noop;
    for (int i = 0; i < n; i++) {
        int axis = hn_infer_axis(x, v[i], rank);
        if (axis < 0)
            return FALSE;
        mask[axis] = TRUE;
    }
    return TRUE;
}

typedef HnDim (*DimFn)(HnDim a, HnDim b);

/* Contents of a reduced shape vector; `fn` is NULL where the operator has no counterpart on dimensions. */
static void infer_contents(HnInfer *x, DimFn fn, const gboolean *mask)
{
    const HnReduce *p = x->params;
    const HnContents *c = x->contents[0];
    HnDtype dtype = hn_infer_dtype(x, 0);
    if (fn == NULL || (dtype != HN_I64 && dtype != HN_I32))
        return;
    if (c == NULL || c->rank != 1 || !mask[0] || c->n == 0)
        return;
    HnContents *r = hn_contents_new(p->keepdims ? 1 : 0, 1);
    r->d[0] = c->d[0];
    for (int i = 1; i < c->n; i++)
        r->d[0] = fn(r->d[0], c->d[i]);
    hn_infer_out_contents(x, 0, r);
}

static void infer_with(HnInfer *x, DimFn fn)
{
    const HnReduce *p = x->params;
    int rank = hn_infer_rank(x, 0), kept = 0;
    gboolean mask[HN_MAX_RANK];
    HnDim dims[HN_MAX_RANK];
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (infer_mask(x, rank, mask)) {
        for (int i = 0; i < rank; i++)
            if (!mask[i])
                dims[kept++] = hn_infer_dim(x, 0, i);
            else if (p->keepdims)
                dims[kept++] = hn_dim(1);
        hn_infer_out(x, 0, hn_infer_dtype(x, 0), kept, dims);
        infer_contents(x, fn, mask);
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = hn_dim_unknown();
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), p->keepdims ? rank : -1, dims);
}

static void reduce_infer(HnInfer *x)
{
    infer_with(x, NULL);
}

static void reducesum_infer(HnInfer *x)
{
    infer_with(x, hn_dim_add);
}

static void reduceprod_infer(HnInfer *x)
{
    infer_with(x, hn_dim_mul);
}

static void reducemax_infer(HnInfer *x)
{
    infer_with(x, hn_dim_max);
}

static void reducemin_infer(HnInfer *x)
{
    infer_with(x, hn_dim_min);
}

static void reduce_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[0]);
}

/* --- reference --------------------------------------------------------------------------------------------------- */

typedef enum { SUM, SUM_ABS, SUM_SQUARE, PROD, MAXIMUM, MINIMUM, SUM_EXP } Step;

/* The input with neighbouring axes of one kind joined: dims and, per dimension, the stride in the output, 0 where it
 * is reduced. The last dimension is the inner loop. */
typedef struct {
    int ndim;
    int64_t dims[HN_MAX_RANK + 1];
    int64_t strides[HN_MAX_RANK + 1];
    int64_t n_out; /* elements of the output */
    int64_t each;  /* elements that make one of the output */
    int out_rank;
    int64_t out_dims[HN_MAX_RANK];
} Walk;

static gboolean eval_mask(HnEval *e, const HnTensor *x, gboolean *mask)
{
    const HnReduce *p = e->params;
    const HnTensor *axes = p->from_input ? hn_eval_in(e, 1) : NULL;
    int64_t n = axes != NULL ? axes->n : p->n_axes;
    for (int i = 0; i < x->ndim; i++)
        mask[i] = n == 0 && !p->noop;
    for (int64_t i = 0; i < n; i++) {
        int axis = hn_eval_axis(e, axes != NULL ? ((const int64_t *)axes->data)[i] : p->axes[i], x->ndim);
        if (axis < 0)
            return FALSE;
        mask[axis] = TRUE;
    }
    return TRUE;
}

gboolean hn_reduce_mask(const HnReduce *p, const HnTensor *x, const HnTensor *axes, gboolean *mask)
{
    const int64_t n = axes != NULL ? axes->n : p->n_axes;
    for (int i = 0; i < x->ndim; i++)
        mask[i] = n == 0 && !p->noop;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = axes != NULL ? hn_tensor_get_i64(axes, i) : p->axes[i];
        if (a < -x->ndim || a >= x->ndim)
            return FALSE;
        mask[a < 0 ? a + x->ndim : a] = TRUE;
    }
    return TRUE;
}

void hn_reduce_mask_like(const HnTensor *x, const HnTensor *like, gboolean *mask)
{
    const int more = x->ndim - like->ndim;
    for (int i = 0; i < x->ndim; i++)
        mask[i] = i < more || like->dims[i - more] != x->dims[i];
}

gboolean hn_reduce_rows(const HnReduce *p, const HnTensor *x, const HnTensor *axes, int64_t rows[3])
{
    int first = x->ndim, last = -1, count = 0;
    gboolean mask[HN_MAX_RANK];
    if (!hn_reduce_mask(p, x, axes, mask))
        return FALSE;
    for (int i = 0; i < x->ndim; i++)
        if (mask[i]) {
            first = MIN(first, i);
            last = i;
            count++;
        }
    if (count == 0 || last - first + 1 != count)
        return FALSE;
    rows[0] = hn_span(x->dims, 0, first);
    rows[1] = hn_span(x->dims, first, last + 1);
    rows[2] = hn_span(x->dims, last + 1, x->ndim);
    return TRUE;
}

static gboolean plan(HnEval *e, const HnTensor *x, Walk *w)
{
    const HnReduce *p = e->params;
    gboolean mask[HN_MAX_RANK], reduced[HN_MAX_RANK + 1];
    if (!eval_mask(e, x, mask))
        return FALSE;
    *w = (Walk){ .each = 1 };
    for (int i = 0; i < x->ndim; i++) {
        if (!mask[i] || p->keepdims)
            w->out_dims[w->out_rank++] = mask[i] ? 1 : x->dims[i];
        if (mask[i])
            w->each *= x->dims[i];
        if (w->ndim > 0 && reduced[w->ndim - 1] == mask[i]) {
            w->dims[w->ndim - 1] *= x->dims[i];
        } else {
            w->dims[w->ndim] = x->dims[i];
            reduced[w->ndim++] = mask[i];
        }
    }
    if (w->ndim == 0) {
        w->dims[0] = 1;
        reduced[w->ndim++] = FALSE;
    }
    w->n_out = 1;
    for (int i = w->ndim - 1; i >= 0; i--) {
        w->strides[i] = reduced[i] ? 0 : w->n_out;
        w->n_out *= reduced[i] ? 1 : w->dims[i];
    }
    return TRUE;
}

/* One inner loop over n elements x: into one sum where r is 0, else into a row of them. */
#define INNER(A, STEP)                    \
    if (stride == 0) {                    \
        A s = *y;                         \
        for (int64_t i = 0; i < n; i++) { \
            A v = (A)x[i];                \
            STEP                          \
        }                                 \
        *y = s;                           \
    } else {                              \
        for (int64_t i = 0; i < n; i++) { \
            A v = (A)x[i], s = y[i];      \
            STEP y[i] = s;                \
        }                                 \
    }                                     \
    break;

/* T: elements, A: sums (double, or 64 bits that wrap), ABS: magnitude of an A made from a T. NaN stays NaN. */
#define DEFINE_WALK(name, T, A, ABS, MORE)                                                                         \
    static void name(const Walk *w, Step step, const T *x, A *sum, const double *shift)                            \
    {                                                                                                              \
        int64_t idx[HN_MAX_RANK + 1] = { 0 }, off = 0, stride = w->strides[w->ndim - 1], n = w->dims[w->ndim - 1]; \
        int64_t *strides = (int64_t *)w->strides;                                                                  \
        (void)shift;                                                                                               \
        do {                                                                                                       \
            A *y = sum + off;                                                                                      \
            switch (step) {                                                                                        \
            case SUM:                                                                                              \
                INNER(A, s += v;)                                                                                  \
            case SUM_ABS:                                                                                          \
                INNER(A, s += ABS(v);)                                                                             \
            case SUM_SQUARE:                                                                                       \
                INNER(A, s += v * v;)                                                                              \
            case PROD:                                                                                             \
                INNER(A, s *= v;)                                                                                  \
            case MAXIMUM:                                                                                          \
                INNER(A, if (MORE(v, s) || v != v) s = v;)                                                         \
            case MINIMUM:                                                                                          \
                INNER(A, if (MORE(s, v) || v != v) s = v;)                                                         \
            case SUM_EXP:                                                                                          \
                INNER(A, s += (A)exp((double)v - shift[off + (stride == 0 ? 0 : i)]);)                             \
            }                                                                                                      \
            x += n;                                                                                                \
        } while (hn_index_next(w->ndim - 1, w->dims, idx, 1, &strides, &off));                                     \
    }

#define GREATER(a, b) ((a) > (b))
#define GREATER_SIGNED(a, b) ((int64_t)(a) > (int64_t)(b))
#define ABS_SIGNED(v) ((int64_t)(v) < 0 ? -(v) : (v))
#define ABS_NONE(v) (v)

#define DEFINE_FLOAT(T) DEFINE_WALK(walk_##T, T, double, fabs, GREATER)
DEFINE_FLOAT(float)
DEFINE_FLOAT(double)

/* integers in integers, and in doubles for roots and logarithms */
#define DEFINE_INT(T, ABS, MORE)                  \
    DEFINE_WALK(walk_##T, T, uint64_t, ABS, MORE) \
    DEFINE_WALK(real_##T, T, double, fabs, GREATER)
DEFINE_INT(int8_t, ABS_SIGNED, GREATER_SIGNED)
DEFINE_INT(int16_t, ABS_SIGNED, GREATER_SIGNED)
DEFINE_INT(int32_t, ABS_SIGNED, GREATER_SIGNED)
DEFINE_INT(int64_t, ABS_SIGNED, GREATER_SIGNED)
DEFINE_INT(uint8_t, ABS_NONE, GREATER)
DEFINE_INT(uint16_t, ABS_NONE, GREATER)
DEFINE_INT(uint32_t, ABS_NONE, GREATER)
DEFINE_INT(uint64_t, ABS_NONE, GREATER)

static void walk_real(const Walk *w, Step step, const HnTensor *x, double *sum, const double *shift)
{
#define RUN_FLOAT(T) walk_##T(w, step, x->data, sum, shift);
#define RUN_INT(T) real_##T(w, step, x->data, sum, shift);
    HN_FOR_FLOAT(x->dtype, RUN_FLOAT)
    HN_FOR_INT(x->dtype, RUN_INT)
#undef RUN_FLOAT
#undef RUN_INT
}

static void walk_int(const Walk *w, Step step, const HnTensor *x, uint64_t *sum)
{
#define RUN_INT(T) walk_##T(w, step, x->data, sum, NULL);
    HN_FOR_INT(x->dtype == HN_BOOL ? HN_U8 : x->dtype, RUN_INT)
#undef RUN_INT
}

/* Elements of the output, to be filled with start; NULL: failed. */
static double *real_sums(HnEval *e, const Walk *w, double start)
{
    double *sum = hn_eval_scratch(e, w->n_out, sizeof *sum);
    for (int64_t i = 0; sum != NULL && i < w->n_out; i++)
        sum[i] = start;
    return sum;
}

/* From double into an integer type, cut at its ends; NaN is 0. */
#define CUT(T, LO, HI, MAX) (v != v ? 0 : v < LO ? (T)LO : v >= HI ? MAX : (T)v)
static void store_real(const HnTensor *x, const double *sum, int64_t n, void *y)
{
#define STORE(T, VALUE)               \
    for (int64_t i = 0; i < n; i++) { \
        double v = sum[i];            \
        ((T *)y)[i] = VALUE;          \
    }                                 \
    break;
    switch (x->dtype) {
    case HN_F32:
        STORE(float, (float)v)
    case HN_F64:
        STORE(double, v)
    case HN_I32:
        STORE(int32_t, CUT(int32_t, -0x1p31, 0x1p31, INT32_MAX))
    case HN_U32:
        STORE(uint32_t, CUT(uint32_t, 0, 0x1p32, UINT32_MAX))
    case HN_I64:
        STORE(int64_t, CUT(int64_t, -0x1p63, 0x1p63, INT64_MAX))
    case HN_U64:
        STORE(uint64_t, CUT(uint64_t, 0, 0x1p64, UINT64_MAX))
    default:
        break;
    }
}

static gboolean is_int(const HnTensor *x)
{
    return hn_dtype_in(x->dtype, HN_T_INTS | HN_T_BOOL);
}

/* Least and greatest value of an integer type, as 64 bits. */
static uint64_t int_limit(HnDtype d, gboolean greatest)
{
    unsigned bits = d == HN_BOOL ? 1 : hn_dtype_bits(d);
    if (hn_dtype_in(d, HN_T_SINTS))
        return greatest ? (UINT64_C(1) << (bits - 1)) - 1 : ~((UINT64_C(1) << (bits - 1)) - 1);
    return greatest ? UINT64_MAX >> (64 - bits) : 0;
}

/* Sums and the like in the element's own arithmetic; `mean` divides in the end. */
static void run_int(HnEval *e, const Walk *w, Step step, gboolean mean, const HnTensor *x, void *y)
{
    uint64_t start = step == PROD ? 1 : step == MAXIMUM || step == MINIMUM ? int_limit(x->dtype, step == MINIMUM) : 0;
    uint64_t *sum = hn_eval_scratch(e, w->n_out, sizeof *sum);
    if (sum == NULL)
        return;
    for (int64_t i = 0; i < w->n_out; i++)
        sum[i] = start;
    if (x->n > 0)
        walk_int(w, step, x, sum);
    gboolean is_signed = hn_dtype_in(x->dtype, HN_T_SINTS);
    for (int64_t i = 0; mean && w->each > 0 && i < w->n_out; i++)
        sum[i] = is_signed ? (uint64_t)((int64_t)sum[i] / w->each) : sum[i] / (uint64_t)w->each;
#define RUN_INT(T)                         \
    for (int64_t i = 0; i < w->n_out; i++) \
        ((T *)y)[i] = (T)sum[i];
    HN_FOR_INT(x->dtype == HN_BOOL ? HN_U8 : x->dtype, RUN_INT)
#undef RUN_INT
    hn_eval_scratch_free(e, sum);
}

typedef enum { PLAIN, MEAN, ROOT, LOG } Finish;

static void run_real(HnEval *e, const Walk *w, Step step, Finish finish, const HnTensor *x, void *y)
{
    double start = step == PROD ? 1 : step == MAXIMUM ? -INFINITY : step == MINIMUM ? INFINITY : 0;
    double *sum = real_sums(e, w, start);
    if (sum == NULL)
        return;
    if (x->n > 0)
        walk_real(w, step, x, sum, NULL);
    for (int64_t i = 0; finish != PLAIN && i < w->n_out; i++)
        sum[i] = finish == MEAN ? sum[i] / (double)w->each : finish == ROOT ? sqrt(sum[i]) : log(sum[i]);
    store_real(x, sum, w->n_out, y);
    hn_eval_scratch_free(e, sum);
}

static void reduce_eval(HnEval *e, Step step, Finish finish)
{
    const HnTensor *x = hn_eval_in(e, 0);
    Walk w;
    void *y;
    if (!plan(e, x, &w) || (y = hn_eval_out(e, 0, x->dtype, w.out_rank, w.out_dims)) == NULL)
        return;
    if (is_int(x) && finish != ROOT && finish != LOG)
        run_int(e, &w, step, finish == MEAN, x, y);
    else
        run_real(e, &w, step, finish, x, y);
}

static void reducesum_ref(HnEval *e)
{
    reduce_eval(e, SUM, PLAIN);
}

static void reducemean_ref(HnEval *e)
{
    reduce_eval(e, SUM, MEAN);
}

static void reduceprod_ref(HnEval *e)
{
    reduce_eval(e, PROD, PLAIN);
}

static void reducemax_ref(HnEval *e)
{
    reduce_eval(e, MAXIMUM, PLAIN);
}

static void reducemin_ref(HnEval *e)
{
    reduce_eval(e, MINIMUM, PLAIN);
}

static void reducel1_ref(HnEval *e)
{
    reduce_eval(e, SUM_ABS, PLAIN);
}

static void reducel2_ref(HnEval *e)
{
    reduce_eval(e, SUM_SQUARE, ROOT);
}

static void reducesumsquare_ref(HnEval *e)
{
    reduce_eval(e, SUM_SQUARE, PLAIN);
}

static void reducelogsum_ref(HnEval *e)
{
    reduce_eval(e, SUM, LOG);
}

/* log(sum(exp(x))) = m + log(sum(exp(x - m))) with m the largest x, or 0 where that is infinite */
static void reducelogsumexp_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    Walk w;
    void *y;
    if (!plan(e, x, &w) || (y = hn_eval_out(e, 0, x->dtype, w.out_rank, w.out_dims)) == NULL)
        return;
    double *max = real_sums(e, &w, -INFINITY), *sum = max != NULL ? real_sums(e, &w, 0) : NULL;
    if (sum != NULL) {
        if (x->n > 0)
            walk_real(&w, MAXIMUM, x, max, NULL);
        for (int64_t i = 0; i < w.n_out; i++)
            if (isinf(max[i]))
                max[i] = 0;
        if (x->n > 0)
            walk_real(&w, SUM_EXP, x, sum, max);
        for (int64_t i = 0; i < w.n_out; i++)
            sum[i] = max[i] + log(sum[i]);
        store_real(x, sum, w.n_out, y);
    }
    hn_eval_scratch_free(e, max);
    hn_eval_scratch_free(e, sum);
}

/* --- records ----------------------------------------------------------------------------------------------------- */

#define REDUCE_TYPES (HN_T_FLOATS | HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64))
#define ORDER_TYPES (REDUCE_TYPES | HN_BIT(HN_I8) | HN_BIT(HN_U8) | HN_T_BOOL)
#define REDUCE_RECORD                                                                                  \
    .flags = HN_OP_HALF_VIA_F32, .in = "Ti", .out = "T", .min_in = 1, .params_size = sizeof(HnReduce), \
    .cost = reduce_cost, .channels = { HN_CH_REDUCE }

/* What an operator does to each element where it reduces over no axis. */
static HnValue *of_nothing(HnUnbind *u)
{
    const char *op = u->node->op_type + strlen("Reduce");
    HnValue *x = hn_unbind_in(u, 0);
    if (strcmp(op, "L1") == 0 || strcmp(op, "L2") == 0)
        return hn_unbind_op1(u, "Abs", x);
    if (strcmp(op, "SumSquare") == 0)
        return hn_unbind_op2(u, "Mul", x, x);
    return hn_unbind_op1(u, strcmp(op, "LogSum") == 0 ? "Log" : "Identity", x);
}

/* ReduceSum has taken its axes as an input since opset 13: others follow from it where they are computed. */
static gboolean by_sum(HnUnbind *u)
{
    const HnReduce *p = u->params;
    const char *op = u->node->op_type + strlen("Reduce");
    HnDtype dtype = hn_unbind_dtype(u, 0);
    HnValue *x = hn_unbind_in(u, 0), *count;
    gboolean mean = strcmp(op, "Mean") == 0, l2 = strcmp(op, "L2") == 0;
    static const char *const sums[] = { "Mean", "L2", "L1", "SumSquare", "LogSum", NULL };
    if (u->to < 13 || dtype == HN_UNDEFINED || p->noop || !g_strv_contains(sums, op))
        return FALSE;
    if (strcmp(op, "L1") == 0)
        x = hn_unbind_op1(u, "Abs", x);
    else if (l2 || strcmp(op, "SumSquare") == 0)
        x = hn_unbind_op2(u, "Mul", x, x);
    HnNode *n = hn_unbind_node(u, "ReduceSum", 2, (HnValue *[]){ x, hn_unbind_in(u, 1) }, 1);
    hn_node_set_int(n, "keepdims", p->keepdims);
    HnValue *y = hn_node_out(n, 0);
    if (mean) {
        count = hn_unbind_op2(u, "Div", hn_unbind_op1(u, "Size", x), hn_unbind_op1(u, "Size", y));
        y = hn_unbind_op2(u, "Div", y, hn_unbind_cast(u, count, dtype));
    } else if (l2) {
        y = hn_unbind_op1(u, "Sqrt", y);
    } else if (strcmp(op, "LogSum") == 0) {
        y = hn_unbind_op1(u, "Log", y);
    }
    hn_unbind_take(u, 0, y);
    return TRUE;
}

static void unbind_since(HnUnbind *u, int version)
{
    const HnReduce *p = u->params;
    int64_t axes[HN_MAX_RANK];
    int n = p->from_input && hn_unbind_in(u, 1) != NULL ? hn_unbind_ints(u, 1, axes) : 0;
    if (hn_unbind_above(u, version) && p->n_axes == 0)
        hn_node_remove_attr(u->node, "axes");
    if (!hn_unbind_below(u, version) || (n < 0 && by_sum(u)))
        return;
    if (n == 0 && p->noop)
        hn_unbind_take(u, 0, of_nothing(u));
    else if (n == 0)
        hn_unbind_drop(u, 1);
    if (n >= 0)
        hn_node_remove_attr(u->node, "noop_with_empty_axes");
}

static void reduce_unbind(HnUnbind *u)
{
    unbind_since(u, 18);
}

static void reducesum_unbind(HnUnbind *u)
{
    unbind_since(u, 13);
}

void hn_reduce_batch(HnBatch *b)
{
    const HnReduce *p = b->params;
    const int rank = hn_batch_rank_was(b, 0);
    HnBatchReduced r = { .keepdims = p->keepdims };
    int64_t list[HN_MAX_RANK];
    int n = 0;
    if (hn_batch_has(b, 1) && !hn_batch_ints(b, 1, list, HN_MAX_RANK, &n)) {
        hn_batch_fail(b, "its axes are not constant");
        return;
    }
    for (int64_t i = 0; i < p->n_axes && n < HN_MAX_RANK; i++)
        list[n++] = p->axes[i];
    if (n == 0 && p->noop) {
        b->out[0] = b->in[0].at;
        return;
    }
    for (int a = 0; a < rank; a++)
        r.mark[a] = n == 0;
    for (int i = 0; i < n; i++) {
        const int a = hn_batch_axis(list[i], rank);
        if (a >= 0)
            r.mark[a] = TRUE;
    }
    hn_batch_reduce(b, &r);
}

const HnOp hn_op_reducesum = {
    .name = "ReduceSum",
    REDUCE_RECORD,
    .since = { 1, 11, 13 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 13, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 13 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    .T = REDUCE_TYPES,
    .unbind = reducesum_unbind,
    .bind = reducesum_bind,
    .infer = reducesum_infer,
    .ref = reducesum_ref,
    .grad = hn_reducesum_grad,
    .batch = hn_reduce_batch,
    .range = { .kind = HN_R_PRODUCTS },
};

const HnOp hn_op_reducemean = {
    .name = "ReduceMean",
    REDUCE_RECORD,
    .since = { 1, 11, 13, 18 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .T = REDUCE_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reduce_infer,
    .ref = reducemean_ref,
    .grad = hn_reducemean_grad,
    .batch = hn_reduce_batch,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MEAN },
    .range = { .kind = HN_R_MEAN },
};

const HnOp hn_op_reduceprod = {
    .name = "ReduceProd",
    REDUCE_RECORD,
    .since = { 1, 11, 13, 18 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    .T = REDUCE_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reduceprod_infer,
    .ref = reduceprod_ref,
    .grad = hn_reduceprod_grad,
    .batch = hn_reduce_batch,
};

const HnOp hn_op_reducemax = {
    .name = "ReduceMax",
    REDUCE_RECORD,
    .since = { 1, 11, 12, 13, 18, 20 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks =
        HN_LACKS({ 'T', 12, 0, HN_BIT(HN_U8) | HN_BIT(HN_I8) }, HN_BF16_SINCE(13), { 'T', 20, 0, HN_BIT(HN_BOOL) }),
    .wide = HN_WIDE_PICKS,
    .T = ORDER_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reducemax_infer,
    .ref = reducemax_ref,
    .grad = hn_reducepick_grad,
    .batch = hn_reduce_batch,
    .quant = { .kind = HN_Q_PASS },
};

const HnOp hn_op_reducemin = {
    .name = "ReduceMin",
    REDUCE_RECORD,
    .since = { 1, 11, 12, 13, 18, 20 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks =
        HN_LACKS({ 'T', 12, 0, HN_BIT(HN_U8) | HN_BIT(HN_I8) }, HN_BF16_SINCE(13), { 'T', 20, 0, HN_BIT(HN_BOOL) }),
    .wide = HN_WIDE_PICKS,
    .T = ORDER_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reducemin_infer,
    .ref = reducemin_ref,
    .grad = hn_reducepick_grad,
    .batch = hn_reduce_batch,
    .quant = { .kind = HN_Q_PASS },
};

const HnOp hn_op_reducel1 = {
    .name = "ReduceL1",
    REDUCE_RECORD,
    .since = { 1, 11, 13, 18 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .T = REDUCE_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reduce_infer,
    .ref = reducel1_ref,
    .grad = hn_reducel1_grad,
    .batch = hn_reduce_batch,
};

const HnOp hn_op_reducel2 = {
    .name = "ReduceL2",
    REDUCE_RECORD,
    .since = { 1, 11, 13, 18 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .T = REDUCE_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reduce_infer,
    .ref = reducel2_ref,
    .grad = hn_reducel2_grad,
    .batch = hn_reduce_batch,
    .range = { .kind = HN_R_SQUARE },
};

const HnOp hn_op_reducesumsquare = {
    .name = "ReduceSumSquare",
    REDUCE_RECORD,
    .since = { 1, 11, 13, 18 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    .T = REDUCE_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reduce_infer,
    .ref = reducesumsquare_ref,
    .grad = hn_reducesumsquare_grad,
    .batch = hn_reduce_batch,
};

const HnOp hn_op_reducelogsum = {
    .name = "ReduceLogSum",
    REDUCE_RECORD,
    .since = { 1, 11, 13, 18, 28 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks =
        HN_LACKS({ 'T', 0, 28, HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64) }, HN_BF16_SINCE(13)),
    .T = REDUCE_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reduce_infer,
    .ref = reducelogsum_ref,
    .grad = hn_reducelogsum_grad,
    .batch = hn_reduce_batch,
    .range = { .kind = HN_R_PRODUCTS, .divisors = 1 },
};

const HnOp hn_op_reducelogsumexp = {
    .name = "ReduceLogSumExp",
    REDUCE_RECORD,
    .since = { 1, 11, 13, 18, 28 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 18, .input = 1, .back = 11 },
                      { "noop_with_empty_axes", HN_ATTR_INT, .since = 18 }),
    .lacks =
        HN_LACKS({ 'T', 0, 28, HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64) }, HN_BF16_SINCE(13)),
    .T = REDUCE_TYPES,
    .unbind = reduce_unbind,
    .bind = reduce_bind,
    .infer = reduce_infer,
    .ref = reducelogsumexp_ref,
    .grad = hn_reducelogsumexp_grad,
    .batch = hn_reduce_batch,
};
