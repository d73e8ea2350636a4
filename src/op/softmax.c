/*
 * Softmax, LogSoftmax, Hardmax: normalisation along an axis. Before opset 13 the input was flattened to two dimensions
 * at `axis` (default 1) and each row of the matrix normalised; since then exactly one axis is (default -1).
 */
#include "op/softmax.h"

#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/op.h"
#include "op/types.h"
#include "op/tape.h"
#include "op/unbind.h"

static void softmax_bind(HnBind *b, void *params)
{
    HnSoftmax *p = params;
    p->flatten = b->version < 13;
    p->axis = hn_bind_int(b, "axis", p->flatten ? 1 : -1);
}

static void softmax_infer(HnInfer *x)
{
    const HnSoftmax *p = x->params;
    int rank = hn_infer_rank(x, 0);
    /* axis == rank is legal for flattening: each row has one element */
    const gboolean scalar = rank == 0 && (p->axis == 0 || p->axis == -1);
    if (rank >= 0 && !(p->flatten && p->axis == rank) && !scalar)
        hn_infer_axis(x, p->axis, rank);
    hn_infer_same(x);
}

static void softmax_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 5 * hn_type_count(x->out[0]); /* max, subtract, exp, sum, divide */
}

/* The tensor as [outer, n, inner]; normalisation runs along n. */
typedef struct {
    int64_t outer, n, inner;
} Rows;

static gboolean softmax_rows(HnEval *e, const HnTensor *x, Rows *r)
{
    const HnSoftmax *p = e->params;
    int axis = 0;
    if (p->flatten && p->axis == x->ndim)
        axis = x->ndim;
    else if (x->ndim > 0 && (axis = hn_eval_axis(e, p->axis, x->ndim)) < 0)
        return FALSE;
    int end = p->flatten || x->ndim == 0 ? x->ndim : axis + 1;
    *r = (Rows){ hn_span(x->dims, 0, axis), hn_span(x->dims, axis, end), hn_span(x->dims, end, x->ndim) };
    return TRUE;
}

typedef enum { SOFT, LOG, HARD } Kind;

/* x and y are [outer, n, inner]; double sums: the judge must be better than the judged */
#define DEFINE_RUN(T)                                                                                            \
    static void run_##T(T *y, const T *x, Rows r, Kind kind)                                                     \
    {                                                                                                            \
        for (int64_t o = 0; o < r.outer; o++)                                                                    \
            for (int64_t i = 0; i < r.inner; i++) {                                                              \
                const T *xr = x + o * r.n * r.inner + i;                                                         \
                T *yr = y + o * r.n * r.inner + i;                                                               \
                double max = -INFINITY, sum = 0;                                                                 \
                int64_t best = 0;                                                                                \
                for (int64_t k = 0; k < r.n; k++)                                                                \
                    if ((double)xr[k * r.inner] > max) {                                                         \
                        max = (double)xr[k * r.inner];                                                           \
                        best = k;                                                                                \
                    }                                                                                            \
                for (int64_t k = 0; kind != HARD && k < r.n; k++)                                                \
                    sum += exp((double)xr[k * r.inner] - max);                                                   \
                for (int64_t k = 0; k < r.n; k++) {                                                              \
                    double d = (double)xr[k * r.inner] - max;                                                    \
                    yr[k * r.inner] = (T)(kind == SOFT ? exp(d) / sum : kind == LOG ? d - log(sum) : k == best); \
                }                                                                                                \
            }                                                                                                    \
    }
DEFINE_RUN(float)
DEFINE_RUN(double)

static void softmax_eval(HnEval *e, Kind kind)
{
    const HnTensor *x = hn_eval_in(e, 0);
    Rows r;
    void *y;
    if (!softmax_rows(e, x, &r) || (y = hn_eval_out_like(e, 0, x)) == NULL)
        return;
#define RUN(T) run_##T(y, x->data, r, kind);
    HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
}

static void softmax_ref(HnEval *e)
{
    softmax_eval(e, SOFT);
}

static void logsoftmax_ref(HnEval *e)
{
    softmax_eval(e, LOG);
}

static void hardmax_ref(HnEval *e)
{
    softmax_eval(e, HARD);
}

/* Between opsets 12 and 13 only the last axis means the same. */
static void softmax_unbind(HnUnbind *u)
{
    const HnSoftmax *p = u->params;
    int rank = hn_unbind_rank(u, 0);
    gboolean flat = u->to < 13;
    int64_t axis = p->axis < 0 && rank >= 0 ? p->axis + rank : p->axis, perm[HN_MAX_RANK];
    if (p->flatten == flat) {
        if (u->to < 11)
            hn_unbind_axis(u, "axis", rank);
        return;
    }
    if (rank == 0 || axis == rank - 1 || (axis == -1 && (!flat || u->to >= 11))) {
        hn_node_set_int(u->node, "axis", flat && rank >= 0 ? MAX(axis, 0) : -1);
        return;
    }
    if (flat && rank < 0) {
        hn_unbind_refuse(u, "before opset 13 all axes from the given one on are one, and their number is not known");
        return;
    }
    HnValue *x = hn_unbind_in(u, 0);
    for (int i = 0; flat && i < rank; i++)
        perm[i] = i == rank - 1 ? axis : i == axis ? rank - 1 : i;
    if (flat) {
        x = hn_unbind_transpose(u, x, perm, rank);
    } else {
        HnNode *f = hn_unbind_node(u, "Flatten", 1, &x, 1);
        hn_node_set_int(f, "axis", axis);
        x = hn_node_out(f, 0);
    }
    HnNode *s = hn_unbind_node(u, u->node->op_type, 1, &x, 1);
    hn_node_set_int(s, "axis", -1);
    HnValue *y = hn_node_out(s, 0);
    hn_unbind_take(u, 0,
                   flat ? hn_unbind_transpose(u, y, perm, rank)
                        : hn_unbind_op2(u, "Reshape", y, hn_unbind_shape(u, hn_unbind_in(u, 0), 0, INT64_MAX)));
}

static void rows_grad(HnTape *t, gboolean log)
{
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_out(t, 0) };
    HnNode *n = hn_build_node(t->build, "SoftmaxGrad", HN_DOMAIN_INTERNAL, 2, in, 1);
    hn_node_set_int(n, "axis", ((const HnSoftmax *)t->params)->axis);
    if (log)
        hn_node_set_int(n, "log", 1);
    hn_tape_give(t, 0, hn_node_out(n, 0));
}

static void softmax_grad(HnTape *t)
{
    rows_grad(t, FALSE);
}

static void logsoftmax_grad(HnTape *t)
{
    rows_grad(t, TRUE);
}

static void hardmax_grad(HnTape *t)
{
    hn_tape_steps(t);
}

#define SOFTMAX_RECORD                                                                                            \
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_INPLACE, .since = { 1, 11, 13 }, .in = "T", .out = "T", .T = HN_T_FLOATS, \
    .params_size = sizeof(HnSoftmax), .bind = softmax_bind, .infer = softmax_infer, .cost = softmax_cost

void hn_softmax_batch(HnBatch *b)
{
    const HnSoftmax *p = b->params;
    hn_batch_along(b, p->axis, p->flatten);
}

const HnOp hn_op_softmax = {
    .name = "Softmax",
    .unbind = softmax_unbind,
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    SOFTMAX_RECORD,
    .ref = softmax_ref,
    .grad = softmax_grad,
    .batch = hn_softmax_batch,
    .quant = { .kind = HN_Q_FIXED_RANGE, .lo = 0, .hi = 1 },
    .range = { .kind = HN_R_EXPONENTS, .row = HN_ROW_AXIS },
    .channels = { HN_CH_ROWS },
};

const HnOp hn_op_logsoftmax = {
    .name = "LogSoftmax",
    .unbind = softmax_unbind,
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    SOFTMAX_RECORD,
    .ref = logsoftmax_ref,
    .grad = logsoftmax_grad,
    .batch = hn_softmax_batch,
    .range = { .kind = HN_R_EXPONENTS, .row = HN_ROW_AXIS },
    .channels = { HN_CH_ROWS },
};

const HnOp hn_op_hardmax = {
    .name = "Hardmax",
    .unbind = softmax_unbind,
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    SOFTMAX_RECORD,
    .ref = hardmax_ref,
    .grad = hardmax_grad,
    .batch = hn_softmax_batch,
    .quant = { .kind = HN_Q_FIXED_RANGE, .lo = 0, .hi = 1 },
};
