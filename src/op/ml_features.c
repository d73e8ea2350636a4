/*
 * ArrayFeatureExtractor: elements along the last axis. FeatureVectorizer: inputs side by side, cut or filled up with
 * zeros to the widths that the attribute says.
 */
#include "op/ml.h"

#include <string.h>

#include "op/move.h"
#include "op/types.h"

/* --- ArrayFeatureExtractor --------------------------------------------------------------------------------------- */

/* Of a vector there comes one row. */
static void arrayfeatureextractor_infer(HnInfer *x)
{
    const int rank = hn_infer_rank(x, 0), rank_at = hn_infer_rank(x, 1);
    HnDim dims[HN_MAX_RANK], n = rank_at == 0 ? hn_dim(1) : rank_at == 1 ? hn_infer_dim(x, 1, 0) : hn_dim_unknown();
    if (rank == 0)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 is a scalar");
    if (rank <= 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (rank_at > 1 && hn_type_is_fixed(x->in[1], NULL))
        n = hn_dim((int64_t)hn_type_count(x->in[1]));
    for (int a = 0; a < rank; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    dims[MAX(rank, 2) - 1] = n;
    if (rank == 1)
        dims[0] = hn_dim(1);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), MAX(rank, 2), dims);
}

static gboolean check_places(HnEval *e, const HnTensor *at, int64_t n)
{
    for (int64_t i = 0; i < at->n; i++) {
        const int64_t k = hn_tensor_get_i64(at, i);
        if (k < 0 || k >= n) {
            hn_eval_fail(e, HN_ERROR_VALUE, "index %" PRId64 " is outside of %" PRId64 " features", k, n);
            return FALSE;
        }
    }
    return TRUE;
}

static void arrayfeatureextractor_ref(HnEval *e)
{
    const HnTensor *x = e->in[0], *at = e->in[1];
    if (x->ndim == 0) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 0 is a scalar");
        return;
    }
    const int64_t n = x->dims[x->ndim - 1], rows = n > 0 ? x->n / n : 0;
    int64_t dims[HN_MAX_RANK] = { 1 };
    const int rank = MAX(x->ndim, 2);
    if (x->ndim > 1)
        memcpy(dims, x->dims, (size_t)x->ndim * sizeof *dims);
    dims[rank - 1] = at->n;
    if (!check_places(e, at, n) || hn_eval_out(e, 0, x->dtype, rank, dims) == NULL)
        return;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < at->n; i++) {
            const int64_t from = r * n + hn_tensor_get_i64(at, i), to = r * at->n + i;
            if (x->dtype == HN_STRING) {
                hn_tensor_set_string(e->out[0], to, hn_tensor_get_string(x, from));
                continue;
            }
#define MOVE(T) ((T *)e->out[0]->data)[to] = ((const T *)x->data)[from];
            HN_FOR_SIZE(hn_dtype_size(x->dtype), MOVE)
#undef MOVE
        }
}

/* --- FeatureVectorizer ------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t n, total;
    const int64_t *widths;
} FeatureVectorizer;

static void featurevectorizer_bind(HnBind *b, void *params)
{
    FeatureVectorizer *p = params;
    p->widths = hn_bind_ints(b, "inputdimensions", &p->n);
    if (p->n != (int64_t)b->node->in->len)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " widths do not fit to %u inputs", p->n, b->node->in->len);
    for (int64_t i = 0; i < p->n && b->error == NULL; i++)
        if (p->widths[i] < 0 || __builtin_add_overflow(p->total, p->widths[i], &p->total))
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a width of %" PRId64 " cannot be", p->widths[i]);
}

static void featurevectorizer_infer(HnInfer *x)
{
    hn_ml_infer_scores(x, 0, HN_F32, ((const FeatureVectorizer *)x->params)->total);
}

static void featurevectorizer_ref(HnEval *e)
{
    const FeatureVectorizer *p = e->params;
    int64_t rows, width, all;
    if (!hn_ml_rows(e, e->in[0], &rows, &width))
        return;
    const int64_t dims[] = { rows, p->total };
    float *y = hn_ml_floats_out(e, 0, 2, dims);
    if (y == NULL)
        return;
    memset(y, 0, e->out[0]->bytes);
    for (int i = 0; i < e->n_in; y += p->widths[i++]) {
        if (!hn_ml_rows(e, e->in[i], &all, &width))
            return;
        if (all != rows) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d has %" PRId64 " rows, not %" PRId64, i, all, rows);
            return;
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < MIN(width, p->widths[i]); k++)
                y[r * p->total + k] = (float)hn_tensor_get_f64(e->in[i], r * width + k);
    }
}

const HnOp hn_op_arrayfeatureextractor = {
    .name = "ArrayFeatureExtractor",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "Ti",
    .out = "T",
    .T = HN_ML_NUMBERS | HN_BIT(HN_STRING),
    .infer = arrayfeatureextractor_infer,
    .ref = arrayfeatureextractor_ref,
};

const HnOp hn_op_featurevectorizer = {
    .name = "FeatureVectorizer",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T~",
    .out = "f",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(FeatureVectorizer),
    .bind = featurevectorizer_bind,
    .infer = featurevectorizer_infer,
    .ref = featurevectorizer_ref,
};
