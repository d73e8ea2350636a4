#include "op/ml.h"

#include <math.h>
#include <string.h>

#include "op/types.h"

GBytes *const *hn_ml_bind_strings(HnBind *b, const char *name, int64_t *n)
{
    const HnAttr *a = hn_node_attr(b->node, name);
    *n = 0;
    if (a == NULL)
        return NULL;
    if (a->ref_attr != NULL || a->kind != HN_ATTR_STRINGS) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is not a list of strings", name);
        return NULL;
    }
    *n = a->n;
    return a->n > 0 ? a->strings : NULL;
}

void hn_ml_bind_labels(HnBind *b, const char *strings, const char *ints, HnMlLabels *labels)
{
    int64_t n;
    labels->strings = hn_ml_bind_strings(b, strings, &n);
    labels->ints = hn_bind_ints(b, ints, &labels->n);
    if (n > 0 && labels->n > 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attributes '%s' and '%s' exclude each other", strings, ints);
    if (n > 0)
        labels->n = n;
}

HnMlTransform hn_ml_bind_transform(HnBind *b)
{
    static const char *const words[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT", NULL };
    return (HnMlTransform)hn_bind_word(b, "post_transform", words, HN_ML_NONE);
}

gboolean hn_ml_rows(HnEval *e, const HnTensor *x, int64_t *rows, int64_t *features)
{
    if (x->ndim != 1 && x->ndim != 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "rows of features have 1 or 2 dimensions, not %d", x->ndim);
        return FALSE;
    }
    *rows = x->ndim == 1 ? 1 : x->dims[0];
    *features = x->dims[x->ndim - 1];
    return TRUE;
}

static HnDim rows_of(HnInfer *x)
{
    const int rank = hn_infer_rank(x, 0);
    if (rank == 0 || rank > 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "rows of features have 1 or 2 dimensions, not %d", rank);
    return rank == 2 ? hn_infer_dim(x, 0, 0) : rank == 1 ? hn_dim(1) : hn_dim_unknown();
}

void hn_ml_infer_scores(HnInfer *x, int k, HnDtype dtype, int64_t n)
{
    const HnDim dims[] = { rows_of(x), hn_dim(n) };
    hn_infer_out(x, k, dtype, 2, dims);
}

void hn_ml_infer_labels(HnInfer *x, int k, const HnMlLabels *labels)
{
    const HnDim rows = rows_of(x);
    hn_infer_out(x, k, labels->strings != NULL ? HN_STRING : HN_I64, 1, &rows);
}

void *hn_ml_labels_out(HnEval *e, int k, const HnMlLabels *labels, int64_t rows)
{
    return hn_eval_out(e, k, labels->strings != NULL ? HN_STRING : HN_I64, 1, &rows);
}

void hn_ml_label(HnTensor *y, int64_t i, const HnMlLabels *labels, int64_t c)
{
    if (labels->strings != NULL)
        hn_tensor_set_string(y, i, labels->strings[c]);
    else
        ((int64_t *)y->data)[i] = labels->ints[c];
}

void hn_ml_read(double *v, const HnTensor *x, int64_t i, int64_t n)
{
#define READ(T)                     \
    for (int64_t k = 0; k < n; k++) \
        v[k] = (double)((const T *)x->data)[i + k];
    HN_FOR_NUM(x->dtype, READ)
#undef READ
}

float *hn_ml_floats_out(HnEval *e, int k, int ndim, const int64_t *dims)
{
    return hn_eval_out(e, k, HN_F32, ndim, dims);
}

double hn_ml_logistic(double v)
{
    return 1 / (1 + exp(-v));
}

static double largest(const double *s, int64_t n)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = s[i] > most ? s[i] : most;
    return most;
}

/* Scores that are 0 stay so, and take no part in the sum: SOFTMAX_ZERO. */
static void softmax(double *s, int64_t n, gboolean skip)
{
    const double most = largest(s, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (skip && fabs(s[i]) <= 1e-7) {
            s[i] *= exp(-most);
            continue;
        }
        s[i] = exp(s[i] - most);
        sum += s[i];
    }
    for (int64_t i = 0; i < n; i++)
        s[i] /= sum;
}

/* The inverse of erf by Winitzki's formula with a = 0.147, off by some 0.002: what ONNX's own account and ONNX Runtime
 * mean by PROBIT. */
static double probit(double p)
{
    const double v = 2 * p - 1, ln = log((1 - v) * (1 + v)), half = 2 / (G_PI * 0.147) + 0.5 * ln;
    const double inverse = sqrt(sqrt(half * half - ln / 0.147) - half);
    return G_SQRT2 * (v < 0 ? -inverse : inverse);
}

void hn_ml_transform(double *s, int64_t n, HnMlTransform transform)
{
    if (transform == HN_ML_SOFTMAX || transform == HN_ML_SOFTMAX_ZERO)
        softmax(s, n, transform == HN_ML_SOFTMAX_ZERO);
    for (int64_t i = 0; transform == HN_ML_LOGISTIC && i < n; i++)
        s[i] = hn_ml_logistic(s[i]);
    for (int64_t i = 0; transform == HN_ML_PROBIT && i < n; i++)
        s[i] = probit(s[i]);
}

int hn_ml_second(double *s, HnMlSecond second, HnMlTransform transform)
{
    if (transform == HN_ML_PROBIT) {
        s[0] = probit(s[0]);
        return 1;
    }
    if (second == HN_ML_ONE)
        return 1;
    const gboolean logistic = second == HN_ML_SIGNED && transform == HN_ML_LOGISTIC;
    const double v = s[0];
    s[0] = logistic ? hn_ml_logistic(-v) : second == HN_ML_SIGNED ? -v : 1 - v;
    s[1] = logistic ? hn_ml_logistic(v) : v;
    return 2;
}
