/*
 * BatchNormalization: per channel, y = (x - mean) / sqrt(var + epsilon) * scale + bias, with mean and variance from
 * inputs, or from the batch in training mode, which also gives running averages.
 *
 * Training mode: before opset 7 unless `is_test` is set; in 7 to 13 where more outputs than Y are named (their order is
 * Y, mean, var, saved_mean, saved_var); since 14 where `training_mode` is set (Y, running_mean, running_var). Before
 * opset 9 `spatial` = 0 took each element of a sample as a channel of its own. All sums are in double.
 */
#include "op/batchnorm.h"

#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/ops.h"
#include "op/tape.h"
#include "op/training.h"
#include "op/types.h"
#include "op/unbind.h"

static void batchnorm_bind(HnBind *b, void *params)
{
    HnBatchNorm *p = params;
    guint extra = 0;
    for (guint k = 1; k < b->node->out->len; k++)
        extra += hn_node_out(b->node, (int)k) != NULL;
    p->epsilon = hn_bind_float(b, "epsilon", 1e-5f);
    p->momentum = hn_bind_float(b, "momentum", 0.9f);
    p->per_element = b->version < 9 && !hn_bind_bool(b, "spatial", TRUE);
    if (b->version < 7)
        p->training = !hn_bind_bool(b, "is_test", FALSE);
    else if (b->version < 14)
        p->training = extra > 0;
    else
        p->training = hn_bind_bool(b, "training_mode", FALSE);
    if (extra > 0 && !p->training)
        hn_bind_fail(b, HN_ERROR_GRAPH, "has %u outputs, but only training mode gives more than 1", extra + 1);
    else if (b->version >= 14 && b->node->out->len > 3)
        hn_bind_fail(b, HN_ERROR_GRAPH, "has %u outputs, at most 3 are allowed", b->node->out->len);
}

/*
 * BatchNormTrain (domain "hone"): training mode, with the batch's mean and 1 / deviation as outputs 3 and 4, which the
 * gradient reads. What BatchNormalization becomes as soon as somebody asks for its gradient.
 */
static void batchnormtrain_bind(HnBind *b, void *params)
{
    HnBatchNorm *p = params;
    p->epsilon = hn_bind_float(b, "epsilon", 1e-5f);
    p->momentum = hn_bind_float(b, "momentum", 0.9f);
    p->training = p->inverse = TRUE;
}

static void batchnorm_infer(HnInfer *x)
{
    const HnBatchNorm *p = x->params;
    int rank = hn_infer_rank(x, 0);
    hn_infer_same(x);
    if (rank == 0) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 is a scalar");
        return;
    }
    for (int i = 1; i < 5 && !p->per_element; i++) {
        int r = hn_infer_rank(x, i);
        if (r >= 0 && r != 1) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, not 1", i, r);
            return;
        }
        if (r == 1 && rank > 0 && hn_dim_differ(hn_infer_dim(x, i, 0), rank > 1 ? hn_infer_dim(x, 0, 1) : hn_dim(1))) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "the size of input %d is not the number of channels", i);
            return;
        }
    }
    for (int k = 1; k < x->n_out; k++)
        hn_infer_out_like(x, k, k % 2 == 1 ? 3 : 4);
}

static void batchnorm_cost(const HnInfer *x, HnCost *c)
{
    const HnBatchNorm *p = x->params;
    c->flops = (p->training ? 6 : 2) * hn_type_count(x->in[0]);
}

/* x as [n, channels, inner] */
typedef struct {
    int64_t n, channels, inner;
} Form;

/* mean and variance of each channel */
#define DEFINE_MOMENTS(T)                                                               \
    static void moments_##T(const T *x, Form f, double *mean, double *var)              \
    {                                                                                   \
        for (int64_t c = 0; c < f.channels; c++) {                                      \
            double sum = 0, squares = 0, count = (double)(f.n * f.inner);               \
            for (int64_t n = 0; n < f.n; n++)                                           \
                for (int64_t i = 0; i < f.inner; i++)                                   \
                    sum += (double)x[(n * f.channels + c) * f.inner + i];               \
            mean[c] = sum / count;                                                      \
            for (int64_t n = 0; n < f.n; n++)                                           \
                for (int64_t i = 0; i < f.inner; i++) {                                 \
                    double d = (double)x[(n * f.channels + c) * f.inner + i] - mean[c]; \
                    squares += d * d;                                                   \
                }                                                                       \
            var[c] = squares / count;                                                   \
        }                                                                               \
    }
DEFINE_MOMENTS(float)
DEFINE_MOMENTS(double)

/* y = x * factor + shift per channel, in the order (x - mean) * (scale / deviation) + bias */
#define DEFINE_APPLY(T)                                                                                           \
    static void apply_##T(const T *x, T *y, Form f, const double *mean, const double *factor, const double *bias) \
    {                                                                                                             \
        for (int64_t n = 0; n < f.n; n++)                                                                         \
            for (int64_t c = 0; c < f.channels; c++) {                                                            \
                const T *xr = x + (n * f.channels + c) * f.inner;                                                 \
                T *yr = y + (n * f.channels + c) * f.inner;                                                       \
                for (int64_t i = 0; i < f.inner; i++)                                                             \
                    yr[i] = (T)(((double)xr[i] - mean[c]) * factor[c] + bias[c]);                                 \
            }                                                                                                     \
    }
DEFINE_APPLY(float)
DEFINE_APPLY(double)

/* Output k: keep * input i + (1 - keep) * v, with the shape and type of that input. */
static void emit(HnEval *e, int k, int i, double keep, const double *v)
{
    const HnTensor *in = hn_eval_in(e, i);
    void *y = hn_eval_wants(e, k) ? hn_eval_out_like(e, k, in) : NULL;
    if (y == NULL)
        return;
#define RUN(T)                          \
    for (int64_t c = 0; c < in->n; c++) \
        ((T *)y)[c] = (T)((keep == 0 ? 0 : (double)((const T *)in->data)[c] * keep) + v[c] * (1 - keep));
    HN_FOR_FLOAT(in->dtype, RUN)
#undef RUN
}

static void batchnorm_ref(HnEval *e)
{
    const HnBatchNorm *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    if (x->ndim == 0) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 0 is a scalar");
        return;
    }
    Form f = { x->dims[0], x->ndim > 1 ? x->dims[1] : 1, hn_span(x->dims, 2, x->ndim) };
    if (p->per_element) {
        f.channels *= f.inner;
        f.inner = 1;
    }
    for (int i = 1; i < 5; i++)
        if (hn_eval_in(e, i)->n != f.channels) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d has %" PRId64 " elements for %" PRId64 " channels", i,
                         hn_eval_in(e, i)->n, f.channels);
            return;
        }
    void *y = hn_eval_out_like(e, 0, x);
    double *v = y != NULL ? hn_eval_scratch(e, f.channels, 5 * sizeof *v) : NULL; /* scale, bias, mean, var, factor */
    if (v == NULL)
        return;
    double *in[4], *factor = v + 4 * f.channels;
    for (int i = 0; i < 4; i++) {
        in[i] = v + i * f.channels;
        for (int64_t c = 0; c < f.channels; c++)
            in[i][c] = hn_tensor_get_f64(hn_eval_in(e, i + 1), c);
    }
    if (p->training) {
#define RUN(T) moments_##T(x->data, f, in[2], in[3]);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
        for (int k = 1; k < (p->inverse ? 4 : 5); k++)
            emit(e, k, k % 2 == 1 ? 3 : 4, k < 3 ? (double)p->momentum : 0, in[k % 2 == 1 ? 2 : 3]);
    }
    for (int64_t c = 0; c < f.channels; c++) {
        const double inv = 1 / sqrt(in[3][c] + (double)p->epsilon);
        factor[c] = in[0][c] * inv;
        in[3][c] = inv;
    }
    if (p->inverse)
        emit(e, 4, 4, 0, in[3]);
#define RUN(T) apply_##T(x->data, y, f, in[2], factor, in[1]);
    HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    hn_eval_scratch_free(e, v);
}

/* Before opset 14 more outputs than one meant training; before 14 all types were one, before 15 two. */
static void batchnorm_unbind(HnUnbind *u)
{
    const HnBatchNorm *p = u->params;
    for (int i = 1; i < 5 && u->to < 15; i++)
        if (hn_unbind_dtype(u, i) != hn_unbind_dtype(u, i < 3 ? 0 : u->to < 14 ? 0 : 3)) {
            hn_unbind_refuse(u, "inputs of several types came with opset 15");
            return;
        }
    if (hn_unbind_above(u, 14) && p->training) {
        if (hn_unbind_wants(u, 3) || hn_unbind_wants(u, 4)) {
            hn_unbind_refuse(u, "outputs 3 and 4 ended with opset 13");
            return;
        }
        hn_unbind_give_up(u, 3);
        hn_node_set_int(u->node, "training_mode", 1);
    } else if (hn_unbind_below(u, 14)) {
        for (int k = 1; k < 5 && p->training; k++)
            if (hn_node_out(u->node, k) == NULL)
                hn_node_set_out(u->node, k, hn_graph_new_value(u->node->graph, "saved"));
        hn_node_remove_attr(u->node, "training_mode");
    }
}

/* BatchNormGrad, with the batch's mean and 1 / deviation, or given mean and variance. */
static HnNode *norm_grad(HnTape *t, HnValue *mean, HnValue *spread, gboolean frozen)
{
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, 0), hn_tape_in(t, 1), mean, spread, hn_tape_in(t, 2) };
    HnNode *n = hn_build_node(t->build, "BatchNormGrad", HN_DOMAIN_INTERNAL, 6, in, 3);
    if (frozen) {
        hn_node_set_int(n, "frozen", 1);
        hn_node_set_float(n, "epsilon", ((const HnBatchNorm *)t->params)->epsilon);
    }
    for (int i = 0; i < 3; i++)
        hn_tape_give(t, i, hn_node_out(n, i));
    return n;
}

/* With the batch's moments, which move with the data, and which the node is asked for. */
static void training_grad(HnTape *t)
{
    HnNode *n = t->node;
    HnGraph *g = t->build->graph;
    for (int k = 3; k < 5; k++)
        if (hn_node_out(n, k) == NULL)
            hn_node_set_out(n, k, hn_graph_new_value(g, k == 3 ? "batch_mean" : "batch_inverse"));
    if (n->op != &hn_op_batchnormtrain) {
        hn_node_remove_attr(n, "training_mode");
        hn_node_become(n, "BatchNormTrain", HN_DOMAIN_INTERNAL);
    }
    (void)norm_grad(t, hn_node_out(n, 3), hn_node_out(n, 4), FALSE);
    hn_tape_ends(t, 3); /* of the running moments, which no result but their own next ones depends on */
    hn_tape_ends(t, 4);
}

/* With given moments: y = (x - mean) inv scale + bias. */
static void frozen_grad(HnTape *t)
{
    HnValue *var = hn_tape_in(t, 4);
    HnNode *n = norm_grad(t, hn_tape_in(t, 3), var, TRUE);
    if (!hn_tape_needs(t, 3) && !hn_tape_needs(t, 4))
        return;
    t->number[0] = (double)((const HnBatchNorm *)t->params)->epsilon;
    HnValue *v[3] = { hn_node_out(n, 2), hn_tape_in(t, 1), hn_tape_calc(t, "1 / Sqrt(p + a)", &var) };
    hn_tape_give(t, 3, hn_tape_calc(t, "-p * q * r", v));
    v[0] = hn_node_out(n, 1);
    hn_tape_give(t, 4, hn_tape_calc(t, "-0.5 * p * q * r * r", v));
}

static void batchnormalization_grad(HnTape *t)
{
    const HnBatchNorm *p = t->params;
    const int rank = hn_tape_rank(t, 0);
    if (rank < 2)
        hn_tape_refuse(t, "the number of dimensions is not known, or below 2");
    else if (hn_tape_dy(t, 1) != NULL || hn_tape_dy(t, 2) != NULL)
        hn_tape_refuse(t, "the next running moments are read");
    else if (p->training)
        training_grad(t);
    else
        frozen_grad(t);
}

/* Moments are those of the batch, and the running ones follow them. */
static void batchnormalization_train(HnTraining *t)
{
    HnNode *n = t->node;
    const HnBatchNorm *p = t->params;
    if (p->per_element || p->training || t->keep_statistics)
        return;
    hn_node_set_int(n, "training_mode", 1);
    for (int k = 1; k <= 2; k++) {
        hn_node_set_out(n, k, hn_graph_new_value(n->graph, k == 1 ? "running_mean" : "running_var"));
        hn_training_replaces(t, hn_node_in(n, 2 + k), hn_node_out(n, k));
    }
}

void hn_batchnorm_batch(HnBatch *b)
{
    if (((const HnBatchNorm *)b->params)->training)
        hn_batch_fail(b, "its mean and variance are those of the batch");
    else
        hn_batch_first(b);
}

const HnOp hn_op_batchnormalization = {
    .name = "BatchNormalization",
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_ALONG,
    .since = { 1, 6, 7, 9, 14, 15 },
    .forms =
        HN_FORMS({ "spatial", HN_ATTR_INT, .until = 9, .number = 1 }, { "training_mode", HN_ATTR_INT, .since = 14 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(14), { 'U', 14, 0, HN_BIT(HN_BF16) }, { 'V', 14, 0, HN_BIT(HN_BF16) }),
    .in = "TUUVV",
    .out = "TVVVV",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .V = HN_T_FLOATS,
    .unbind = batchnorm_unbind,
    .params_size = sizeof(HnBatchNorm),
    .bind = batchnorm_bind,
    .infer = batchnorm_infer,
    .cost = batchnorm_cost,
    .ref = batchnorm_ref,
    .grad = batchnormalization_grad,
    .batch = hn_batchnorm_batch,
    .range = { .addends = 1 << 2 | 1 << 3 },
    .channels = { HN_CH_PLANES },
    .trained = 1 << 1 | 1 << 2,
    .train = batchnormalization_train,
};

const HnOp hn_op_batchnormtrain = {
    .name = "BatchNormTrain",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TUUVV",
    .out = "TVVVV",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .V = HN_T_FLOATS,
    .params_size = sizeof(HnBatchNorm),
    .bind = batchnormtrain_bind,
    .infer = batchnorm_infer,
    .cost = batchnorm_cost,
    .ref = batchnorm_ref,
    .grad = batchnormalization_grad,
};
