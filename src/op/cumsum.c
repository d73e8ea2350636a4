/*
 * CumSum and CumProd along the axis that input 1 names; `exclusive` leaves the element itself out, `reverse` goes from
 * the end.
 */
#include "op/cumsum.h"

#include <inttypes.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/types.h"

static void cum_bind(HnBind *b, void *params)
{
    HnCum *p = params;
    p->exclusive = hn_bind_bool(b, "exclusive", FALSE);
    p->reverse = hn_bind_bool(b, "reverse", FALSE);
}

static void cum_infer(HnInfer *x)
{
    int64_t axis;
    int n, rank = hn_infer_rank(x, 0);
    if (rank >= 0 && hn_infer_ints(x, 1, &axis, 1, &n) && n == 1)
        hn_infer_axis(x, axis, rank);
    hn_infer_same(x);
}

#define COLUMNS 64 /* running results kept at a time */

/* A is what is accumulated in: double for floats, unsigned numbers for integers, whose overflow wraps. */
#define DEFINE_CUM(T, A)                                                                                             \
    static void cum_##T(T *y, const T *x, int64_t outer, int64_t n, int64_t inner, const HnCum *p, gboolean product) \
    {                                                                                                                \
        for (int64_t o = 0; o < outer; o++)                                                                          \
            for (int64_t c = 0; c < inner; c += COLUMNS) {                                                           \
                A acc[COLUMNS];                                                                                      \
                int64_t width = MIN(COLUMNS, inner - c);                                                             \
                for (int64_t i = 0; i < width; i++)                                                                  \
                    acc[i] = product ? 1 : 0;                                                                        \
                for (int64_t k = 0; k < n; k++) {                                                                    \
                    int64_t at = (o * n + (p->reverse ? n - 1 - k : k)) * inner + c;                                 \
                    for (int64_t i = 0; i < width; i++) {                                                            \
                        A v = (A)x[at + i], next = product ? acc[i] * v : acc[i] + v;                                \
                        y[at + i] = (T)(p->exclusive ? acc[i] : next);                                               \
                        acc[i] = next;                                                                               \
                    }                                                                                                \
                }                                                                                                    \
            }                                                                                                        \
    }
DEFINE_CUM(float, double)
DEFINE_CUM(double, double)
DEFINE_CUM(int32_t, uint32_t)
DEFINE_CUM(uint32_t, uint32_t)
DEFINE_CUM(int64_t, uint64_t)
DEFINE_CUM(uint64_t, uint64_t)

static void cum_eval(HnEval *e, gboolean product)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t given = 0;
    int axis;
    if (!hn_eval_int(e, 1, &given) || (axis = hn_eval_axis(e, given, x->ndim)) < 0)
        return;
    void *y = hn_eval_out_like(e, 0, x);
    if (y == NULL || x->n == 0)
        return;
    int64_t outer = hn_span(x->dims, 0, axis), n = x->dims[axis], inner = hn_span(x->dims, axis + 1, x->ndim);
#define RUN(T) cum_##T(y, x->data, outer, n, inner, e->params, product);
    switch (x->dtype) {
        HN_CASE(HN_F32, float, RUN)
        HN_CASE(HN_F64, double, RUN)
        HN_CASE(HN_I32, int32_t, RUN)
        HN_CASE(HN_U32, uint32_t, RUN)
        HN_CASE(HN_I64, int64_t, RUN)
        HN_CASE(HN_U64, uint64_t, RUN)
    default:
        hn_eval_fail(e, HN_ERROR_TYPE, "input 0 cannot be %s", hn_dtype_name(x->dtype));
        break;
    }
#undef RUN
}

static void cumsum_ref(HnEval *e)
{
    cum_eval(e, FALSE);
}

static void cumprod_ref(HnEval *e)
{
    cum_eval(e, TRUE);
}

/* From the other end. */
static void cumsum_grad(HnTape *t)
{
    const HnCum *p = t->params;
    HnNode *n = hn_build_node(t->build, "CumSum", NULL, 2, (HnValue *[]){ hn_tape_dy(t, 0), hn_tape_in(t, 1) }, 1);
    hn_node_set_int(n, "exclusive", p->exclusive);
    hn_node_set_int(n, "reverse", !p->reverse);
    hn_tape_give(t, 0, hn_node_out(n, 0));
}

/* Of the product of all up to k: dx_i = sum over k >= i of dy_k y_k / x_i, which needs x that are not 0. */
static void cumprod_grad(HnTape *t)
{
    const HnCum *p = t->params;
    HnValue *in[] = { hn_tape_calc(t, "dy * y", NULL), hn_tape_in(t, 1) };
    HnNode *n = hn_build_node(t->build, "CumSum", NULL, 2, in, 1);
    hn_node_set_int(n, "exclusive", p->exclusive);
    hn_node_set_int(n, "reverse", !p->reverse);
    HnValue *sum = hn_node_out(n, 0);
    hn_tape_give(t, 0, hn_tape_calc(t, "p / x", &sum));
}

#define CUM_RECORD                                                                        \
    .flags = HN_OP_HALF_VIA_F32, .in = "Tj", .out = "T",                                  \
    .T = HN_T_FLOATS | HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64), \
    .params_size = sizeof(HnCum), .bind = cum_bind, .infer = cum_infer, .cost = hn_cost_elementwise

void hn_cum_batch(HnBatch *b)
{
    int64_t given;
    int n, a = -1;
    if (hn_batch_ints(b, 1, &given, 1, &n) && n == 1)
        a = hn_batch_axis(given, hn_batch_rank_was(b, 0));
    if (a < 0 || !hn_batch_split(b, 0)) {
        hn_batch_fail(b, "its axis is not constant");
        return;
    }
    if (hn_batch_in_front(b, 0) || b->in[0].at.axis == a) {
        if (!hn_batch_lift(b, 0, 0))
            return;
        given = a + 1;
        hn_batch_set_ints(b, 1, &given, 1, -1);
    }
    b->out[0] = b->in[0].at;
}

const HnOp hn_op_cumsum = {
    .name = "CumSum",
    .since = { 11, 14 },
    .lacks = HN_LACKS({ 'T', 14, 0, HN_BIT(HN_F16) | HN_BIT(HN_BF16) }),
    .wide = HN_WIDE_WRAPS,
    CUM_RECORD,
    .ref = cumsum_ref,
    .grad = cumsum_grad,
    .batch = hn_cum_batch,
};

const HnOp hn_op_cumprod = {
    .name = "CumProd",
    .since = { 26 },
    CUM_RECORD,
    .ref = cumprod_ref,
    .grad = cumprod_grad,
    .batch = hn_cum_batch,
};
