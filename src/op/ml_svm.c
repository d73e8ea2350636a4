/*
 * SVMRegressor and SVMClassifier. A kernel function of a row and each support vector, then sums weighted by
 * coefficients for each pair of classes, which votes for one of the two. Probabilities are made of the pairs' by the
 * second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling"
 * (2004), with libsvm's limits (at most 100 rounds, 0.005 / classes).
 *
 * Without support vectors there are weights of features for each class, and the largest product wins.
 */
#include "op/ml_svm.h"

#include <math.h>
#include <string.h>

#define CLASSES_MAX 65535 /* pairs of classes are numbered in 32 bits */

static void bind_kernel(HnBind *b, HnSvm *p)
{
    static const char *const words[] = { "LINEAR", "POLY", "RBF", "SIGMOID", NULL };
    int64_t n;
    const float *v = hn_bind_floats(b, "kernel_params", &n);
    p->kernel = (HnSvmKernel)hn_bind_word(b, "kernel_type", words, HN_SVM_LINEAR);
    if (n != 0 && n != 3)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'kernel_params' has %" PRId64 " elements, not 3", n);
    if (n == 3) {
        p->gamma = (double)v[0];
        p->coef0 = (double)v[1];
        p->degree = (double)v[2];
    }
    hn_bind_require(b, "coefficients");
    hn_bind_require(b, "rho");
}

/* Support vectors where p->vectors > 0. */
static void bind_vectors(HnBind *b, HnSvm *p)
{
    int64_t n;
    p->support = hn_bind_floats(b, "support_vectors", &n);
    if (b->error == NULL && p->vectors > 0 && (n <= 0 || n % p->vectors != 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " numbers cannot be those of %" PRId64 " support vectors", n,
                     p->vectors);
    if (b->error == NULL && p->vectors > 0)
        p->features = n / p->vectors;
}

static void check_count(HnBind *b, const char *name, int64_t n, int64_t least)
{
    if (n < least)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' has %" PRId64 " elements, not %" PRId64, name, n, least);
}

static void svmregressor_bind(HnBind *b, void *params)
{
    HnSvm *p = params;
    int64_t n_coefficients, n_rho;
    bind_kernel(b, p);
    p->coefficients = hn_bind_floats(b, "coefficients", &n_coefficients);
    p->rho = hn_bind_floats(b, "rho", &n_rho);
    p->vectors = hn_bind_int(b, "n_supports", 0);
    p->one_class = hn_bind_bool(b, "one_class", FALSE);
    p->transform = hn_ml_bind_transform(b);
    check_count(b, "rho", n_rho, 1);
    check_count(b, "coefficients", n_coefficients, MAX(p->vectors, 1));
    bind_vectors(b, p);
    if (p->vectors > 0)
        return;
    p->vectors = 0;
    p->features = n_coefficients;
    p->kernel = HN_SVM_LINEAR;
}

static void bind_probabilities(HnBind *b, HnSvm *p)
{
    int64_t n_a, n_b;
    p->prob_a = hn_bind_floats(b, "prob_a", &n_a);
    p->prob_b = hn_bind_floats(b, "prob_b", &n_b);
    if (n_a == 0 && n_b == 0) {
        p->prob_a = p->prob_b = NULL;
        return;
    }
    check_count(b, "prob_a", n_a, p->pairs);
    check_count(b, "prob_b", n_b, p->pairs);
}

static void count_vectors(HnBind *b, HnSvm *p)
{
    int64_t n;
    p->per_class = hn_bind_ints(b, "vectors_per_class", &n);
    for (int64_t i = 0; i < n && b->error == NULL; i++) {
        if (p->per_class[i] < 0 || p->per_class[i] > G_MAXINT32)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a class has %" PRId64 " support vectors", p->per_class[i]);
        else if (__builtin_add_overflow(p->vectors, p->per_class[i], &p->vectors))
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "there are too many support vectors");
    }
    if (b->error == NULL && p->vectors > 0 && n != p->classes)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'vectors_per_class' has %" PRId64 " elements, not %" PRId64, n,
                     p->classes);
}

static void bind_class_weights(HnBind *b, HnSvm *p)
{
    int64_t n, n_rho, want;
    p->coefficients = hn_bind_floats(b, "coefficients", &n);
    p->rho = hn_bind_floats(b, "rho", &n_rho);
    p->positive = TRUE;
    for (int64_t i = 0; i < n; i++)
        p->positive = p->positive && p->coefficients[i] >= 0;
    if (p->vectors == 0) {
        check_count(b, "coefficients", n, p->classes);
        check_count(b, "rho", n_rho, 1);
        p->features = n / p->classes;
        p->kernel = HN_SVM_LINEAR;
        return;
    }
    if (__builtin_mul_overflow(p->classes - 1, p->vectors, &want))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "there are too many support vectors");
    check_count(b, "coefficients", n, want);
    check_count(b, "rho", n_rho, p->pairs);
}

static void svmclassifier_bind(HnBind *b, void *params)
{
    HnSvm *p = params;
    bind_kernel(b, p);
    hn_ml_bind_labels(b, "classlabels_strings", "classlabels_ints", &p->labels);
    p->classes = p->labels.n;
    p->transform = hn_ml_bind_transform(b);
    if (p->classes < 1 || p->classes > CLASSES_MAX)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " labels of classes are none or too many", p->classes);
    if (b->error != NULL)
        return;
    p->pairs = p->classes * (p->classes - 1) / 2;
    count_vectors(b, p);
    if (b->error == NULL)
        bind_class_weights(b, p);
    if (b->error == NULL)
        bind_vectors(b, p);
    bind_probabilities(b, p);
    if (p->vectors > 0 && p->classes < 2)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "one class has no support vectors");
}

/* --- shapes ------------------------------------------------------------------------------------------------------ */

static void check_features(HnInfer *x)
{
    const HnSvm *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    const HnDim d = rank > 0 ? hn_infer_dim(x, 0, rank - 1) : hn_dim_unknown();
    if (d.known && d.n != p->features)
        hn_infer_fail(x, HN_ERROR_SHAPE, "rows of %" PRId64 " features do not fit to vectors of %" PRId64, d.n,
                      p->features);
}

/* Scores of a row: of pairs where they are left as they are, else of classes. */
static int64_t scores_of(const HnSvm *p)
{
    return p->vectors > 0 && p->prob_a == NULL ? (p->classes > 2 ? p->pairs : 2) : p->classes;
}

static void svmregressor_infer(HnInfer *x)
{
    check_features(x);
    hn_ml_infer_scores(x, 0, HN_F32, 1);
}

static void svmclassifier_infer(HnInfer *x)
{
    const HnSvm *p = x->params;
    check_features(x);
    hn_ml_infer_labels(x, 0, &p->labels);
    if (x->n_out > 1)
        hn_ml_infer_scores(x, 1, HN_F32, scores_of(p));
}

static void svm_cost(const HnInfer *x, HnCost *c)
{
    const HnSvm *p = x->params;
    c->flops = 2 * hn_type_count(x->in[0]) * (double)(p->vectors > 0 ? p->vectors : MAX(p->classes, 1));
}

static void svm_held(const void *params, HnHeld held[HN_HELD_MAX])
{
    held[0] = (HnHeld){ "support vectors", ((const HnSvm *)params)->vectors };
}

/* --- values ------------------------------------------------------------------------------------------------------ */

static double kernel_of(const HnSvm *p, const double *x, const float *v)
{
    double sum = 0;
    for (int64_t i = 0; i < p->features; i++) {
        const double d = x[i] - (double)v[i];
        sum += p->kernel == HN_SVM_RBF ? d * d : x[i] * (double)v[i];
    }
    switch (p->kernel) {
    case HN_SVM_RBF:
        return exp(-p->gamma * sum);
    case HN_SVM_POLY:
        return pow(p->gamma * sum + p->coef0, p->degree);
    case HN_SVM_SIGMOID:
        return tanh(p->gamma * sum + p->coef0);
    case HN_SVM_LINEAR:
    default:
        return sum;
    }
}

static double regression_of(const HnSvm *p, const double *x)
{
    double sum = (double)p->rho[0];
    if (p->vectors == 0)
        sum += kernel_of(p, x, p->coefficients);
    for (int64_t k = 0; k < p->vectors; k++)
        sum += (double)p->coefficients[k] * kernel_of(p, x, p->support + k * p->features);
    return p->one_class ? (sum > 0 ? 1 : -1) : sum;
}

static gboolean begin(HnEval *e, int64_t *rows)
{
    const HnSvm *p = e->params;
    int64_t features;
    if (!hn_ml_rows(e, e->in[0], rows, &features))
        return FALSE;
    if (features != p->features)
        hn_eval_fail(e, HN_ERROR_SHAPE, "rows of %" PRId64 " features do not fit to vectors of %" PRId64, features,
                     p->features);
    return e->error == NULL;
}

static void svmregressor_ref(HnEval *e)
{
    const HnSvm *p = e->params;
    int64_t rows;
    if (!begin(e, &rows))
        return;
    const int64_t dims[] = { rows, 1 };
    double *x = hn_eval_scratch(e, p->features, sizeof *x);
    float *y = x != NULL ? hn_ml_floats_out(e, 0, 2, dims) : NULL;
    for (int64_t i = 0; y != NULL && i < rows; i++) {
        hn_ml_read(x, e->in[0], i * p->features, p->features);
        y[i] = (float)regression_of(p, x);
    }
    hn_eval_scratch_free(e, x);
}

/* Memory for a row. */
typedef struct {
    double *x;        /* [features] */
    double *kernels;  /* [vectors] */
    double *scores;   /* [pairs], and of classes */
    double *coupling; /* [classes, classes] r, the same Q, [classes] Q p; NULL: no probabilities */
    int64_t *votes;   /* [classes] */
} Row;

static double sum_of(const HnSvm *p, const Row *r, int64_t row, int64_t first, int64_t n)
{
    double sum = 0;
    for (int64_t k = first; k < first + n; k++)
        sum += (double)p->coefficients[row * p->vectors + k] * r->kernels[k];
    return sum;
}

/* r->scores of pairs (i, j), i < j, in order; each votes for i where it is above 0. */
static void score_pairs(const HnSvm *p, Row *r)
{
    memset(r->votes, 0, (size_t)p->classes * sizeof *r->votes);
    for (int64_t k = 0; k < p->vectors; k++)
        r->kernels[k] = kernel_of(p, r->x, p->support + k * p->features);
    int64_t pair = 0;
    for (int64_t i = 0, at_i = 0; i < p->classes; at_i += p->per_class[i++])
        for (int64_t j = i + 1, at_j = at_i + p->per_class[i]; j < p->classes; at_j += p->per_class[j++]) {
            const double s = sum_of(p, r, j - 1, at_i, p->per_class[i]) + sum_of(p, r, i, at_j, p->per_class[j]);
            r->scores[pair] = s + (double)p->rho[pair];
            r->votes[r->scores[pair] > 0 ? i : j]++;
            pair++;
        }
}

/* One round over the classes; pqp is p' Q p. */
static void couple_once(int64_t n, const double *q, double *qp, double *p, double pqp)
{
    for (int64_t i = 0; i < n; i++) {
        const double d = (pqp - qp[i]) / q[i * n + i];
        p[i] += d;
        pqp = (pqp + d * (d * q[i * n + i] + 2 * qp[i])) / (1 + d) / (1 + d);
        for (int64_t j = 0; j < n; j++) {
            qp[j] = (qp[j] + d * q[i * n + j]) / (1 + d);
            p[j] /= 1 + d;
        }
    }
}

static double products(int64_t n, const double *q, double *qp, const double *p, double *off)
{
    double pqp = 0;
    for (int64_t i = 0; i < n; i++) {
        qp[i] = 0;
        for (int64_t j = 0; j < n; j++)
            qp[i] += q[i * n + j] * p[j];
        pqp += p[i] * qp[i];
    }
    *off = 0;
    for (int64_t i = 0; i < n; i++)
        *off = MAX(*off, fabs(qp[i] - pqp));
    return pqp;
}

/* p from r[i, j], the probability of i where it is i or j. */
static void couple(int64_t n, double *p, double *r)
{
    double *q = r + n * n, *qp = q + n * n, off;
    for (int64_t i = 0; i < n; i++) {
        p[i] = 1.0 / (double)n;
        q[i * n + i] = 0;
        for (int64_t j = 0; j < n; j++) {
            if (j == i)
                continue;
            q[i * n + i] += r[j * n + i] * r[j * n + i];
            q[i * n + j] = -r[j * n + i] * r[i * n + j];
        }
    }
    for (int round = 0; round < 100; round++) {
        const double pqp = products(n, q, qp, p, &off);
        if (off < 0.005 / (double)n)
            return;
        couple_once(n, q, qp, p, pqp);
    }
}

static void find_probabilities(const HnSvm *p, Row *r)
{
    const int64_t n = p->classes;
    int64_t pair = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++, pair++) {
            const double s = r->scores[pair] * (double)p->prob_a[pair] + (double)p->prob_b[pair];
            const double v = CLAMP(1 - hn_ml_logistic(s), 1e-7, 1 - 1e-7);
            r->coupling[i * n + j] = v;
            r->coupling[j * n + i] = 1 - v;
        }
    couple(n, r->scores, r->coupling);
}

static int64_t most_votes(const HnSvm *p, const Row *r)
{
    int64_t best = 0;
    for (int64_t k = 1; k < p->classes; k++)
        best = r->votes[k] > r->votes[best] ? k : best;
    return best;
}

static int64_t largest_score(const HnSvm *p, const Row *r)
{
    int64_t best = 0;
    for (int64_t k = 1; k < p->classes; k++)
        best = r->scores[k] > r->scores[best] ? k : best;
    return best;
}

static void linear_scores(const HnSvm *p, Row *r)
{
    for (int64_t k = 0; k < p->classes; k++)
        r->scores[k] = kernel_of(p, r->x, p->coefficients + k * p->features) + (double)p->rho[0];
}

/* Of two classes without support vectors, the second wins by a score above a limit, too. */
static int64_t winner(const HnSvm *p, const Row *r)
{
    if (p->vectors > 0)
        return most_votes(p, r);
    const int64_t best = largest_score(p, r);
    const double most = r->scores[best];
    const gboolean second = p->positive ? most >= 0.5 : most > 0;
    return p->classes == 2 && p->prob_a == NULL && second ? 1 : best;
}

/* Returns the class; scores are as they come out. */
static int64_t classify(const HnSvm *p, Row *r)
{
    if (p->vectors == 0)
        linear_scores(p, r);
    else
        score_pairs(p, r);
    const int64_t class = winner(p, r);
    if (p->vectors > 0 && p->prob_a != NULL)
        find_probabilities(p, r);
    if (scores_of(p) == 2 && p->vectors > 0 && p->prob_a == NULL) {
        r->scores[1] = 0;
        hn_ml_second(r->scores, p->transform == HN_ML_NONE ? HN_ML_SIGNED : HN_ML_COMPLEMENT, p->transform);
    } else if (scores_of(p) > 1)
        hn_ml_transform(r->scores, scores_of(p), p->transform);
    else
        hn_ml_second(r->scores, HN_ML_ONE, p->transform);
    return class;
}

static void svmclassifier_ref(HnEval *e)
{
    const HnSvm *p = e->params;
    int64_t rows;
    if (!begin(e, &rows))
        return;
    const int64_t n = scores_of(p), dims[] = { rows, n };
    Row r = { 0 };
    r.x = hn_eval_scratch(e, p->features, sizeof *r.x);
    r.kernels = hn_eval_scratch(e, p->vectors, sizeof *r.kernels);
    r.scores = hn_eval_scratch(e, p->pairs + p->classes + 2, sizeof *r.scores);
    r.votes = hn_eval_scratch(e, p->classes, sizeof *r.votes);
    if (p->prob_a != NULL && p->vectors > 0)
        r.coupling = hn_eval_scratch(e, 2 * p->classes * p->classes + p->classes, sizeof *r.coupling);
    float *y = e->error == NULL && e->n_out > 1 ? hn_ml_floats_out(e, 1, 2, dims) : NULL;
    if (e->error == NULL)
        hn_ml_labels_out(e, 0, &p->labels, rows);
    for (int64_t i = 0; i < rows && e->error == NULL; i++) {
        hn_ml_read(r.x, e->in[0], i * p->features, p->features);
        hn_ml_label(e->out[0], i, &p->labels, classify(p, &r));
        for (int64_t k = 0; y != NULL && k < n; k++)
            y[i * n + k] = (float)r.scores[k];
    }
    hn_eval_scratch_free(e, r.x);
    hn_eval_scratch_free(e, r.kernels);
    hn_eval_scratch_free(e, r.scores);
    hn_eval_scratch_free(e, r.votes);
    hn_eval_scratch_free(e, r.coupling);
}

const HnOp hn_op_svmregressor = {
    .name = "SVMRegressor",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "f",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(HnSvm),
    .bind = svmregressor_bind,
    .infer = svmregressor_infer,
    .cost = svm_cost,
    .held = svm_held,
    .ref = svmregressor_ref,
};

const HnOp hn_op_svmclassifier = {
    .name = "SVMClassifier",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "Uf",
    .T = HN_ML_NUMBERS,
    .U = HN_ML_LABEL_TYPES,
    .params_size = sizeof(HnSvm),
    .bind = svmclassifier_bind,
    .infer = svmclassifier_infer,
    .cost = svm_cost,
    .held = svm_held,
    .ref = svmclassifier_ref,
};
