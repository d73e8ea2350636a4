/*
 * SoftmaxGrad (domain "hone"): from dy and y, the result of Softmax along `axis`, dx = y (dy - sum dy y); with `log` =
 * 1 that of LogSoftmax, dx = dy - e^y sum dy. Sums along the axis, in double.
 */
#include <math.h>

#include "op/index.h"
#include "op/one_shape.h"
#include "op/softmax.h"
#include "op/types.h"

static void softmaxgrad_bind(HnBind *b, void *params)
{
    HnSoftmaxGrad *p = params;
    p->axis = hn_bind_int(b, "axis", -1);
    p->log = hn_bind_bool(b, "log", FALSE);
}

static void softmaxgrad_infer(HnInfer *x)
{
    const HnSoftmaxGrad *p = x->params;
    if (hn_infer_rank(x, 1) >= 0)
        hn_infer_axis(x, p->axis, hn_infer_rank(x, 1));
    hn_infer_one_shape(x, 2);
    hn_infer_same(x);
}

static void softmaxgrad_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 4 * hn_type_count(x->out[0]);
}

#define DEFINE_RUN(T)                                                                                          \
    static void run_##T(T *dx, const T *dy, const T *y, int64_t n, int64_t step, gboolean log)                 \
    {                                                                                                          \
        double sum = 0;                                                                                        \
        for (int64_t i = 0; i < n * step; i += step)                                                           \
            sum += (double)dy[i] * (log ? 1 : (double)y[i]);                                                   \
        for (int64_t i = 0; i < n * step; i += step)                                                           \
            dx[i] = (T)(log ? (double)dy[i] - exp((double)y[i]) * sum : (double)y[i] * ((double)dy[i] - sum)); \
    }
DEFINE_RUN(float)
DEFINE_RUN(double)

static void softmaxgrad_ref(HnEval *e)
{
    const HnSoftmaxGrad *p = e->params;
    const HnTensor *dy = hn_eval_in(e, 0), *y = hn_eval_in(e, 1);
    const int axis = hn_eval_axis(e, p->axis, y->ndim);
    if (axis < 0)
        return;
    if (dy->n != y->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "inputs have different shapes");
        return;
    }
    void *dx = hn_eval_out_like(e, 0, dy);
    const int64_t n = y->dims[axis], inner = hn_span(y->dims, axis + 1, y->ndim);
    for (int64_t o = 0; dx != NULL && n > 0 && o < y->n / n; o++) {
        const int64_t at = o / inner * n * inner + o % inner;
#define RUN(T) run_##T((T *)dx + at, (const T *)dy->data + at, (const T *)y->data + at, n, inner, p->log);
        HN_FOR_FLOAT(y->dtype, RUN)
#undef RUN
    }
}

const HnOp hn_op_softmaxgrad = {
    .name = "SoftmaxGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_INPLACE,
    .since = { 1 },
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnSoftmaxGrad),
    .bind = softmaxgrad_bind,
    .infer = softmaxgrad_infer,
    .cost = softmaxgrad_cost,
    .ref = softmaxgrad_ref,
};
