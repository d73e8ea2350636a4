/*
 * AveragePool, MaxPool and LpPool: a window slides over each channel and gives its mean, its largest element or its
 * p-norm. Padding is left out of the mean (unless count_include_pad) and never the largest element.
 */
#include "op/pool.h"

#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/types.h"
#include "op/tape.h"
#include "op/unbind.h"

/* --- geometry ---------------------------------------------------------------------------------------------------- */

gboolean hn_pool_place(const HnPool *p, int ndim, const int64_t *x, HnWindowAxis *axes, int64_t *dims, GError **error)
{
    if (ndim < 3 || ndim > HN_MAX_RANK) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "the input has %d dimensions, at least 3 are needed", ndim);
        return FALSE;
    }
    if (!hn_window_place(&p->window, ndim - 2, x + 2, NULL, axes, error))
        return FALSE;
    dims[0] = x[0];
    dims[1] = x[1];
    for (int i = 2; i < ndim; i++)
        dims[i] = axes[i - 2].out;
    return TRUE;
}

static void pool_infer(HnInfer *x)
{
    const HnPool *p = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDtype dtype = hn_infer_dtype(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (rank >= 0 && rank < 3) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 3 are needed", rank);
        return;
    }
    if (rank >= 0 && !hn_window_check(&p->window, rank - 2, &x->error))
        return;
    for (int i = 0; i < rank; i++) {
        HnDim in = hn_infer_dim(x, 0, i);
        dims[i] = i < 2 ? in : hn_window_out(&p->window, i - 2, in, p->window.kernel[i - 2]);
        if (i >= 2 && dims[i].known && dims[i].n < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "a window of %" PRId64 " does not fit into spatial axis %d",
                          p->window.kernel[i - 2], i - 2);
            return;
        }
    }
    hn_infer_out(x, 0, dtype, rank, dims);
    hn_infer_out(x, 1, HN_I64, rank, dims);
}

static void pool_cost(const HnInfer *x, HnCost *c)
{
    const HnPool *p = x->params;
    c->flops = hn_type_count(x->out[0]);
    for (int i = 0; i < p->window.n; i++)
        c->flops *= (double)p->window.kernel[i];
}

/* The planes of an input: `planes` of them, x_plane elements each in, y_plane out. */
typedef struct {
    const HnTensor *x;
    int n;
    int64_t planes, x_plane, y_plane, dims[HN_MAX_RANK];
    HnWindowAxis axis[HN_MAX_RANK];
} Planes;

static gboolean planes_of(HnEval *e, Planes *t)
{
    t->x = hn_eval_in(e, 0);
    if (!hn_pool_place(e->params, t->x->ndim, t->x->dims, t->axis, t->dims, &e->error))
        return FALSE;
    t->n = t->x->ndim - 2;
    return TRUE;
}

/* To be called once the output is there: then the products do not overflow. */
static void count_planes(Planes *t)
{
    int64_t n;
    t->planes = t->x_plane = t->y_plane = 0;
    if (!hn_dims_count(t->n + 2, t->dims, &n) || n == 0)
        return;
    t->planes = t->dims[0] * t->dims[1];
    t->y_plane = n / t->planes;
    t->x_plane = t->x->n / t->planes;
}

/* --- sums -------------------------------------------------------------------------------------------------------- */

typedef struct {
    const void *x;
    double *sum; /* y_plane */
    double p;
} Sums;

#define DEFINE_SUMS(T)                                                                              \
    static void mean_##T(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len) \
    {                                                                                               \
        (void)k;                                                                                    \
        const Sums *s = data;                                                                       \
        const T *from = (const T *)s->x + x;                                                        \
        for (int64_t i = 0; i < len; i++)                                                           \
            s->sum[y + i] += (double)from[i * step];                                                \
    }                                                                                               \
    static void norm_##T(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len) \
    {                                                                                               \
        (void)k;                                                                                    \
        const Sums *s = data;                                                                       \
        const T *from = (const T *)s->x + x;                                                        \
        for (int64_t i = 0; i < len; i++)                                                           \
            s->sum[y + i] += pow(fabs((double)from[i * step]), s->p);                               \
    }
DEFINE_SUMS(float)
DEFINE_SUMS(double)

int64_t hn_pool_held(const HnWindowAxis *a, int64_t o, gboolean count_pad)
{
    int64_t begin = o * a->stride - a->pad, lo = 0, hi = a->in;
    if (count_pad) {
        lo = -a->pad;
        hi = a->in + a->pad_end;
    }
    int64_t first = begin >= lo ? 0 : (lo - begin + a->dilation - 1) / a->dilation;
    int64_t end = hi <= begin ? 0 : (hi - begin + a->dilation - 1) / a->dilation;
    return MAX(0, MIN(end, a->kernel) - first);
}

/* div[y] = elements that each window divides by; 0 where it holds none */
static void divisors(const HnPool *p, const Planes *t, double *div)
{
    int64_t idx[HN_MAX_RANK] = { 0 };
    for (int64_t y = 0; y < t->y_plane; y++) {
        double d = 1;
        for (int i = 0; i < t->n; i++)
            d *= (double)hn_pool_held(&t->axis[i], idx[i], p->count_pad);
        div[y] = d;
        for (int i = t->n - 1; i >= 0 && ++idx[i] == t->axis[i].out; i--)
            idx[i] = 0;
    }
}

static void sums_ref(HnEval *e, gboolean mean)
{
    const HnPool *p = e->params;
    Planes t;
    if (!planes_of(e, &t))
        return;
    void *y = hn_eval_out(e, 0, t.x->dtype, t.n + 2, t.dims);
    if (y == NULL)
        return;
    count_planes(&t);
    double *sum = hn_eval_scratch(e, t.y_plane, 2 * sizeof(double));
    if (sum == NULL)
        return;
    double *div = sum + t.y_plane;
    if (mean)
        divisors(p, &t, div);
    for (int64_t c = 0; c < t.planes; c++) {
        memset(sum, 0, (size_t)t.y_plane * sizeof *sum);
#define RUN(T)                                                    \
    Sums s = { (const T *)t.x->data + c * t.x_plane, sum, p->p }; \
    T *to = (T *)y + c * t.y_plane;                               \
    hn_window_rows(t.n, t.axis, mean ? mean_##T : norm_##T, &s);  \
    for (int64_t i = 0; i < t.y_plane; i++)                       \
        to[i] = (T)(!mean ? pow(sum[i], 1 / p->p) : div[i] > 0 ? sum[i] / div[i] : 0);
        HN_FOR_FLOAT(t.x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, sum);
}

static void averagepool_ref(HnEval *e)
{
    sums_ref(e, TRUE);
}

static void lppool_ref(HnEval *e)
{
    sums_ref(e, FALSE);
}

/* --- maxima ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const void *x;
    void *y;
    int64_t *at; /* place of the maximum in the plane, -1: none yet; NULL: not asked for */
} Max;

#define DEFINE_MAX(T)                                                                              \
    static void max_##T(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len) \
    {                                                                                              \
        (void)k;                                                                                   \
        const Max *m = data;                                                                       \
        const T *from = (const T *)m->x + x;                                                       \
        T *to = (T *)m->y + y;                                                                     \
        if (m->at == NULL) {                                                                       \
            for (int64_t i = 0; i < len; i++)                                                      \
                to[i] = from[i * step] > to[i] ? from[i * step] : to[i];                           \
            return;                                                                                \
        }                                                                                          \
        int64_t *at = m->at + y;                                                                   \
        for (int64_t i = 0; i < len; i++)                                                          \
            if (at[i] < 0 || from[i * step] > to[i]) {                                             \
                to[i] = from[i * step];                                                            \
                at[i] = x + i * step;                                                              \
            }                                                                                      \
    }
DEFINE_MAX(float)
DEFINE_MAX(double)
DEFINE_MAX(int8_t)
DEFINE_MAX(uint8_t)

/* A place in the row-major plane as one in a plane whose first axis is adjacent. */
static int64_t by_columns(const Planes *t, int64_t at)
{
    int64_t place = 0, below = t->x_plane;
    if (below == 0)
        return 0;
    for (int i = t->n - 1; i >= 0; i--) {
        below /= t->axis[i].in;
        place += at % t->axis[i].in * below;
        at /= t->axis[i].in;
    }
    return place;
}

static void maxpool_ref(HnEval *e)
{
    const HnPool *p = e->params;
    Planes t;
    if (!planes_of(e, &t))
        return;
    void *y = hn_eval_out(e, 0, t.x->dtype, t.n + 2, t.dims);
    int64_t *at = y != NULL && hn_eval_wants(e, 1) ? hn_eval_out(e, 1, HN_I64, t.n + 2, t.dims) : NULL;
    if (e->error != NULL)
        return;
    count_planes(&t);
    for (int64_t c = 0; c < t.planes; c++) {
        int64_t *places = at != NULL ? at + c * t.y_plane : NULL;
        for (int64_t i = 0; places != NULL && i < t.y_plane; i++)
            places[i] = -1;
#define RUN(T, LEAST)                                                                     \
    {                                                                                     \
        Max m = { (const T *)t.x->data + c * t.x_plane, (T *)y + c * t.y_plane, places }; \
        for (int64_t i = 0; i < t.y_plane; i++)                                           \
            ((T *)m.y)[i] = LEAST;                                                        \
        hn_window_rows(t.n, t.axis, max_##T, &m);                                         \
        break;                                                                            \
    }
        switch (t.x->dtype) {
        case HN_F32:
            RUN(float, -INFINITY)
        case HN_F64:
            RUN(double, -INFINITY)
        case HN_I8:
            RUN(int8_t, INT8_MIN)
        case HN_U8:
            RUN(uint8_t, 0)
        default:
            break;
        }
#undef RUN
        for (int64_t i = 0; places != NULL && i < t.y_plane; i++)
            places[i] = c * t.x_plane + (p->by_columns ? by_columns(&t, MAX(0, places[i])) : MAX(0, places[i]));
    }
}

/* --- records ----------------------------------------------------------------------------------------------------- */

static void pool_bind(HnBind *b, HnPool *p, int64_t dilations_since, int64_t ceil_since)
{
    unsigned dilations = b->version >= dilations_since ? HN_WINDOW_DILATIONS : 0;
    unsigned ceil = b->version >= ceil_since ? HN_WINDOW_CEIL : 0;
    hn_bind_require(b, "kernel_shape");
    hn_window_bind(b, &p->window, dilations | ceil);
    if (p->window.kernel == NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'kernel_shape' is empty");
}

static void averagepool_bind(HnBind *b, void *params)
{
    HnPool *p = params;
    pool_bind(b, p, 19, 10);
    p->count_pad = b->version >= 7 && hn_bind_bool(b, "count_include_pad", FALSE);
}

static void maxpool_bind(HnBind *b, void *params)
{
    HnPool *p = params;
    pool_bind(b, p, 10, 10);
    p->by_columns = b->version >= 8 && hn_bind_bool(b, "storage_order", FALSE);
    if (b->version < 8 && hn_node_out(b->node, 1) != NULL)
        hn_bind_fail(b, HN_ERROR_GRAPH, "indices exist since opset 8");
}

static void lppool_bind(HnBind *b, void *params)
{
    HnPool *p = params;
    pool_bind(b, p, 18, 18);
    p->p = b->version < 2 ? (double)hn_bind_float(b, "p", 2) : (double)hn_bind_int(b, "p", 2);
    if (!(p->p > 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'p' is not positive");
}

/* Before opset 10 (18 for LpPool) nothing is rounded up: a last window that reaches beyond the end becomes one over
 * more padding, which counts for nothing unless `count_pad`. */
static void pool_unbind_since(HnUnbind *u, const HnPool *p, int64_t ceil_since)
{
    const HnWindow *w = &p->window;
    int64_t dims[HN_MAX_RANK], pads[2 * HN_MAX_RANK] = { 0 };
    HnWindowAxis axes[HN_MAX_RANK];
    gboolean gone = hn_unbind_below(u, ceil_since);
    if (!w->ceil_mode || (!gone && !hn_unbind_below(u, 22))) /* 22 made clear which windows begin too late to count */
        return;
    if (w->pad_mode != HN_PAD_EXPLICIT) {
        hn_node_remove_attr(u->node, "ceil_mode");
        return;
    }
    if (!hn_unbind_dims(u, 0, dims) || hn_unbind_rank(u, 0) < 3 ||
        !hn_window_place(w, hn_unbind_rank(u, 0) - 2, dims + 2, NULL, axes, NULL)) {
        if (gone)
            hn_unbind_refuse(u, "attribute 'ceil_mode' came with opset %" PRId64 ", and the input's size is not known",
                             ceil_since);
        return;
    }
    int n = hn_unbind_rank(u, 0) - 2;
    gboolean more = FALSE;
    for (int i = 0; i < n; i++) {
        pads[i] = axes[i].pad;
        pads[n + i] = MAX(axes[i].pad_end, hn_window_overhang(&axes[i]));
        more = more || pads[n + i] > axes[i].pad_end;
    }
    if (more && !gone)
        return;
    if (more && p->count_pad) {
        hn_unbind_refuse(u, "windows beyond the padding, which 'ceil_mode' makes, came with opset %" PRId64,
                         ceil_since);
        return;
    }
    hn_node_remove_attr(u->node, "ceil_mode");
    if (more)
        hn_node_set_ints(u->node, "pads", pads, 2 * n);
}

static void pool_unbind(HnUnbind *u)
{
    pool_unbind_since(u, u->params, 10);
    if (hn_unbind_below(u, 8) && u->error == NULL) {
        if (hn_unbind_wants(u, 1))
            hn_unbind_refuse(u, "indices came with opset 8");
        hn_unbind_give_up(u, 1);
    }
}

static void lppool_unbind(HnUnbind *u)
{
    pool_unbind_since(u, u->params, 18);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

/*
 * PoolGrad (domain "hone"): each element of input 0, the gradient of an AveragePool's result, spread over its window,
 * in the shape of input 1, the source, of which nothing else is read. With attribute `sum` it is not divided by the
 * elements of the window.
 */
static void poolgrad_bind(HnBind *b, void *params)
{
    HnPool *p = params; /* its version is that of the internal domain: all attributes are there */
    pool_bind(b, p, 0, 0);
    p->count_pad = hn_bind_bool(b, "count_include_pad", FALSE);
    p->p = hn_bind_bool(b, "sum", FALSE) ? 1 : 0;
}

static void poolgrad_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 0), 1);
}

static void spread(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len)
{
    (void)k;
    const Sums *s = data; /* x: the gradients of a plane's means; sum: of its elements */
    for (int64_t i = 0; i < len; i++)
        s->sum[x + i * step] += ((const double *)s->x)[y + i];
}

static void poolgrad_ref(HnEval *e)
{
    const HnPool *p = e->params;
    const HnTensor *dy = hn_eval_in(e, 0);
    Planes t = { .x = hn_eval_in(e, 1), .n = hn_eval_in(e, 1)->ndim - 2 };
    if (!hn_pool_place(p, t.x->ndim, t.x->dims, t.axis, t.dims, &e->error))
        return;
    if (!hn_tensor_has_dims(dy, t.x->ndim, t.dims)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 0 does not have the shape of the pool's result");
        return;
    }
    void *dx = hn_eval_out_like(e, 0, t.x);
    if (dx == NULL)
        return;
    count_planes(&t);
    double *div = hn_eval_scratch(e, 2 * t.y_plane + t.x_plane, sizeof(double));
    if (div == NULL)
        return;
    double *each = div + t.y_plane, *sum = each + t.y_plane;
    divisors(p, &t, div);
    memset(dx, 0, e->out[0]->bytes);
    for (int64_t c = 0; c < t.planes; c++) {
        memset(sum, 0, (size_t)t.x_plane * sizeof *sum);
        for (int64_t i = 0; i < t.y_plane; i++)
            each[i] = hn_tensor_get_f64(dy, c * t.y_plane + i) / (p->p > 0 ? 1 : MAX(div[i], 1));
        Sums s = { each, sum, 0 };
        hn_window_rows(t.n, t.axis, spread, &s);
#define RUN(T)                              \
    T *to = (T *)dx + c * t.x_plane;        \
    for (int64_t i = 0; i < t.x_plane; i++) \
        to[i] = (T)sum[i];
        HN_FOR_FLOAT(t.x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, div);
}

static HnNode *poolgrad(HnTape *t, HnValue *dy)
{
    return hn_tape_backward(t, "PoolGrad", 2, (HnValue *[]){ dy, hn_tape_in(t, 0) }, 1);
}

static void averagepool_grad(HnTape *t)
{
    hn_tape_give(t, 0, hn_node_out(poolgrad(t, hn_tape_dy(t, 0)), 0));
}

/* To the place of the largest, the first of equal ones. */
static void maxpool_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, 0), hn_tape_out(t, 0) };
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "MaxPoolGrad", 3, in, 1), 0));
}

/* sign(x) |x|^(p - 1) times the sum over windows of dy y^(1 - p); 0 for windows of zeros */
static void lppool_grad(HnTape *t)
{
    t->number[0] = ((const HnPool *)t->params)->p - 1;
    HnNode *n = poolgrad(t, hn_tape_calc(t, "Where(y > 0, dy / Pow(y, a), 0)", NULL));
    hn_node_set_int(n, "sum", 1);
    HnValue *sum = hn_node_out(n, 0);
    hn_tape_give(t, 0, hn_tape_calc(t, "p * Sign(x) * Pow(Abs(x), a)", &sum));
}

const HnOp hn_op_averagepool = {
    .name = "AveragePool",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 7, 10, 11, 19, 22 },
    .forms =
        HN_FORMS({ "ceil_mode", HN_ATTR_INT, .since = 10 }, { "dilations", HN_ATTR_INTS, .since = 19, .number = 1 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "T",
    .out = "T",
    .T = HN_T_FLOATS,
    .unbind = pool_unbind,
    .params_size = sizeof(HnPool),
    .bind = averagepool_bind,
    .infer = pool_infer,
    .cost = pool_cost,
    .ref = averagepool_ref,
    .grad = averagepool_grad,
    .batch = hn_batch_first,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MEAN },
    .range = { .kind = HN_R_MEAN },
    .channels = { HN_CH_PLANES, HN_UNIT_SAME },
};

const HnOp hn_op_maxpool = {
    .name = "MaxPool",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 8, 10, 11, 12, 22 },
    .forms = HN_FORMS({ "storage_order", HN_ATTR_INT, .since = 8 }, { "ceil_mode", HN_ATTR_INT, .since = 10 },
                      { "dilations", HN_ATTR_INTS, .since = 10, .number = 1 }),
    .lacks = HN_LACKS({ 'T', 12, 0, HN_BIT(HN_U8) | HN_BIT(HN_I8) }, HN_BF16_SINCE(22)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "Ti",
    .T = HN_T_FLOATS | HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .unbind = pool_unbind,
    .params_size = sizeof(HnPool),
    .bind = maxpool_bind,
    .infer = pool_infer,
    .cost = pool_cost,
    .ref = maxpool_ref,
    .grad = maxpool_grad,
    .batch = hn_batch_first,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOST },
    .channels = { HN_CH_PLANES, HN_UNIT_SAME },
};

const HnOp hn_op_lppool = {
    .name = "LpPool",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 2, 11, 18, 22 },
    .forms =
        HN_FORMS({ "ceil_mode", HN_ATTR_INT, .since = 18 }, { "dilations", HN_ATTR_INTS, .since = 18, .number = 1 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "T",
    .out = "T",
    .T = HN_T_FLOATS,
    .unbind = lppool_unbind,
    .params_size = sizeof(HnPool),
    .bind = lppool_bind,
    .infer = pool_infer,
    .cost = pool_cost,
    .ref = lppool_ref,
    .grad = lppool_grad,
    .batch = hn_batch_first,
    .range = { .kind = HN_R_SQUARE },
    .channels = { HN_CH_PLANES },
};

const HnOp hn_op_poolgrad = {
    .name = "PoolGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnPool),
    .bind = poolgrad_bind,
    .infer = poolgrad_infer,
    .cost = hn_cost_elementwise,
    .ref = poolgrad_ref,
};
