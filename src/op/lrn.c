/*
 * LRN: each element divided by a power of the sum of squares over neighbouring channels,
 * y = x / (bias + alpha / size * sum) ^ beta. Of an even `size` the greater half lies above.
 */
#include "op/lrn.h"

#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/tape.h"
#include "op/types.h"

static void lrn_bind(HnBind *b, void *params)
{
    HnLrn *p = params;
    hn_bind_require(b, "size");
    p->alpha = hn_bind_float(b, "alpha", 1e-4f);
    p->beta = hn_bind_float(b, "beta", 0.75f);
    p->bias = hn_bind_float(b, "bias", 1);
    p->size = hn_bind_int(b, "size", 1);
    if (p->size < 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'size' is %" PRId64 ", less than 1", p->size);
}

static void lrn_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0 && rank < 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has %d dimensions, at least 2 are needed", rank);
    hn_infer_same(x);
}

static void lrn_cost(const HnInfer *x, HnCost *c)
{
    const HnLrn *p = x->params;
    c->flops = (2 * (double)p->size + 4) * hn_type_count(x->in[0]);
}

/* x: [channels, n]; sum: n places */
#define DEFINE_SAMPLE(T)                                                                                           \
    static void sample_##T(const HnLrn *p, const T *x, T *y, int64_t channels, int64_t n, double *sum)             \
    {                                                                                                              \
        double alpha = (double)p->alpha / (double)p->size;                                                         \
        int64_t below = (p->size - 1) / 2, above = p->size - 1 - below;                                            \
        for (int64_t c = 0; c < channels; c++) {                                                                   \
            int64_t from = c < below ? 0 : c - below, to = above < channels - c ? c + above : channels - 1;        \
            for (int64_t i = 0; i < n; i++)                                                                        \
                sum[i] = 0;                                                                                        \
            for (int64_t k = from; k <= to; k++)                                                                   \
                for (int64_t i = 0; i < n; i++)                                                                    \
                    sum[i] += (double)x[k * n + i] * (double)x[k * n + i];                                         \
            for (int64_t i = 0; i < n; i++)                                                                        \
                y[c * n + i] = (T)((double)x[c * n + i] / pow((double)p->bias + alpha * sum[i], (double)p->beta)); \
        }                                                                                                          \
    }
DEFINE_SAMPLE(float)
DEFINE_SAMPLE(double)

static void lrn_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    if (x->ndim < 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 0 has %d dimensions, at least 2 are needed", x->ndim);
        return;
    }
    int64_t channels = x->dims[1], n = hn_span(x->dims, 2, x->ndim);
    void *y = hn_eval_out_like(e, 0, x);
    double *sum = y != NULL && x->n > 0 ? hn_eval_scratch(e, n, sizeof *sum) : NULL;
    for (int64_t at = 0; sum != NULL && at < x->n; at += channels * n) {
#define RUN(T) sample_##T(e->params, (const T *)x->data + at, (T *)y + at, channels, n, sum);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, sum);
}

/* [N,C,...] as [N,1,C,...], the places of a channel in a row. */
static HnValue *channels_of(const HnTape *t, HnValue *v)
{
    v = hn_build_op2(t->build, "Unsqueeze", v, hn_build_list(t->build, (int64_t[]){ 1 }, 1));
    return hn_build_reshape(t->build, v, (int64_t[]){ 0, 0, 0, -1 }, 4);
}

/* Means of the `size` channels around each, with zeros outside. */
static HnValue *mean_around(const HnTape *t, HnValue *v, int64_t below, int64_t above)
{
    const int64_t kernel[] = { below + above + 1, 1 }, pads[] = { below, 0, above, 0 };
    v = hn_build_op1(t->build, "AveragePool", v);
    hn_node_set_ints(v->producer, "kernel_shape", kernel, 2);
    hn_node_set_ints(v->producer, "pads", pads, 4);
    hn_node_set_int(v->producer, "count_include_pad", 1);
    return v;
}

/* With s = bias + alpha * mean(x^2): dx = dy / s^beta - 2 alpha beta x mean'(dy x / s^(beta + 1)), the mean over those
 * that have the element among theirs. */
static void lrn_grad(HnTape *t)
{
    const HnLrn *p = t->params;
    const int64_t below = (p->size - 1) / 2, above = p->size - 1 - below;
    if (!hn_tape_needs(t, 0))
        return;
    HnValue *v[3] = { channels_of(t, hn_tape_in(t, 0)), channels_of(t, hn_tape_dy(t, 0)) };
    t->number[0] = (double)p->alpha;
    t->number[1] = (double)p->bias;
    t->number[2] = (double)p->beta;
    v[2] = mean_around(t, hn_tape_calc(t, "p * p", v), below, above);
    v[2] = hn_tape_calc(t, "a * r + b", v);
    HnValue *u[] = { v[0], hn_tape_calc(t, "q * Pow(r, -c)", v), v[2] };
    u[2] = mean_around(t, hn_tape_calc(t, "p * q / r", u), above, below);
    hn_tape_give(t, 0, hn_tape_reshape_like(t, hn_tape_calc(t, "q - 2 * a * c * p * r", u), hn_tape_in(t, 0)));
}

const HnOp hn_op_lrn = {
    .name = "LRN",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .in = "T",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnLrn),
    .bind = lrn_bind,
    .infer = lrn_infer,
    .cost = lrn_cost,
    .ref = lrn_ref,
    .grad = lrn_grad,
    .batch = hn_batch_first,
};
