/*
 * BatchNormGrad (domain "hone"): gradients of y = (x - mean) inv scale + bias per channel by x, scale and bias, from dy
 * and inv = 1 / deviation. Over the n elements of a channel, x^ = (x - mean) inv:
 *
 *     dbias = sum dy,  dscale = sum dy x^,  dx = scale inv (dy - dbias / n - x^ dscale / n)
 *
 * S. Ioffe, C. Szegedy, "Batch normalization", 2015, section 3. With attribute `frozen` the moments do not depend on x:
 * input 4 is the variance, inv = 1 / sqrt(variance + epsilon), and dx = scale inv dy. With attribute `mask` an
 * activation lies behind: dy is 0 where y, of input 5, is cut off. Sums are in double.
 */
#include <math.h>

#include "op/batchnorm.h"
#include "op/index.h"
#include "op/types.h"

enum { DY, X, SCALE, MEAN, INV, BIAS };

static void batchnormgrad_bind(HnBind *b, void *params)
{
    static const char *const masks[] = { "none", "relu", "clip", NULL };
    HnBatchNormGrad *p = params;
    p->frozen = hn_bind_bool(b, "frozen", FALSE);
    p->mask = (HnMask)hn_bind_word(b, "mask", masks, HN_MASK_NONE);
    p->epsilon = hn_bind_float(b, "epsilon", 1e-5f);
    p->lo = hn_bind_float(b, "lo", -INFINITY);
    p->hi = hn_bind_float(b, "hi", INFINITY);
}

static void batchnormgrad_infer(HnInfer *x)
{
    const HnBatchNormGrad *p = x->params;
    hn_infer_out_like(x, 0, X);
    for (int k = 1; k < x->n_out; k++)
        hn_infer_out_like(x, k, SCALE);
    if (hn_infer_rank(x, X) >= 0 && hn_infer_rank(x, X) < 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, at least 2 are needed", X, hn_infer_rank(x, X));
    else if (p->mask != HN_MASK_NONE && !hn_infer_has(x, BIAS))
        hn_infer_fail(x, HN_ERROR_GRAPH, "the bias is missing");
}

static void batchnormgrad_cost(const HnInfer *x, HnCost *c)
{
    const HnBatchNormGrad *p = x->params;
    c->flops = (p->frozen ? 5 : 8) * hn_type_count(x->in[X]);
}

/* One channel: elements at [n * pitch + i], n < samples, i < inner. */
typedef struct {
    const HnBatchNormGrad *p;
    int64_t samples, inner, pitch;
    double scale, mean, inv, bias, dscale, dbias; /* the last two are made */
} Channel;

static gboolean passes(const Channel *c, double x)
{
    const HnBatchNormGrad *p = c->p;
    const double y = p->mask != HN_MASK_NONE ? (x - c->mean) * c->inv * c->scale + c->bias : 0;
    return p->mask == HN_MASK_NONE || (p->mask == HN_MASK_RELU ? y > 0 : y >= (double)p->lo && y <= (double)p->hi);
}

#define DEFINE_CHANNEL(T)                                                                    \
    static void channel_##T(Channel *c, T *dx, const T *dy, const T *x)                      \
    {                                                                                        \
        const double n = c->p->frozen ? INFINITY : (double)(c->samples * c->inner);          \
        for (int64_t s = 0; s < c->samples; s++)                                             \
            for (int64_t i = s * c->pitch; i < s * c->pitch + c->inner; i++) {               \
                const double d = passes(c, (double)x[i]) ? (double)dy[i] : 0;                \
                c->dbias += d;                                                               \
                c->dscale += d * ((double)x[i] - c->mean) * c->inv;                          \
            }                                                                                \
        for (int64_t s = 0; s < c->samples; s++)                                             \
            for (int64_t i = s * c->pitch; i < s * c->pitch + c->inner; i++) {               \
                const double d = passes(c, (double)x[i]) ? (double)dy[i] : 0;                \
                const double hat = ((double)x[i] - c->mean) * c->inv;                        \
                dx[i] = (T)(c->scale * c->inv * (d - c->dbias / n - hat * (c->dscale / n))); \
            }                                                                                \
    }
DEFINE_CHANNEL(float)
DEFINE_CHANNEL(double)

static void batchnormgrad_ref(HnEval *e)
{
    const HnTensor *dy = hn_eval_in(e, DY), *x = hn_eval_in(e, X);
    const int64_t channels = x->ndim > 1 ? x->dims[1] : 0, inner = hn_span(x->dims, 2, x->ndim);
    gboolean fits = x->ndim > 1 && dy->n == x->n;
    for (int i = SCALE; i <= BIAS; i++)
        fits = fits && (hn_eval_in(e, i) == NULL || hn_eval_in(e, i)->n == channels);
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "an input does not fit the channels of input 1");
        return;
    }
    char *dx = hn_eval_out_like(e, 0, x);
    void *sums[2] = { hn_eval_out_like(e, 1, hn_eval_in(e, SCALE)), hn_eval_out_like(e, 2, hn_eval_in(e, SCALE)) };
    if (dx == NULL || sums[0] == NULL || sums[1] == NULL)
        return;
    for (int64_t k = 0; k < channels; k++) {
        Channel c = { .p = e->params, .samples = x->dims[0], .inner = inner, .pitch = channels * inner };
        double *of[] = { &c.scale, &c.mean, &c.inv, &c.bias };
        for (int i = SCALE; i <= BIAS; i++)
            *of[i - SCALE] = hn_eval_in(e, i) != NULL ? hn_tensor_get_f64(hn_eval_in(e, i), k) : 0;
        if (c.p->frozen)
            c.inv = 1 / sqrt(c.inv + (double)c.p->epsilon);
#define RUN(T) channel_##T(&c, (T *)dx + k * inner, (const T *)dy->data + k * inner, (const T *)x->data + k * inner);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
        hn_tensor_set_f64(e->out[1], k, c.dscale);
        hn_tensor_set_f64(e->out[2], k, c.dbias);
    }
}

const HnOp hn_op_batchnormgrad = {
    .name = "BatchNormGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTUVVU",
    .out = "TUU",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .V = HN_T_FLOATS,
    .min_in = 5,
    .params_size = sizeof(HnBatchNormGrad),
    .bind = batchnormgrad_bind,
    .infer = batchnormgrad_infer,
    .cost = batchnormgrad_cost,
    .ref = batchnormgrad_ref,
};
