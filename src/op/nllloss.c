/*
 * NegativeLogLikelihoodLoss: minus the logarithm of a probability that each label picks along axis 1, and
 * SoftmaxCrossEntropyLoss, which makes the logarithms first, and has them as output 1. Classes may have weights; labels
 * that are ignored count neither in the sum nor in what a mean is divided by, which is the sum of the weights.
 */
#include "op/loss.h"

#include "op/index.h"
#include "op/tape.h"
#include "op/unbind.h"

enum { X, LABELS, WEIGHT };
enum { LOSS, LOG_PROB };

typedef enum { NONE, SUM, MEAN } Reduction;

typedef struct {
    HnLoss rows;
    Reduction reduction;
    gboolean ignores, scores; /* some label; input 0 is no logarithm yet */
} HnNllLoss;

static void bind(HnBind *b, HnNllLoss *p)
{
    static const char *const reductions[] = { "none", "sum", "mean", NULL };
    p->reduction = (Reduction)hn_bind_word(b, "reduction", reductions, MEAN);
    p->ignores = hn_bind_has(b, "ignore_index");
    p->rows = (HnLoss){ .axis = 1, .ignore_index = hn_bind_int(b, "ignore_index", INT64_MIN) };
}

static void nllloss_bind(HnBind *b, void *params)
{
    bind(b, params);
}

static void sceloss_bind(HnBind *b, void *params)
{
    bind(b, params);
    ((HnNllLoss *)params)->scores = TRUE;
}

static void loss_infer(HnInfer *x)
{
    const HnNllLoss *p = x->params;
    const int rank = hn_infer_rank(x, X), of_labels = hn_infer_rank(x, LABELS);
    gboolean differ = rank >= 0 && of_labels >= 0 && of_labels != rank - 1;
    HnDim dims[HN_MAX_RANK];
    for (int i = 0; of_labels >= 0 && !differ && i < of_labels; i++) {
        const HnDim of_x = rank >= 0 ? hn_infer_dim(x, X, i == 0 ? 0 : i + 1) : hn_dim_unknown();
        dims[i] = hn_infer_dim(x, LABELS, i);
        differ = hn_dim_differ(dims[i], of_x);
        dims[i] = dims[i].known ? dims[i] : of_x;
    }
    if (rank == 0 || rank == 1)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has no axis of classes");
    else if (differ)
        hn_infer_fail(x, HN_ERROR_SHAPE, "labels do not have the shape of input 0 without axis 1");
    else if (hn_infer_has(x, WEIGHT) &&
             (hn_infer_rank(x, WEIGHT) > 1 || hn_infer_rank(x, WEIGHT) == 0 ||
              (rank > 1 && hn_dim_differ(hn_infer_dim(x, WEIGHT, 0), hn_infer_dim(x, X, 1)))))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 2 does not have one weight per class");
    if (p->reduction == NONE && of_labels < 0)
        hn_infer_out_unknown(x, LOSS, hn_infer_dtype(x, X));
    else
        hn_infer_out(x, LOSS, hn_infer_dtype(x, X), p->reduction == NONE ? of_labels : 0, dims);
    if (x->n_out > LOG_PROB)
        hn_infer_out_like(x, LOG_PROB, X);
}

static void loss_cost(const HnInfer *x, HnCost *c)
{
    const HnNllLoss *p = x->params;
    c->flops = p->scores ? 5 * hn_type_count(x->in[X]) : 2 * hn_type_count(x->in[LABELS]);
}

/* --- ref ---------------------------------------------------------------------------------------------------------- */

static gboolean fits(HnEval *e, HnLossRows *r)
{
    const HnNllLoss *p = e->params;
    const HnTensor *x = hn_eval_in(e, X), *labels = hn_eval_in(e, LABELS), *weight = hn_eval_in(e, WEIGHT);
    gboolean same = x->ndim > 1 && labels->ndim == x->ndim - 1 && hn_loss_rows(1, x, r);
    for (int i = 0; same && i < labels->ndim; i++)
        same = labels->dims[i] == x->dims[i == 0 ? 0 : i + 1];
    if (!same)
        hn_eval_fail(e, HN_ERROR_SHAPE, "labels do not have the shape of input 0 without axis 1");
    else if (weight != NULL && (weight->ndim != 1 || weight->n != r->n))
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 2 does not have one weight per class");
    return e->error == NULL && hn_loss_labels_fit(&p->rows, labels, r->n, &e->error);
}

/* Row i of input 0 as logarithms, which output 1 gets, too. */
static void load(const HnEval *e, const HnLossRows *r, int64_t i, double *row, HnTensor *log_prob)
{
    const int64_t at = hn_loss_row(r, i);
    for (int64_t k = 0; k < r->n; k++)
        row[k] = hn_tensor_get_f64(e->in[X], at + k * r->inner);
    if (((const HnNllLoss *)e->params)->scores)
        hn_loss_log_softmax(row, r->n);
    for (int64_t k = 0; log_prob != NULL && k < r->n; k++)
        hn_tensor_set_f64(log_prob, at + k * r->inner, row[k]);
}

static void loss_ref(HnEval *e)
{
    const HnNllLoss *p = e->params;
    const HnTensor *x = hn_eval_in(e, X), *labels = hn_eval_in(e, LABELS), *weight = hn_eval_in(e, WEIGHT);
    HnLossRows r;
    double sum = 0, count = 0;
    if (!fits(e, &r) || hn_eval_out(e, LOSS, x->dtype, p->reduction == NONE ? labels->ndim : 0, labels->dims) == NULL)
        return;
    HnTensor *log_prob =
        hn_eval_wants(e, LOG_PROB) && hn_eval_out_like(e, LOG_PROB, x) != NULL ? e->out[LOG_PROB] : NULL;
    double *row = e->error == NULL ? hn_eval_scratch(e, MAX(r.n, 1), sizeof *row) : NULL;
    for (int64_t i = 0; row != NULL && i < r.outer * r.inner; i++) {
        const int64_t label = hn_loss_label(&p->rows, labels, i);
        load(e, &r, i, row, log_prob);
        const double w = label < 0 ? 0 : weight != NULL ? hn_tensor_get_f64(weight, label) : 1;
        const double loss = label < 0 ? 0 : -row[label] * w;
        sum += loss;
        count += w;
        if (p->reduction == NONE)
            hn_tensor_set_f64(e->out[LOSS], i, loss);
    }
    hn_eval_scratch_free(e, row);
    if (row != NULL && p->reduction != NONE)
        hn_tensor_set_f64(e->out[LOSS], 0, p->reduction == SUM ? sum : sum / count);
}

/* --- of other operators ------------------------------------------------------------------------------------------- */

/* What each label counts: f of the labels' shape; NULL: 1. */
static HnValue *weights_of(HnUnbind *u, HnDtype dtype, HnValue *labels, HnValue *ignored)
{
    HnValue *w = hn_unbind_in(u, WEIGHT);
    if (w == NULL && ignored == NULL)
        return NULL;
    if (w != NULL)
        w = hn_unbind_op2(u, "Gather", hn_unbind_cast(u, w, dtype), labels);
    else
        w = hn_unbind_scalar(u, dtype, 1);
    return ignored != NULL ? hn_unbind_op3(u, "Where", ignored, hn_unbind_scalar(u, dtype, 0), w) : w;
}

static HnValue *total(HnUnbind *u, HnValue *v)
{
    return hn_unbind_reduce(u, "ReduceSum", v, NULL, 0, FALSE);
}

static void loss_unbind(HnUnbind *u)
{
    const HnNllLoss *p = u->params;
    HnDtype dtype;
    if (u->to >= 12)
        return;
    HnValue *x = hn_unbind_real(u, X, &dtype), *labels = hn_unbind_in(u, LABELS), *ignored = NULL;
    const HnDtype of_labels = hn_unbind_dtype(u, LABELS);
    if (x == NULL || of_labels == HN_UNDEFINED) {
        hn_unbind_refuse(u, "the type of the labels is not known");
        return;
    }
    if (p->scores) {
        x = hn_unbind_op1(u, "LogSoftmax", x);
        hn_node_set_int(x->producer, "axis", 1);
    }
    if (p->ignores) {
        ignored = hn_unbind_op2(u, "Equal", labels, hn_unbind_scalar(u, of_labels, (double)p->rows.ignore_index));
        labels = hn_unbind_op3(u, "Where", ignored, hn_unbind_scalar(u, of_labels, 0), labels);
    }
    HnValue *picked = hn_unbind_op2(u, "GatherElements", x, hn_unbind_op2(u, "Unsqueeze", labels, hn_unbind_int(u, 1)));
    hn_node_set_int(picked->producer, "axis", 1);
    HnValue *loss = hn_unbind_op1(u, "Neg", hn_unbind_op2(u, "Squeeze", picked, hn_unbind_int(u, 1)));
    HnValue *w = weights_of(u, dtype, labels, ignored);
    if (hn_unbind_in(u, WEIGHT) != NULL)
        loss = hn_unbind_op2(u, "Mul", loss, w);
    if (ignored != NULL)
        loss = hn_unbind_op3(u, "Where", ignored, hn_unbind_scalar(u, dtype, 0), loss);
    if (p->reduction == SUM)
        loss = total(u, loss);
    else if (p->reduction == MEAN)
        loss = w != NULL ? hn_unbind_op2(u, "Div", total(u, loss), total(u, w))
                         : hn_unbind_reduce(u, "ReduceMean", loss, NULL, 0, FALSE);
    if (hn_unbind_wants(u, LOG_PROB))
        hn_unbind_take_real(u, LOG_PROB, hn_unbind_op1(u, "Identity", x));
    hn_unbind_give_up(u, LOG_PROB);
    hn_unbind_take_real(u, LOSS, loss);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

const HnOp hn_op_negativeloglikelihoodloss = {
    .name = "NegativeLogLikelihoodLoss",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 12, 13, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TjT",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 2,
    .unbind = loss_unbind,
    .params_size = sizeof(HnNllLoss),
    .bind = nllloss_bind,
    .infer = loss_infer,
    .cost = loss_cost,
    .ref = loss_ref,
    .grad = hn_tape_apart,
};

const HnOp hn_op_softmaxcrossentropyloss = {
    .name = "SoftmaxCrossEntropyLoss",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 12, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .in = "TjT",
    .out = "TT",
    .T = HN_T_FLOATS,
    .min_in = 2,
    .unbind = loss_unbind,
    .params_size = sizeof(HnNllLoss),
    .bind = sceloss_bind,
    .infer = loss_infer,
    .cost = loss_cost,
    .ref = loss_ref,
    .grad = hn_tape_apart,
};
