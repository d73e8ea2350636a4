/*
 * Scaler, Imputer, Binarizer and Normalizer: element by element or row by row. Lists have one number for all features,
 * or one for each, along the last axis.
 */
#include "op/ml_scale.h"

#include <math.h>

#include "op/types.h"

/* Numbers of a list for `features`; FALSE: they are neither one nor as many. */
static gboolean list_fits(int64_t n, int64_t features)
{
    return n == 1 || n == features;
}

static void check_list(HnInfer *x, const char *what, int64_t n)
{
    const int rank = hn_infer_rank(x, 0);
    const HnDim d = rank > 0 ? hn_infer_dim(x, 0, rank - 1) : hn_dim(1);
    if (rank >= 0 && d.known && !list_fits(n, d.n))
        hn_infer_fail(x, HN_ERROR_SHAPE, "%" PRId64 " %s do not fit to %" PRId64 " features", n, what, d.n);
}

static int64_t features_of(HnEval *e, const char *what, int64_t n)
{
    const HnTensor *x = e->in[0];
    const int64_t features = x->ndim > 0 ? x->dims[x->ndim - 1] : 1;
    if (!list_fits(n, features))
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " %s do not fit to %" PRId64 " features", n, what, features);
    return MAX(features, 1);
}

static void floats_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, HN_F32, 0);
}

/* --- Scaler ------------------------------------------------------------------------------------------------------ */

static void scaler_bind(HnBind *b, void *params)
{
    HnScaler *p = params;
    int64_t offsets, scales;
    p->offset = hn_bind_floats(b, "offset", &offsets);
    p->scale = hn_bind_floats(b, "scale", &scales);
    p->offset = offsets > 0 ? p->offset : NULL;
    p->scale = scales > 0 ? p->scale : NULL;
    if (offsets > 0 && scales > 0 && offsets != scales)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "there are %" PRId64 " offsets and %" PRId64 " scales", offsets, scales);
    p->n = MAX(MAX(offsets, scales), 1);
}

static void scaler_infer(HnInfer *x)
{
    check_list(x, "scales", ((const HnScaler *)x->params)->n);
    floats_infer(x);
}

static void scaler_ref(HnEval *e)
{
    const HnScaler *p = e->params;
    const HnTensor *x = e->in[0];
    const int64_t features = features_of(e, "scales", p->n);
    float *y = e->error == NULL ? hn_ml_floats_out(e, 0, x->ndim, x->dims) : NULL;
    for (int64_t i = 0; y != NULL && i < x->n; i++) {
        const int64_t k = p->n == 1 ? 0 : i % features;
        const double shifted = hn_tensor_get_f64(x, i) - (p->offset != NULL ? (double)p->offset[k] : 0);
        y[i] = (float)(shifted * (p->scale != NULL ? (double)p->scale[k] : 1));
    }
}

/* --- Imputer ----------------------------------------------------------------------------------------------------- */

static void imputer_bind(HnBind *b, void *params)
{
    HnImputer *p = params;
    p->values = hn_bind_floats(b, "imputed_value_floats", &p->n);
    p->ints = hn_bind_ints(b, "imputed_value_int64s", &p->n_ints);
    p->replaced = hn_bind_float(b, "replaced_value_float", 0);
    p->replaced_int = hn_bind_int(b, "replaced_value_int64", 0);
    if ((p->n > 0) == (p->n_ints > 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "the values to impute are floats or integers, and there is one at least");
}

static void imputer_infer(HnInfer *x)
{
    const HnImputer *p = x->params;
    const HnDtype dtype = hn_infer_dtype(x, 0);
    if (dtype != HN_UNDEFINED && hn_dtype_in(dtype, HN_T_INTS) != (p->n_ints > 0))
        hn_infer_fail(x, HN_ERROR_TYPE, "values to impute and input 0 are of different kinds");
    check_list(x, "values", MAX(p->n, p->n_ints));
    hn_infer_same(x);
}

static void imputer_ref(HnEval *e)
{
    const HnImputer *p = e->params;
    const HnTensor *x = e->in[0];
    const int64_t n = MAX(p->n, p->n_ints), features = features_of(e, "values", n);
    const gboolean ints = hn_dtype_in(x->dtype, HN_T_INTS);
    if (ints != (p->n_ints > 0))
        hn_eval_fail(e, HN_ERROR_TYPE, "values to impute and input 0 are of different kinds");
    if (e->error != NULL || hn_eval_out_like(e, 0, x) == NULL)
        return;
    for (int64_t i = 0; i < x->n; i++) {
        const int64_t k = n == 1 ? 0 : i % features;
        const double v = hn_tensor_get_f64(x, i);
        if (ints)
            hn_tensor_set_i64(e->out[0], i,
                              hn_tensor_get_i64(x, i) == p->replaced_int ? p->ints[k] : hn_tensor_get_i64(x, i));
        else if (v == (double)p->replaced || (isnan(v) && isnan(p->replaced)))
            hn_tensor_set_f64(e->out[0], i, (double)p->values[k]);
        else
            hn_tensor_set_f64(e->out[0], i, v);
    }
}

/* --- Binarizer --------------------------------------------------------------------------------------------------- */

static void binarizer_bind(HnBind *b, void *params)
{
    ((HnBinarizer *)params)->threshold = hn_bind_float(b, "threshold", 0);
}

static void binarizer_ref(HnEval *e)
{
    const HnBinarizer *p = e->params;
    const HnTensor *x = e->in[0];
    if (hn_eval_out_like(e, 0, x) == NULL)
        return;
    for (int64_t i = 0; i < x->n; i++)
        hn_tensor_set_f64(e->out[0], i, hn_tensor_get_f64(x, i) > (double)p->threshold);
}

/* --- Normalizer -------------------------------------------------------------------------------------------------- */

static void normalizer_bind(HnBind *b, void *params)
{
    static const char *const words[] = { "MAX", "L1", "L2", NULL };
    ((HnNormalizer *)params)->norm = (HnMlNorm)hn_bind_word(b, "norm", words, HN_NORM_MAX);
}

static void normalizer_infer(HnInfer *x)
{
    const int rank = hn_infer_rank(x, 0);
    if (rank == 0 || rank > 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "rows of features have 1 or 2 dimensions, not %d", rank);
    floats_infer(x);
}

/* MAX takes the largest number, not the largest magnitude. */
static double norm_of(const HnTensor *x, int64_t first, int64_t n, HnMlNorm norm)
{
    double sum = norm == HN_NORM_MAX && n > 0 ? -INFINITY : 0;
    for (int64_t i = first; i < first + n; i++) {
        const double v = hn_tensor_get_f64(x, i);
        sum = norm == HN_NORM_MAX ? (v > sum ? v : sum) : norm == HN_NORM_L1 ? sum + fabs(v) : sum + v * v;
    }
    return norm == HN_NORM_L2 ? sqrt(sum) : sum;
}

static void normalizer_ref(HnEval *e)
{
    const HnNormalizer *p = e->params;
    const HnTensor *x = e->in[0];
    int64_t rows, n;
    float *y = hn_ml_rows(e, x, &rows, &n) ? hn_ml_floats_out(e, 0, x->ndim, x->dims) : NULL;
    for (int64_t r = 0; y != NULL && r < rows; r++) {
        const double norm = norm_of(x, r * n, n, p->norm);
        for (int64_t i = r * n; i < (r + 1) * n; i++)
            y[i] = (float)(hn_tensor_get_f64(x, i) / (norm != 0 ? norm : 1));
    }
}

const HnOp hn_op_scaler = {
    .name = "Scaler",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "f",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(HnScaler),
    .bind = scaler_bind,
    .infer = scaler_infer,
    .cost = hn_cost_elementwise,
    .ref = scaler_ref,
};

const HnOp hn_op_imputer = {
    .name = "Imputer",
    .domain = HN_DOMAIN_ML,
    .flags = HN_OP_INPLACE,
    .since = { 1 },
    .in = "T",
    .out = "T",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(HnImputer),
    .bind = imputer_bind,
    .infer = imputer_infer,
    .cost = hn_cost_elementwise,
    .ref = imputer_ref,
};

const HnOp hn_op_binarizer = {
    .name = "Binarizer",
    .domain = HN_DOMAIN_ML,
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE,
    .since = { 1 },
    .in = "T",
    .out = "T",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(HnBinarizer),
    .bind = binarizer_bind,
    .infer = hn_infer_same,
    .cost = hn_cost_elementwise,
    .ref = binarizer_ref,
};

const HnOp hn_op_normalizer = {
    .name = "Normalizer",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "f",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(HnNormalizer),
    .bind = normalizer_bind,
    .infer = normalizer_infer,
    .cost = hn_cost_elementwise,
    .ref = normalizer_ref,
};
