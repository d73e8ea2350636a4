/*
 * LpNormalization: each vector along an axis divided by its 1-norm or 2-norm; a vector of zeros stays one.
 * MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over some axes.
 */
#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/op.h"
#include "op/tape.h"
#include "op/types.h"

/* --- LpNormalization ------------------------------------------------------------------------------------------------
 */

typedef struct {
    int64_t axis, p;
} HnLpNorm;

static void lpnorm_bind(HnBind *b, void *params)
{
    HnLpNorm *p = params;
    p->axis = hn_bind_int(b, "axis", -1);
    p->p = hn_bind_int(b, "p", 2);
    if (p->p != 1 && p->p != 2)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'p' is %" PRId64 ", neither 1 nor 2", p->p);
}

static void lpnorm_infer(HnInfer *x)
{
    const HnLpNorm *p = x->params;
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0)
        hn_infer_axis(x, p->axis, rank);
    hn_infer_same(x);
}

static void lpnorm_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 3 * hn_type_count(x->in[0]);
}

static void lpnorm_ref(HnEval *e)
{
    const HnLpNorm *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    void *out = axis >= 0 ? hn_eval_out_like(e, 0, x) : NULL;
    if (out == NULL)
        return;
    int64_t outer = hn_span(x->dims, 0, axis), n = x->dims[axis], inner = hn_span(x->dims, axis + 1, x->ndim);
#define RUN(T)                                                                                                \
    for (int64_t o = 0; x->n > 0 && o < outer; o++)                                                           \
        for (int64_t i = 0; i < inner; i++) {                                                                 \
            const T *v = (const T *)x->data + o * n * inner + i;                                              \
            T *y = (T *)out + o * n * inner + i;                                                              \
            double norm = 0;                                                                                  \
            for (int64_t k = 0; k < n; k++)                                                                   \
                norm += p->p == 1 ? fabs((double)v[k * inner]) : (double)v[k * inner] * (double)v[k * inner]; \
            norm = p->p == 1 ? norm : sqrt(norm);                                                             \
            for (int64_t k = 0; k < n; k++)                                                                   \
                y[k * inner] = norm == 0 ? 0 : (T)((double)v[k * inner] / norm);                              \
        }
    HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
}

/* (dy - s sum(dy y)) / norm, with s = y for the 2-norm and sign(x) for the 1-norm; 0 where all are 0. */
static void lpnormalization_grad(HnTape *t)
{
    const HnLpNorm *p = t->params;
    HnValue *v[] = { hn_build_reduce(t->build, p->p == 1 ? "ReduceL1" : "ReduceL2", hn_tape_in(t, 0), &p->axis, 1,
                                     TRUE),
                     hn_build_reduce(t->build, "ReduceSum", hn_tape_calc(t, "dy * y", NULL), &p->axis, 1, TRUE) };
    hn_tape_give(
        t, 0,
        hn_tape_calc(t, p->p == 1 ? "Where(p > 0, (dy - Sign(x) * q) / p, 0)" : "Where(p > 0, (dy - y * q) / p, 0)",
                     v));
}

void hn_lpnorm_batch(HnBatch *b)
{
    const HnLpNorm *p = b->params;
    hn_batch_along(b, p->axis, FALSE);
}

const HnOp hn_op_lpnormalization = {
    .name = "LpNormalization",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "T",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnLpNorm),
    .bind = lpnorm_bind,
    .infer = lpnorm_infer,
    .cost = lpnorm_cost,
    .ref = lpnorm_ref,
    .grad = lpnormalization_grad,
    .batch = hn_lpnorm_batch,
    .range = { .kind = HN_R_SQUARES, .row = HN_ROW_AXIS },
    .channels = { HN_CH_ROWS },
};

/* --- MeanVarianceNormalization --------------------------------------------------------------------------------------
 */

static const int64_t image_axes[] = { 0, 2, 3 };

typedef struct {
    const int64_t *axes;
    int64_t n;
} HnMvn;

static void mvn_bind(HnBind *b, void *params)
{
    HnMvn *p = params;
    p->axes = hn_bind_ints(b, "axes", &p->n);
    if (p->axes == NULL && !hn_bind_has(b, "axes")) {
        p->axes = image_axes;
        p->n = G_N_ELEMENTS(image_axes);
    }
}

static void mvn_infer(HnInfer *x)
{
    const HnMvn *p = x->params;
    int rank = hn_infer_rank(x, 0);
    for (int64_t i = 0; rank >= 0 && i < p->n && x->error == NULL; i++)
        hn_infer_axis(x, p->axes[i], rank);
    hn_infer_same(x);
}

static void mvn_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 6 * hn_type_count(x->in[0]);
}

/* Sums over the reduced axes: strides are those of the statistics, 0 along reduced axes. */
#define DEFINE_MVN(T)                                                                                          \
    static void mvn_##T(const HnTensor *t, T *y, int64_t *strides, double *mean, double *deviation, int64_t n, \
                        double count)                                                                          \
    {                                                                                                          \
        const T *x = t->data;                                                                                  \
        int64_t idx[HN_MAX_RANK] = { 0 }, off = 0, i = 0;                                                      \
        do                                                                                                     \
            mean[off] += (double)x[i++] / count;                                                               \
        while (hn_index_next(t->ndim, t->dims, idx, 1, &strides, &off));                                       \
        i = off = 0;                                                                                           \
        do {                                                                                                   \
            double d = (double)x[i++] - mean[off];                                                             \
            deviation[off] += d * d / count;                                                                   \
        } while (hn_index_next(t->ndim, t->dims, idx, 1, &strides, &off));                                     \
        for (int64_t k = 0; k < n; k++)                                                                        \
            deviation[k] = sqrt(deviation[k]) + 1e-9;                                                          \
        i = off = 0;                                                                                           \
        do {                                                                                                   \
            y[i] = (T)(((double)x[i] - mean[off]) / deviation[off]);                                           \
            i++;                                                                                               \
        } while (hn_index_next(t->ndim, t->dims, idx, 1, &strides, &off));                                     \
    }
DEFINE_MVN(float)
DEFINE_MVN(double)

static void mvn_ref(HnEval *e)
{
    const HnMvn *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    gboolean mask[HN_MAX_RANK] = { FALSE };
    int64_t strides[HN_MAX_RANK], n = 1;
    for (int64_t i = 0; i < p->n; i++) {
        int axis = hn_eval_axis(e, p->axes[i], x->ndim);
        if (axis < 0)
            return;
        mask[axis] = TRUE;
    }
    void *y = hn_eval_out_like(e, 0, x);
    if (y == NULL || x->n == 0)
        return;
    for (int i = x->ndim - 1; i >= 0; i--) {
        strides[i] = mask[i] ? 0 : n;
        n *= mask[i] ? 1 : x->dims[i];
    }
    double *stat = hn_eval_scratch(e, n, 2 * sizeof *stat);
    for (int64_t i = 0; stat != NULL && i < 2 * n; i++)
        stat[i] = 0;
    if (stat != NULL) {
#define RUN(T) mvn_##T(x, y, strides, stat, stat + n, n, (double)(x->n / n));
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, stat);
}

/* With d = deviation + 1e-9: (dy - mean(dy) - y mean(dy y) d / deviation) / d. */
static void meanvariancenormalization_grad(HnTape *t)
{
    const HnMvn *p = t->params;
    const HnBuild *b = t->build;
    HnValue *x = hn_tape_in(t, 0), *dy = hn_tape_dy(t, 0);
    HnValue *v[3] = { x, hn_build_reduce(b, "ReduceMean", x, p->axes, (int)p->n, TRUE) };
    HnValue *off = hn_tape_calc(t, "p - q", v);
    HnValue *var = hn_build_reduce(b, "ReduceMean", hn_build_op2(b, "Mul", off, off), p->axes, (int)p->n, TRUE);
    v[0] = hn_tape_calc(t, "Sqrt(p)", &var);
    v[1] = hn_build_reduce(b, "ReduceMean", hn_tape_calc(t, "dy * y", NULL), p->axes, (int)p->n, TRUE);
    v[2] = hn_build_reduce(b, "ReduceMean", dy, p->axes, (int)p->n, TRUE);
    hn_tape_give(t, 0, hn_tape_calc(t, "(dy - r) / (p + 0.000000001) - y * q / p", v));
}

void hn_mvn_batch(HnBatch *b)
{
    const HnMvn *p = b->params;
    const int rank = hn_batch_rank_was(b, 0);
    HnBatchReduced r = { .keepdims = TRUE };
    for (int64_t i = 0; i < p->n; i++) {
        const int a = hn_batch_axis(p->axes[i], rank);
        if (a >= 0)
            r.mark[a] = TRUE;
    }
    hn_batch_reduce(b, &r);
}

const HnOp hn_op_meanvariancenormalization = {
    .name = "MeanVarianceNormalization",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 9, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .in = "T",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnMvn),
    .bind = mvn_bind,
    .infer = mvn_infer,
    .cost = mvn_cost,
    .ref = mvn_ref,
    .grad = meanvariancenormalization_grad,
    .batch = hn_mvn_batch,
    .range = { .kind = HN_R_SQUARES, .exact = "T" }, /* as others spell it out in f32 constants */
};
