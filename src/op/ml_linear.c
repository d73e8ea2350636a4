/*
 * LinearRegressor and LinearClassifier: x W' + b, then a transform of scores.
 *
 * A classifier's targets are as many as its intercepts. One target and two labels are two classes with one score, above
 * 0 for the second; several targets: the first of the largest scores, which the transform leaves the largest.
 */
#include "op/ml_linear.h"

static void bind_weights(HnBind *b, HnMlLinear *p, int64_t intercepts)
{
    int64_t n;
    hn_bind_require(b, "coefficients");
    p->coefficients = hn_bind_floats(b, "coefficients", &n);
    p->transform = hn_ml_bind_transform(b);
    if (b->error == NULL && (p->targets <= 0 || n <= 0 || n % p->targets != 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " coefficients cannot be those of %" PRId64 " targets", n,
                     p->targets);
    if (intercepts > 0 && intercepts != p->targets)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " intercepts do not fit to %" PRId64 " targets", intercepts,
                     p->targets);
    if (b->error == NULL)
        p->features = n / p->targets;
}

static void linearregressor_bind(HnBind *b, void *params)
{
    HnMlLinear *p = params;
    int64_t n;
    p->targets = hn_bind_int(b, "targets", 1);
    p->intercepts = hn_bind_floats(b, "intercepts", &n);
    p->intercepts = n > 0 ? p->intercepts : NULL;
    bind_weights(b, p, n);
}

static void linearclassifier_bind(HnBind *b, void *params)
{
    HnMlLinear *p = params;
    int64_t n;
    hn_ml_bind_labels(b, "classlabels_strings", "classlabels_ints", &p->labels);
    p->intercepts = hn_bind_floats(b, "intercepts", &n);
    p->intercepts = n > 0 ? p->intercepts : NULL;
    p->targets = n > 0 ? n : MAX(p->labels.n, 1);
    bind_weights(b, p, n);
    p->pair = p->targets == 1 && p->labels.n == 2;
    if (p->targets > 1 && p->labels.n < p->targets)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " labels are too few for %" PRId64 " targets", p->labels.n,
                     p->targets);
    if (p->labels.strings != NULL && p->labels.n < 2)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "one label is none");
}

static int64_t scores_of(const HnMlLinear *p)
{
    return p->pair ? 2 : p->targets;
}

static void check_features(HnInfer *x)
{
    const HnMlLinear *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    const HnDim d = rank > 0 ? hn_infer_dim(x, 0, rank - 1) : hn_dim_unknown();
    if (d.known && d.n != p->features)
        hn_infer_fail(x, HN_ERROR_SHAPE, "rows of %" PRId64 " features do not fit to %" PRId64 " coefficients", d.n,
                      p->features);
}

static void linearregressor_infer(HnInfer *x)
{
    check_features(x);
    hn_ml_infer_scores(x, 0, HN_F32, ((const HnMlLinear *)x->params)->targets);
}

static void linearclassifier_infer(HnInfer *x)
{
    const HnMlLinear *p = x->params;
    check_features(x);
    hn_ml_infer_labels(x, 0, &p->labels);
    if (x->n_out > 1)
        hn_ml_infer_scores(x, 1, HN_F32, scores_of(p));
}

static void linear_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 2 * hn_type_count(x->in[0]) * (double)((const HnMlLinear *)x->params)->targets;
}

static int64_t largest(const double *s, int64_t n)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = s[k] > s[best] ? k : best;
    return best;
}

static void products(const HnMlLinear *p, const double *x, double *s)
{
    for (int64_t k = 0; k < p->targets; k++) {
        s[k] = p->intercepts != NULL ? (double)p->intercepts[k] : 0;
        for (int64_t i = 0; i < p->features; i++)
            s[k] += x[i] * (double)p->coefficients[k * p->features + i];
    }
}

/* Labels that are not given are 0 and 1. */
static void put_label(HnEval *e, const HnMlLinear *p, int64_t row, const double *s)
{
    const int64_t class = p->targets == 1 ? s[0] > 0 : largest(s, p->targets);
    if (p->labels.strings == NULL && p->targets == 1 && !p->pair)
        ((int64_t *)e->out[0]->data)[row] = class;
    else
        hn_ml_label(e->out[0], row, &p->labels, class);
}

static void finish(const HnMlLinear *p, double *s)
{
    if (p->targets > 1)
        hn_ml_transform(s, p->targets, p->transform);
    else /* the second class is 1 - s, but signed scores only become so by LOGISTIC */
        hn_ml_second(s, p->pair ? HN_ML_COMPLEMENT : HN_ML_ONE, p->transform);
}

static void eval_linear(HnEval *e, int k, gboolean classes)
{
    const HnMlLinear *p = e->params;
    int64_t rows, features;
    if (!hn_ml_rows(e, e->in[0], &rows, &features))
        return;
    if (features != p->features) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "rows of %" PRId64 " features do not fit to %" PRId64 " coefficients", features,
                     p->features);
        return;
    }
    const int64_t n = scores_of(p), dims[] = { rows, n };
    double *x = hn_eval_scratch(e, features, sizeof *x), *s = hn_eval_scratch(e, p->targets + 1, sizeof *s);
    float *y = s != NULL && k < e->n_out ? hn_ml_floats_out(e, k, 2, dims) : NULL;
    if (classes && s != NULL)
        hn_ml_labels_out(e, 0, &p->labels, rows);
    for (int64_t i = 0; i < rows && e->error == NULL; i++) {
        hn_ml_read(x, e->in[0], i * features, features);
        products(p, x, s);
        if (classes)
            put_label(e, p, i, s);
        finish(p, s);
        for (int64_t j = 0; y != NULL && j < n; j++)
            y[i * n + j] = (float)s[j];
    }
    hn_eval_scratch_free(e, x);
    hn_eval_scratch_free(e, s);
}

static void linearregressor_ref(HnEval *e)
{
    eval_linear(e, 0, FALSE);
}

static void linearclassifier_ref(HnEval *e)
{
    eval_linear(e, 1, TRUE);
}

const HnOp hn_op_linearregressor = {
    .name = "LinearRegressor",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "f",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(HnMlLinear),
    .bind = linearregressor_bind,
    .infer = linearregressor_infer,
    .cost = linear_cost,
    .ref = linearregressor_ref,
};

const HnOp hn_op_linearclassifier = {
    .name = "LinearClassifier",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "Uf",
    .T = HN_ML_NUMBERS,
    .U = HN_ML_LABEL_TYPES,
    .params_size = sizeof(HnMlLinear),
    .bind = linearclassifier_bind,
    .infer = linearclassifier_infer,
    .cost = linear_cost,
    .ref = linearclassifier_ref,
};
