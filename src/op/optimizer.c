/*
 * Optimizers (domain "hone"): new weights w and state m, v from old ones, the gradient dw, of their shape, and `hyper`
 * (op/optimizer.h). The gradient is multiplied by its scale first; where that is not finite, the outputs are the
 * inputs, bit by bit. Output k may lie over input k.
 *
 * AdamW(w, m, v, dw, hyper): decoupled weight decay (I. Loshchilov, F. Hutter, 2019).
 * Sgd(w, m, dw, hyper): weight decay is added to the gradient; momentum may be Nesterov's. Without momentum m may be
 *   absent.
 * Lion(w, m, dw, hyper): steps of one size, of the sign of a mean (Chen et al., 2023).
 * ClipByNorm(hyper, dw...): hyper with a scale such that the norm of all gradients together is `limit` at most, and
 *   that norm before (R. Pascanu et al., 2013). Of a norm that is not finite the scale is NaN.
 * MovingAverage(a, w, hyper): decay * a + (1 - decay) * w; a where hyper's scale is not finite. hyper may be absent.
 */
#include "op/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op/one_shape.h"
#include "op/types.h"

double hn_decimal(float v)
{
    char text[32];
    return g_ascii_strtod(g_ascii_formatd(text, sizeof text, "%.7g", (double)v), NULL);
}

static double bind_number(HnBind *b, const char *name, double def)
{
    return hn_bind_has(b, name) ? hn_decimal(hn_bind_float(b, name, 0)) : def;
}

/* 0 <= v < 1, as what a mean keeps of itself */
static double bind_part(HnBind *b, const char *name, double def)
{
    const double v = bind_number(b, name, def);
    if (!(v >= 0 && v < 1))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%s %g is outside [0, 1)", name, v);
    return v;
}

static double bind_positive(HnBind *b, const char *name, double def)
{
    const double v = bind_number(b, name, def);
    if (!(v >= 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%s %g is below 0", name, v);
    return v;
}

static void adamw_bind(HnBind *b, void *params)
{
    HnOptimizer *p = params;
    p->beta1 = bind_part(b, "beta1", 0.9);
    p->beta2 = bind_part(b, "beta2", 0.999);
    p->epsilon = bind_positive(b, "epsilon", 1e-8);
    p->weight_decay = bind_positive(b, "weight_decay", 0.01);
}

static void sgd_bind(HnBind *b, void *params)
{
    HnOptimizer *p = params;
    p->momentum = bind_part(b, "momentum", 0);
    p->nesterov = hn_bind_bool(b, "nesterov", FALSE);
    p->weight_decay = bind_positive(b, "weight_decay", 0);
    if (p->momentum > 0 && hn_node_in(b->node, 1) == NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "momentum needs input 1");
}

static void lion_bind(HnBind *b, void *params)
{
    HnOptimizer *p = params;
    p->beta1 = bind_part(b, "beta1", 0.9);
    p->beta2 = bind_part(b, "beta2", 0.99);
    p->weight_decay = bind_positive(b, "weight_decay", 0);
}

/* --- what is shared ------------------------------------------------------------------------------------------------
 */

static gboolean is_hyper(const HnInfer *x, int i)
{
    const int rank = hn_infer_rank(x, i);
    return rank < 0 || (rank == 1 && (!hn_infer_dim(x, i, 0).known || hn_dim_is(hn_infer_dim(x, i, 0), HN_HYPERS)));
}

/* Inputs: those of one shape, then hyper. */
static void optimizer_infer(HnInfer *x)
{
    const int n = x->n_in - 1;
    hn_infer_one_shape(x, n);
    if (!is_hyper(x, n))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input %d is not of %d elements", n, HN_HYPERS);
    for (int k = 0; k < x->n_out; k++)
        hn_infer_out_like(x, k, hn_infer_has(x, k) ? k : 0);
}

/* A step that is skipped. */
static void keep(HnEval *e)
{
    for (int k = 0; k < e->n_out; k++)
        if (e->in[k] != NULL)
            memmove(e->out[k]->data, e->in[k]->data, e->in[k]->bytes);
}

/* hyper, once all inputs fit and all outputs have their memory; NULL: failed, or there is nothing left to do. */
static const float *begin(HnEval *e)
{
    const int n = e->n_in - 1;
    const HnTensor *hyper = hn_eval_in(e, n);
    if (!hn_eval_one_shape(e, n))
        return NULL;
    if (hyper->n != HN_HYPERS)
        hn_eval_fail(e, HN_ERROR_SHAPE, "input %d is not of %d elements", n, HN_HYPERS);
    for (int k = 0; k < e->n_out; k++)
        hn_eval_out_like(e, k, e->in[0]);
    if (e->error != NULL)
        return NULL;
    const float *h = hyper->data;
    if (isfinite(h[HN_HYPER_SCALE]))
        return h;
    keep(e);
    return NULL;
}

static void adamw_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 14 * hn_type_count(x->in[0]);
}

static void step_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 6 * hn_type_count(x->in[0]);
}

/* --- AdamW, Sgd, Lion -----------------------------------------------------------------------------------------------
 */

static double adam_step(const HnOptimizer *p, const double *hyper, double *m, double *v, double g)
{
    *m = p->beta1 * *m + (1 - p->beta1) * g;
    *v = p->beta2 * *v + (1 - p->beta2) * g * g;
    return *m * hyper[HN_HYPER_FIRST] / (sqrt(*v * hyper[HN_HYPER_SECOND]) + p->epsilon);
}

static void adamw_ref(HnEval *e)
{
    const HnOptimizer *p = e->params;
    const float *hyper = begin(e);
    double h[HN_HYPERS];
    for (int k = 0; hyper != NULL && k < HN_HYPERS; k++)
        h[k] = (double)hyper[k];
    for (int64_t i = 0; hyper != NULL && i < e->in[0]->n; i++) {
        double w = hn_tensor_get_f64(e->in[0], i), m = hn_tensor_get_f64(e->in[1], i),
               v = hn_tensor_get_f64(e->in[2], i);
        const double by = adam_step(p, h, &m, &v, hn_tensor_get_f64(e->in[3], i) * h[HN_HYPER_SCALE]);
        w -= h[HN_HYPER_RATE] * (p->weight_decay * w + by);
        hn_tensor_set_f64(e->out[0], i, w);
        hn_tensor_set_f64(e->out[1], i, m);
        hn_tensor_set_f64(e->out[2], i, v);
    }
}

static void sgd_ref(HnEval *e)
{
    const HnOptimizer *p = e->params;
    const float *hyper = begin(e);
    for (int64_t i = 0; hyper != NULL && i < e->in[0]->n; i++) {
        const double w = hn_tensor_get_f64(e->in[0], i);
        double g = hn_tensor_get_f64(e->in[2], i) * (double)hyper[HN_HYPER_SCALE] + p->weight_decay * w;
        if (e->in[1] != NULL) {
            const double m = p->momentum * hn_tensor_get_f64(e->in[1], i) + g;
            g = p->nesterov ? g + p->momentum * m : m;
            if (e->n_out > 1)
                hn_tensor_set_f64(e->out[1], i, m);
        }
        hn_tensor_set_f64(e->out[0], i, w - (double)hyper[HN_HYPER_RATE] * g);
    }
}

static double sign_of(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static void lion_ref(HnEval *e)
{
    const HnOptimizer *p = e->params;
    const float *hyper = begin(e);
    for (int64_t i = 0; hyper != NULL && i < e->in[0]->n; i++) {
        const double w = hn_tensor_get_f64(e->in[0], i), m = hn_tensor_get_f64(e->in[1], i);
        const double g = hn_tensor_get_f64(e->in[2], i) * (double)hyper[HN_HYPER_SCALE];
        const double by = sign_of(p->beta1 * m + (1 - p->beta1) * g);
        hn_tensor_set_f64(e->out[0], i, w - (double)hyper[HN_HYPER_RATE] * (p->weight_decay * w + by));
        hn_tensor_set_f64(e->out[1], i, p->beta2 * m + (1 - p->beta2) * g);
    }
}

/* --- ClipByNorm ----------------------------------------------------------------------------------------------------
 */

static void clipbynorm_bind(HnBind *b, void *params)
{
    ((HnOptimizer *)params)->limit = bind_number(b, "limit", INFINITY);
    if (!(((HnOptimizer *)params)->limit > 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "limit %g is not above 0", ((HnOptimizer *)params)->limit);
}

static void clipbynorm_infer(HnInfer *x)
{
    if (!is_hyper(x, 0))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 is not of %d elements", HN_HYPERS);
    hn_infer_out(x, 0, HN_F32, 1, (HnDim[]){ hn_dim(HN_HYPERS) });
    hn_infer_out(x, 1, HN_F32, 0, NULL);
}

static void clipbynorm_cost(const HnInfer *x, HnCost *c)
{
    for (int i = 1; i < x->n_in; i++)
        c->flops += 2 * hn_type_count(x->in[i]);
}

float hn_clip(const HnOptimizer *p, double squares, const float *hyper, float *to)
{
    const double norm = sqrt(squares) * fabs((double)hyper[HN_HYPER_SCALE]), by = p->limit / (norm + HN_CLIP_EPSILON);
    for (int k = 0; k < HN_HYPERS; k++)
        to[k] = hyper[k];
    if (!isfinite(norm))
        to[HN_HYPER_SCALE] = NAN;
    else if (by < 1)
        to[HN_HYPER_SCALE] = (float)((double)hyper[HN_HYPER_SCALE] * by);
    return (float)norm;
}

static void clipbynorm_ref(HnEval *e)
{
    double squares = 0;
    if (e->in[0]->n != HN_HYPERS) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 0 is not of %d elements", HN_HYPERS);
        return;
    }
    for (int k = 1; k < e->n_in; k++)
        for (int64_t i = 0; e->in[k] != NULL && i < e->in[k]->n; i++)
            squares += hn_tensor_get_f64(e->in[k], i) * hn_tensor_get_f64(e->in[k], i);
    float *to = hn_eval_out(e, 0, HN_F32, 1, (int64_t[]){ HN_HYPERS });
    if (to == NULL)
        return;
    const float norm = hn_clip(e->params, squares, e->in[0]->data, to);
    float *at = e->n_out > 1 ? hn_eval_out(e, 1, HN_F32, 0, NULL) : NULL;
    if (at != NULL)
        *at = norm;
}

/* --- MovingAverage -------------------------------------------------------------------------------------------------
 */

static void movingaverage_bind(HnBind *b, void *params)
{
    ((HnOptimizer *)params)->decay = bind_part(b, "decay", 0.999);
}

static void movingaverage_infer(HnInfer *x)
{
    hn_infer_one_shape(x, 2);
    hn_infer_same(x);
    if (hn_infer_has(x, 2) && !is_hyper(x, 2))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 2 is not of %d elements", HN_HYPERS);
}

static void movingaverage_ref(HnEval *e)
{
    const HnOptimizer *p = e->params;
    const HnTensor *hyper = hn_eval_in(e, 2);
    if (!hn_eval_one_shape(e, 2) || hn_eval_out_like(e, 0, e->in[0]) == NULL)
        return;
    if (hyper != NULL && hyper->n != HN_HYPERS) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 2 is not of %d elements", HN_HYPERS);
        return;
    }
    if (hyper != NULL && !isfinite(((const float *)hyper->data)[HN_HYPER_SCALE])) {
        keep(e);
        return;
    }
    for (int64_t i = 0; i < e->in[0]->n; i++)
        hn_tensor_set_f64(e->out[0], i,
                          p->decay * hn_tensor_get_f64(e->in[0], i) + (1 - p->decay) * hn_tensor_get_f64(e->in[1], i));
}

/* --- records ------------------------------------------------------------------------------------------------------ */

#define OPTIMIZER_RECORD                                                                \
    .domain = HN_DOMAIN_INTERNAL, .since = { 1 }, .T = HN_BIT(HN_F32) | HN_BIT(HN_F64), \
    .params_size = sizeof(HnOptimizer)

const HnOp hn_op_adamw = {
    .name = "AdamW",
    OPTIMIZER_RECORD,
    .flags = HN_OP_INPLACE_EACH,
    .in = "TTTTf",
    .out = "TTT",
    .bind = adamw_bind,
    .infer = optimizer_infer,
    .cost = adamw_cost,
    .ref = adamw_ref,
    .optimizer = { .name = "adamw",
                   .states = 2,
                   .lr = 1e-3f,
                   .even = TRUE,
                   .floats = HN_NAMES("beta1", "beta2", "epsilon", "weight_decay") },
};

const HnOp hn_op_sgd = {
    .name = "Sgd",
    OPTIMIZER_RECORD,
    .flags = HN_OP_INPLACE_EACH,
    .in = "TTTf",
    .out = "TT",
    .min_in = HN_MIN_IN_NONE,
    .bind = sgd_bind,
    .infer = optimizer_infer,
    .cost = step_cost,
    .ref = sgd_ref,
    .optimizer = { .name = "sgd",
                   .states = 1,
                   .lr = 1e-2f,
                   .floats = HN_NAMES("momentum", "weight_decay"),
                   .ints = HN_NAMES("nesterov") },
};

const HnOp hn_op_lion = {
    .name = "Lion",
    OPTIMIZER_RECORD,
    .flags = HN_OP_INPLACE_EACH,
    .in = "TTTf",
    .out = "TT",
    .bind = lion_bind,
    .infer = optimizer_infer,
    .cost = step_cost,
    .ref = lion_ref,
    .optimizer = { .name = "lion",
                   .states = 1,
                   .lr = 1e-4f,
                   .even = TRUE,
                   .floats = HN_NAMES("beta1", "beta2", "weight_decay") },
};

const HnOp hn_op_clipbynorm = {
    .name = "ClipByNorm",
    OPTIMIZER_RECORD,
    .in = "fT*",
    .out = "ff",
    .bind = clipbynorm_bind,
    .infer = clipbynorm_infer,
    .cost = clipbynorm_cost,
    .ref = clipbynorm_ref,
};

const HnOp hn_op_movingaverage = {
    .name = "MovingAverage",
    OPTIMIZER_RECORD,
    .flags = HN_OP_INPLACE,
    .in = "TTf",
    .out = "T",
    .min_in = 2,
    .bind = movingaverage_bind,
    .infer = movingaverage_infer,
    .cost = hn_cost_elementwise,
    .ref = movingaverage_ref,
};
