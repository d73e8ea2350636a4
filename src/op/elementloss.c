/*
 * Losses over elements (op/loss.h), sums over two tensors of one shape:
 *
 * MseLoss(x, y): (x - y)^2. L1Loss(x, y): |x - y|.
 * BinaryCrossEntropyLoss(x, y): -y log p - (1 - y) log(1 - p), where p is the sigmoid of x, or, with `probabilities`, x
 *   itself, whose logarithms are -100 at least.
 */
#include <math.h>

#include "op/loss.h"
#include "op/one_shape.h"
#include "op/tape.h"

typedef double (*ElementFn)(const HnLoss *p, double x, double y);

static void element_ref(HnEval *e, ElementFn fn)
{
    double sum = 0;
    if (!hn_eval_one_shape(e, 2))
        return;
    for (int64_t i = 0; i < e->in[0]->n; i++)
        sum += fn(e->params, hn_tensor_get_f64(e->in[0], i), hn_tensor_get_f64(e->in[1], i));
    if (hn_eval_out(e, 0, e->in[0]->dtype, 0, NULL) != NULL)
        hn_tensor_set_f64(e->out[0], 0, sum);
}

static void elementloss_infer(HnInfer *x)
{
    hn_infer_one_shape(x, 2);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 0, NULL);
}

static void elementloss_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 3 * hn_type_count(x->in[0]);
}

/* --- MseLoss and L1Loss ------------------------------------------------------------------------------------------- */

static double square_of(const HnLoss *p, double x, double y)
{
    (void)p;
    return (x - y) * (x - y);
}

static double distance_of(const HnLoss *p, double x, double y)
{
    (void)p;
    return fabs(x - y);
}

static void mseloss_ref(HnEval *e)
{
    element_ref(e, square_of);
}

static void l1loss_ref(HnEval *e)
{
    element_ref(e, distance_of);
}

static void mseloss_grad(HnTape *t)
{
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_tape_calc(t, "2 * dy * (x0 - x1)", NULL));
    if (hn_tape_needs(t, 1))
        hn_tape_give(t, 1, hn_tape_calc(t, "2 * dy * (x1 - x0)", NULL));
}

static void l1loss_grad(HnTape *t)
{
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_tape_calc(t, "dy * Sign(x0 - x1)", NULL));
    if (hn_tape_needs(t, 1))
        hn_tape_give(t, 1, hn_tape_calc(t, "dy * Sign(x1 - x0)", NULL));
}

/* --- BinaryCrossEntropyLoss --------------------------------------------------------------------------------------- */

static void binarycrossentropy_bind(HnBind *b, void *params)
{
    ((HnLoss *)params)->probabilities = hn_bind_bool(b, "probabilities", FALSE);
}

static double binary_cross_entropy(const HnLoss *p, double x, double y)
{
    if (p->probabilities)
        return -y * fmax(log(x), HN_LOSS_LEAST_LOG) - (1 - y) * fmax(log1p(-x), HN_LOSS_LEAST_LOG);
    return fmax(x, 0) - x * y + log1p(exp(-fabs(x)));
}

/* sigmoid(x) - y, or (1 - y) / (1 - p) - y / p, of divisors that do not vanish */
static double binary_cross_entropy_grad(const HnLoss *p, double x, double y)
{
    if (p->probabilities)
        return (1 - y) / fmax(1 - x, HN_LOSS_LEAST_PROBABILITY) - y / fmax(x, HN_LOSS_LEAST_PROBABILITY);
    return 1 / (1 + exp(-x)) - y;
}

static void binarycrossentropyloss_ref(HnEval *e)
{
    element_ref(e, binary_cross_entropy);
}

static void binarycrossentropylossgrad_infer(HnInfer *x)
{
    hn_infer_one_shape(x, 2);
    hn_infer_same(x);
}

static void binarycrossentropylossgrad_ref(HnEval *e)
{
    if (!hn_eval_one_shape(e, 2))
        return;
    if (e->in[2]->n != 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 2 is not one number");
        return;
    }
    if (hn_eval_out_like(e, 0, e->in[0]) == NULL)
        return;
    const double dy = hn_tensor_get_f64(e->in[2], 0);
    for (int64_t i = 0; i < e->in[0]->n; i++)
        hn_tensor_set_f64(
            e->out[0], i,
            dy * binary_cross_entropy_grad(e->params, hn_tensor_get_f64(e->in[0], i), hn_tensor_get_f64(e->in[1], i)));
}

static void binarycrossentropyloss_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_dy(t, 0) };
    t->number[0] = HN_LOSS_LEAST_LOG;
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "BinaryCrossEntropyLossGrad", 3, in, 1), 0));
    if (hn_tape_needs(t, 1))
        hn_tape_give(t, 1,
                     hn_tape_calc(t,
                                  ((const HnLoss *)t->params)->probabilities
                                      ? "dy * (Max(Log(1 - x0), a) - Max(Log(x0), a))"
                                      : "dy * -x0",
                                  NULL));
}

/* --- records ------------------------------------------------------------------------------------------------------ */

#define ANY_RECORD .domain = HN_DOMAIN_INTERNAL, .since = { 1 }, .T = HN_T_FLOATS, .out = "T", .cost = elementloss_cost
#define LOSS_RECORD ANY_RECORD, .flags = HN_OP_HALF_VIA_F32
#define GRAD_RECORD ANY_RECORD, .flags = HN_OP_HALF_VIA_F32 | HN_OP_INPLACE

const HnOp hn_op_mseloss = {
    .name = "MseLoss",
    LOSS_RECORD,
    .in = "TT",
    .infer = elementloss_infer,
    .ref = mseloss_ref,
    .grad = mseloss_grad,
    .loss = { .name = "mse", .target = HN_TARGET_LIKE, .count = HN_COUNT_ELEMENTS },
};

const HnOp hn_op_l1loss = {
    .name = "L1Loss",
    LOSS_RECORD,
    .in = "TT",
    .infer = elementloss_infer,
    .ref = l1loss_ref,
    .grad = l1loss_grad,
    .loss = { .name = "l1", .target = HN_TARGET_LIKE, .count = HN_COUNT_ELEMENTS },
};

const HnOp hn_op_binarycrossentropyloss = {
    .name = "BinaryCrossEntropyLoss",
    LOSS_RECORD,
    .in = "TT",
    .params_size = sizeof(HnLoss),
    .bind = binarycrossentropy_bind,
    .infer = elementloss_infer,
    .ref = binarycrossentropyloss_ref,
    .grad = binarycrossentropyloss_grad,
    .loss = { .name = "bce", .target = HN_TARGET_LIKE, .count = HN_COUNT_ELEMENTS, .ints = HN_NAMES("probabilities") },
};

const HnOp hn_op_binarycrossentropylossgrad = {
    .name = "BinaryCrossEntropyLossGrad",
    GRAD_RECORD,
    .in = "TTT",
    .params_size = sizeof(HnLoss),
    .bind = binarycrossentropy_bind,
    .infer = binarycrossentropylossgrad_infer,
    .ref = binarycrossentropylossgrad_ref,
};
