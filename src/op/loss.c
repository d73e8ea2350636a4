/*
 * Losses over rows (op/loss.h), and their gradients:
 *
 * CrossEntropyLoss(logits, labels): the sum over all positions of -sum_k q_k log p_k, where p is the softmax along
 *   `axis` and q is 1 at the label; with `smoothing` s, q is (1 - s) there and s / classes more everywhere (Szegedy et
 *   al., 2016). Labels that are `ignore_index` count nothing.
 * KlLoss(student, teacher): the sum over rows of T^2 KL(softmax(teacher / T) || softmax(student / T)), T being
 *   `temperature` (Hinton et al., 2015). With `standardize` both are first brought to mean 0 and standard deviation 1
 *   along the axis (Sun et al., Logit Standardization in Knowledge Distillation, CVPR 2024). The teacher has no
 * gradient. CosineLoss(x, y): the sum over rows of 1 - cos(x, y).
 */
#include "op/loss.h"

#include <math.h>
#include <string.h>

#include "op/index.h"
#include "op/one_shape.h"
#include "op/tape.h"

/* --- what is shared ------------------------------------------------------------------------------------------------
 */

gboolean hn_loss_rows(int64_t axis, const HnTensor *x, HnLossRows *r)
{
    if (axis < -x->ndim || axis >= x->ndim)
        return FALSE;
    const int at = hn_axis(axis, x->ndim);
    *r = (HnLossRows){ hn_span(x->dims, 0, at), x->dims[at], hn_span(x->dims, at + 1, x->ndim) };
    return TRUE;
}

/* "2,0,5": the index of element i */
static char *place_text(const HnTensor *t, int64_t i)
{
    int64_t strides[HN_MAX_RANK];
    GString *s = g_string_new(NULL);
    hn_strides(t->ndim, t->dims, strides);
    for (int a = 0; a < t->ndim; a++)
        g_string_append_printf(s, "%s%" PRId64, a > 0 ? "," : "", i / strides[a] % t->dims[a]);
    return g_string_free(s, FALSE);
}

gboolean hn_loss_labels_fit(const HnLoss *p, const HnTensor *labels, int64_t n, GError **error)
{
    for (int64_t i = 0; i < labels->n; i++) {
        const int64_t label = hn_tensor_get_i64(labels, i);
        if (label == p->ignore_index || (label >= 0 && label < n))
            continue;
        g_autofree char *place = place_text(labels, i);
        g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "label %" PRId64 " at [%s] is outside [0, %" PRId64 ")", label,
                    place, n);
        return FALSE;
    }
    return TRUE;
}

static void load(double *row, const HnTensor *t, const HnLossRows *r, int64_t i)
{
    for (int64_t k = 0, at = hn_loss_row(r, i); k < r->n; k++)
        row[k] = hn_tensor_get_f64(t, at + k * r->inner);
}

static void store(HnTensor *t, const double *row, double by, const HnLossRows *r, int64_t i)
{
    for (int64_t k = 0, at = hn_loss_row(r, i); k < r->n; k++)
        hn_tensor_set_f64(t, at + k * r->inner, by * row[k]);
}

static void give_number(HnEval *e, double v)
{
    if (hn_eval_out(e, 0, e->in[0]->dtype, 0, NULL) != NULL)
        hn_tensor_set_f64(e->out[0], 0, v);
}

/* Input 2 of a gradient, one number; the gradient's memory is there then. */
static gboolean number_given(HnEval *e, double *dy)
{
    if (e->in[2]->n != 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 2 is not one number");
        return FALSE;
    }
    *dy = hn_tensor_get_f64(e->in[2], 0);
    return hn_eval_out_like(e, 0, e->in[0]) != NULL;
}

void hn_loss_log_softmax(double *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        max = fmax(max, x[k]);
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k] - max);
    for (int64_t k = 0; k < n; k++)
        x[k] -= max + log(sum);
}

static void loss_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 5 * hn_type_count(x->in[0]); /* as of Softmax */
}

static void number_infer(HnInfer *x)
{
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 0, NULL);
}

/* --- CrossEntropyLoss --------------------------------------------------------------------------------------------- */

static void crossentropy_bind(HnBind *b, void *params)
{
    HnLoss *p = params;
    p->axis = hn_bind_int(b, "axis", 1);
    p->ignore_index = hn_bind_int(b, "ignore_index", -100);
    p->smoothing = (double)hn_bind_float(b, "smoothing", 0);
    if (!(p->smoothing >= 0 && p->smoothing <= 1))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "smoothing %g is outside [0, 1]", p->smoothing);
}

static void crossentropy_infer(HnInfer *x)
{
    const HnLoss *p = x->params;
    const int rank = hn_infer_rank(x, 0), axis = rank >= 0 ? hn_infer_axis(x, p->axis, rank) : -1;
    const int of_labels = hn_infer_rank(x, 1);
    gboolean differ = axis >= 0 && of_labels >= 0 && of_labels != rank - 1;
    for (int i = 0; axis >= 0 && of_labels >= 0 && !differ && i < of_labels; i++)
        differ = hn_dim_differ(hn_infer_dim(x, 1, i), hn_infer_dim(x, 0, i < axis ? i : i + 1));
    if (differ)
        hn_infer_fail(x, HN_ERROR_SHAPE, "labels do not have the logits' shape without axis %d", axis);
}

static void crossentropyloss_infer(HnInfer *x)
{
    crossentropy_infer(x);
    number_infer(x);
}

static void crossentropylossgrad_infer(HnInfer *x)
{
    crossentropy_infer(x);
    hn_infer_same(x);
}

/* Rows of logits, and memory for one; NULL: failed. */
static double *labelled_rows(HnEval *e, HnLossRows *r)
{
    const HnLoss *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *labels = hn_eval_in(e, 1);
    gboolean fits = hn_loss_rows(p->axis, x, r) && labels->ndim == x->ndim - 1;
    const int axis = hn_axis(p->axis, x->ndim);
    for (int i = 0; fits && i < labels->ndim; i++)
        fits = labels->dims[i] == x->dims[i < axis ? i : i + 1];
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "labels do not have the logits' shape without axis %" PRId64, p->axis);
        return NULL;
    }
    return hn_loss_labels_fit(p, labels, r->n, &e->error) ? hn_eval_scratch(e, MAX(r->n, 1), sizeof(double)) : NULL;
}

/* -sum_k q_k log p_k */
static double cross_entropy(const HnLoss *p, const double *log_p, int64_t n, int64_t label)
{
    double all = 0;
    for (int64_t k = 0; p->smoothing > 0 && k < n; k++)
        all -= log_p[k];
    return (p->smoothing < 1 ? (p->smoothing - 1) * log_p[label] : 0) + p->smoothing / (double)n * all;
}

static void crossentropyloss_ref(HnEval *e)
{
    const HnLoss *p = e->params;
    HnLossRows r;
    double *row = labelled_rows(e, &r), sum = 0;
    for (int64_t i = 0; row != NULL && i < r.outer * r.inner; i++) {
        const int64_t label = hn_loss_label(p, e->in[1], i);
        if (label < 0)
            continue;
        load(row, e->in[0], &r, i);
        hn_loss_log_softmax(row, r.n);
        sum += cross_entropy(p, row, r.n, label);
    }
    hn_eval_scratch_free(e, row);
    give_number(e, sum);
}

/* p - q; 0 where the label is ignored */
static void crossentropylossgrad_ref(HnEval *e)
{
    const HnLoss *p = e->params;
    HnLossRows r;
    double *row = labelled_rows(e, &r), dy = 0;
    if (row == NULL || !number_given(e, &dy)) {
        hn_eval_scratch_free(e, row);
        return;
    }
    for (int64_t i = 0; i < r.outer * r.inner; i++) {
        const int64_t label = hn_loss_label(p, e->in[1], i);
        memset(row, 0, (gsize)r.n * sizeof *row);
        if (label >= 0) {
            load(row, e->in[0], &r, i);
            hn_loss_log_softmax(row, r.n);
            for (int64_t k = 0; k < r.n; k++)
                row[k] = exp(row[k]) - p->smoothing / (double)r.n;
            row[label] -= 1 - p->smoothing;
        }
        store(e->out[0], row, dy, &r, i);
    }
    hn_eval_scratch_free(e, row);
}

static void crossentropyloss_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_dy(t, 0) };
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "CrossEntropyLossGrad", 3, in, 1), 0));
}

/* --- losses of two rows ------------------------------------------------------------------------------------------- */

/* Memory for three rows of two tensors of one shape; NULL: failed. */
static double *pairs_of_rows(HnEval *e, HnLossRows *r)
{
    const HnLoss *p = e->params;
    if (!hn_eval_one_shape(e, 2) || hn_eval_axis(e, p->axis, e->in[0]->ndim) < 0)
        return NULL;
    hn_loss_rows(p->axis, e->in[0], r);
    return hn_eval_scratch(e, MAX(r->n, 1), 3 * sizeof(double));
}

/* The loss of rows a and b, which may be written over, as c. */
typedef double (*RowFn)(const HnLoss *p, double *a, double *b, double *c, int64_t n);

static void pair_ref(HnEval *e, RowFn loss)
{
    HnLossRows r;
    double *a = pairs_of_rows(e, &r), sum = 0;
    for (int64_t i = 0; a != NULL && i < r.outer * r.inner; i++) {
        load(a, e->in[0], &r, i);
        load(a + r.n, e->in[1], &r, i);
        sum += loss(e->params, a, a + r.n, a + 2 * r.n, r.n);
    }
    hn_eval_scratch_free(e, a);
    give_number(e, sum);
}

/* grad leaves the gradient of the first row in its place. */
static void pair_grad_ref(HnEval *e, RowFn grad)
{
    HnLossRows r;
    double *a = pairs_of_rows(e, &r), dy = 0;
    if (a != NULL && number_given(e, &dy))
        for (int64_t i = 0; i < r.outer * r.inner; i++) {
            load(a, e->in[0], &r, i);
            load(a + r.n, e->in[1], &r, i);
            grad(e->params, a, a + r.n, a + 2 * r.n, r.n);
            store(e->out[0], a, dy, &r, i);
        }
    hn_eval_scratch_free(e, a);
}

static void pair_infer(HnInfer *x)
{
    const int rank = hn_infer_rank(x, 0);
    hn_infer_one_shape(x, 2);
    if (rank >= 0)
        hn_infer_axis(x, ((const HnLoss *)x->params)->axis, rank);
}

static void pairloss_infer(HnInfer *x)
{
    pair_infer(x);
    number_infer(x);
}

static void pairlossgrad_infer(HnInfer *x)
{
    pair_infer(x);
    hn_infer_same(x);
}

/* --- KlLoss ------------------------------------------------------------------------------------------------------- */

static void kl_bind(HnBind *b, void *params)
{
    HnLoss *p = params;
    p->axis = hn_bind_int(b, "axis", -1);
    p->temperature = (double)hn_bind_float(b, "temperature", 1);
    p->standardize = hn_bind_bool(b, "standardize", FALSE);
    if (!(p->temperature > 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "temperature %g is not above 0", p->temperature);
}

/* x becomes (x - mean) / s, where s is the standard deviation and a bit. Returns s. */
static double standardize(double *x, int64_t n)
{
    double mean = 0, squares = 0;
    for (int64_t k = 0; k < n; k++)
        mean += x[k] / (double)n;
    for (int64_t k = 0; k < n; k++)
        squares += (x[k] - mean) * (x[k] - mean) / (double)n;
    const double s = sqrt(squares) + HN_LOSS_STD_EPSILON;
    for (int64_t k = 0; k < n; k++)
        x[k] = (x[k] - mean) / s;
    return s;
}

/* Logits become logarithms of probabilities. */
static void soften(const HnLoss *p, double *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] /= p->temperature;
    hn_loss_log_softmax(x, n);
}

static double kl_row(const HnLoss *p, double *a, double *b, double *c, int64_t n)
{
    double sum = 0;
    (void)c;
    if (p->standardize) {
        standardize(a, n);
        standardize(b, n);
    }
    soften(p, a, n);
    soften(p, b, n);
    for (int64_t k = 0; k < n; k++)
        sum += exp(b[k]) > 0 ? exp(b[k]) * (b[k] - a[k]) : 0;
    return p->temperature * p->temperature * sum;
}

/* Through z = (x - mean) / s, s = std + epsilon: dz becomes dx. */
static void standardize_grad(double *dz, const double *z, double s, int64_t n)
{
    double mean = 0, along = 0;
    for (int64_t k = 0; k < n; k++) {
        mean += dz[k] / (double)n;
        along += dz[k] * z[k] / (double)n;
    }
    const double std = s - HN_LOSS_STD_EPSILON, stretch = std > 0 ? s / std : 0;
    for (int64_t k = 0; k < n; k++)
        dz[k] = (dz[k] - mean - z[k] * along * stretch) / s;
}

static double kl_row_grad(const HnLoss *p, double *a, double *b, double *c, int64_t n)
{
    double s = 1;
    if (p->standardize) {
        s = standardize(a, n);
        standardize(b, n);
    }
    memcpy(c, a, (gsize)n * sizeof *c);
    soften(p, a, n);
    soften(p, b, n);
    for (int64_t k = 0; k < n; k++)
        a[k] = p->temperature * (exp(a[k]) - exp(b[k]));
    if (p->standardize)
        standardize_grad(a, c, s, n);
    return 0;
}

static void klloss_ref(HnEval *e)
{
    pair_ref(e, kl_row);
}

static void kllossgrad_ref(HnEval *e)
{
    pair_grad_ref(e, kl_row_grad);
}

static void klloss_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_dy(t, 0) };
    hn_tape_ends(t, 1);
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "KlLossGrad", 3, in, 1), 0));
}

/* --- CosineLoss --------------------------------------------------------------------------------------------------- */

static void cosine_bind(HnBind *b, void *params)
{
    ((HnLoss *)params)->axis = hn_bind_int(b, "axis", -1);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

static double cosine_row(const HnLoss *p, double *a, double *b, double *c, int64_t n)
{
    (void)p;
    (void)c;
    return 1 -
           dot(a, b, n) / fmax(sqrt(dot(a, a, n)), HN_LOSS_LEAST_NORM) / fmax(sqrt(dot(b, b, n)), HN_LOSS_LEAST_NORM);
}

/* (a cos / |a| - b / |b|) / |a| */
static double cosine_row_grad(const HnLoss *p, double *a, double *b, double *c, int64_t n)
{
    const double at = fmax(sqrt(dot(a, a, n)), HN_LOSS_LEAST_NORM), bt = fmax(sqrt(dot(b, b, n)), HN_LOSS_LEAST_NORM);
    const double along = at > HN_LOSS_LEAST_NORM ? dot(a, b, n) / (at * bt) / (at * at) : 0;
    (void)p;
    (void)c;
    for (int64_t k = 0; k < n; k++)
        a[k] = a[k] * along - b[k] / bt / at;
    return 0;
}

static void cosineloss_ref(HnEval *e)
{
    pair_ref(e, cosine_row);
}

static void cosinelossgrad_ref(HnEval *e)
{
    pair_grad_ref(e, cosine_row_grad);
}

static void cosineloss_grad(HnTape *t)
{
    for (int i = 0; i < 2; i++) {
        HnValue *in[] = { hn_tape_in(t, i), hn_tape_in(t, 1 - i), hn_tape_dy(t, 0) };
        if (hn_tape_needs(t, i))
            hn_tape_give(t, i, hn_node_out(hn_tape_backward(t, "CosineLossGrad", 3, in, 1), 0));
    }
}

/* --- records ------------------------------------------------------------------------------------------------------ */

#define ANY_RECORD \
    .domain = HN_DOMAIN_INTERNAL, .since = { 1 }, .T = HN_T_FLOATS, .params_size = sizeof(HnLoss), .cost = loss_cost
#define LOSS_RECORD ANY_RECORD, .flags = HN_OP_HALF_VIA_F32
#define GRAD_RECORD ANY_RECORD, .flags = HN_OP_HALF_VIA_F32 | HN_OP_INPLACE

const HnOp hn_op_crossentropyloss = {
    .name = "CrossEntropyLoss",
    LOSS_RECORD,
    .in = "Tj",
    .out = "T",
    .bind = crossentropy_bind,
    .infer = crossentropyloss_infer,
    .ref = crossentropyloss_ref,
    .grad = crossentropyloss_grad,
    .loss = { .name = "ce",
              .target = HN_TARGET_LABELS,
              .count = HN_COUNT_LABELS,
              .logits = TRUE,
              .axis = 1,
              .floats = HN_NAMES("smoothing"),
              .ints = HN_NAMES("axis", "ignore_index") },
};

const HnOp hn_op_crossentropylossgrad = {
    .name = "CrossEntropyLossGrad",
    GRAD_RECORD,
    .in = "TjT",
    .out = "T",
    .bind = crossentropy_bind,
    .infer = crossentropylossgrad_infer,
    .ref = crossentropylossgrad_ref,
};

const HnOp hn_op_klloss = {
    .name = "KlLoss",
    LOSS_RECORD,
    .in = "TT",
    .out = "T",
    .bind = kl_bind,
    .infer = pairloss_infer,
    .ref = klloss_ref,
    .grad = klloss_grad,
    .loss = { .name = "kl",
              .target = HN_TARGET_LIKE,
              .count = HN_COUNT_ROWS,
              .logits = TRUE,
              .axis = -1,
              .floats = HN_NAMES("temperature"),
              .ints = HN_NAMES("axis", "standardize") },
};

const HnOp hn_op_kllossgrad = {
    .name = "KlLossGrad",
    GRAD_RECORD,
    .in = "TTT",
    .out = "T",
    .bind = kl_bind,
    .infer = pairlossgrad_infer,
    .ref = kllossgrad_ref,
};

const HnOp hn_op_cosineloss = {
    .name = "CosineLoss",
    LOSS_RECORD,
    .in = "TT",
    .out = "T",
    .bind = cosine_bind,
    .infer = pairloss_infer,
    .ref = cosineloss_ref,
    .grad = cosineloss_grad,
    .loss = { .name = "cosine",
              .target = HN_TARGET_LIKE,
              .count = HN_COUNT_ROWS,
              .axis = -1,
              .ints = HN_NAMES("axis") },
};

const HnOp hn_op_cosinelossgrad = {
    .name = "CosineLossGrad",
    GRAD_RECORD,
    .in = "TTT",
    .out = "T",
    .bind = cosine_bind,
    .infer = pairlossgrad_infer,
    .ref = cosinelossgrad_ref,
};
