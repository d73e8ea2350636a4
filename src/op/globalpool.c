/*
 * GlobalAveragePool, GlobalMaxPool, GlobalLpPool: one number per sample and channel, the spatial axes become 1.
 */
#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/op.h"
#include "op/tape.h"
#include "op/types.h"

typedef struct {
    double p;
} HnGlobalPool;

static void globallppool_bind(HnBind *b, void *params)
{
    HnGlobalPool *g = params;
    g->p = b->version < 2 ? (double)hn_bind_float(b, "p", 2) : (double)hn_bind_int(b, "p", 2);
    if (!(g->p > 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'p' is not positive");
}

static void globalpool_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (rank >= 0 && rank < 2) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 2 are needed", rank);
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? hn_infer_dim(x, 0, i) : hn_dim(1);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

static void globalpool_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[0]);
}

typedef enum { MEAN, LARGEST, NORM } Kind;

#define DEFINE_RUN(T)                                            \
    static T run_##T(const T *x, int64_t n, Kind kind, double p) \
    {                                                            \
        double sum = 0;                                          \
        T max = (T)-INFINITY;                                    \
        switch (kind) {                                          \
        case MEAN:                                               \
            for (int64_t i = 0; i < n; i++)                      \
                sum += (double)x[i];                             \
            return (T)(sum / (double)n);                         \
        case LARGEST:                                            \
            for (int64_t i = 0; i < n; i++)                      \
                max = x[i] > max ? x[i] : max;                   \
            return max;                                          \
        default:                                                 \
            for (int64_t i = 0; i < n; i++)                      \
                sum += pow(fabs((double)x[i]), p);               \
            return (T)pow(sum, 1 / p);                           \
        }                                                        \
    }
DEFINE_RUN(float)
DEFINE_RUN(double)

static void globalpool_eval(HnEval *e, Kind kind)
{
    const HnTensor *x = hn_eval_in(e, 0);
    double p = kind == NORM ? ((const HnGlobalPool *)e->params)->p : 0;
    int64_t dims[HN_MAX_RANK], planes, n;
    if (x->ndim < 2 || x->ndim > HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input has %d dimensions, at least 2 are needed", x->ndim);
        return;
    }
    for (int i = 0; i < x->ndim; i++)
        dims[i] = i < 2 ? x->dims[i] : 1;
    void *y = hn_eval_out(e, 0, x->dtype, x->ndim, dims);
    if (y == NULL || (planes = dims[0] * dims[1]) == 0)
        return;
    n = x->n / planes;
    for (int64_t i = 0; i < planes; i++) {
#define RUN(T) ((T *)y)[i] = run_##T((const T *)x->data + i * n, n, kind, p);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
}

static void globalaveragepool_ref(HnEval *e)
{
    globalpool_eval(e, MEAN);
}

static void globalmaxpool_ref(HnEval *e)
{
    globalpool_eval(e, LARGEST);
}

static void globallppool_ref(HnEval *e)
{
    globalpool_eval(e, NORM);
}

/* Elements of a plane. */
static HnValue *plane_size(HnTape *t)
{
    HnValue *all = hn_build_op1(t->build, "Size", hn_tape_in(t, 0));
    HnValue *each = hn_build_op2(t->build, "Div", all, hn_build_op1(t->build, "Size", hn_tape_out(t, 0)));
    return hn_build_cast(t->build, each, t->dtype);
}

static void globalaveragepool_grad(HnTape *t)
{
    HnValue *n = plane_size(t), *x = hn_tape_in(t, 0);
    HnValue *each = hn_tape_calc(t, "dy / p", &n);
    hn_tape_give(t, 0, hn_build_op2(t->build, "Expand", each, hn_build_shape(t->build, x, 0, INT64_MAX)));
}

/* Elements that are the largest share its gradient evenly. */
static void globalmaxpool_grad(HnTape *t)
{
    HnValue *y = hn_tape_out(t, 0);
    HnValue *is = hn_build_cast(t->build, hn_build_op2(t->build, "Equal", hn_tape_in(t, 0), y), t->dtype);
    HnValue *v[] = { is, hn_tape_sum_like(t, is, y) };
    hn_tape_give(t, 0, hn_tape_calc(t, "p * (dy / q)", v));
}

/* sign(x) |x|^(p - 1) / y^(p - 1), and 0 where all are 0 */
static void globallppool_grad(HnTape *t)
{
    t->number[0] = (double)((const HnGlobalPool *)t->params)->p - 1;
    hn_tape_give(t, 0, hn_tape_calc(t, "dy * Sign(x) * Where(y > 0, Pow(Abs(x) / y, a), 0)", NULL));
}

#define GLOBALPOOL_RECORD                                                                            \
    .flags = HN_OP_HALF_VIA_F32, .in = "T", .out = "T", .T = HN_T_FLOATS, .infer = globalpool_infer, \
    .cost = globalpool_cost

const HnOp hn_op_globalaveragepool = {
    .name = "GlobalAveragePool",
    GLOBALPOOL_RECORD,
    .since = { 1, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .ref = globalaveragepool_ref,
    .grad = globalaveragepool_grad,
    .batch = hn_batch_first,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MEAN },
    .range = { .kind = HN_R_MEAN },
    .channels = { HN_CH_PLANES, HN_UNIT_SAME },
};

const HnOp hn_op_globalmaxpool = {
    .name = "GlobalMaxPool",
    GLOBALPOOL_RECORD,
    .since = { 1, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .wide = HN_WIDE_PICKS,
    .ref = globalmaxpool_ref,
    .grad = globalmaxpool_grad,
    .batch = hn_batch_first,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOST },
    .channels = { HN_CH_PLANES, HN_UNIT_SAME },
};

const HnOp hn_op_globallppool = {
    .name = "GlobalLpPool",
    GLOBALPOOL_RECORD,
    .since = { 1, 2, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .params_size = sizeof(HnGlobalPool),
    .bind = globallppool_bind,
    .ref = globallppool_ref,
    .grad = globallppool_grad,
    .batch = hn_batch_first,
    .range = { .kind = HN_R_SQUARE },
    .channels = { HN_CH_PLANES },
};
