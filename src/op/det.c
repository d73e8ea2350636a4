/*
 * Det: the determinant of each matrix, by elimination with the largest pivot of the column.
 *
 * DetGrad(x, dy) (domain "hone"): the gradient of a Det's input: dy times the cofactors, which singular matrices have,
 * too.
 */
#include <math.h>
#include <string.h>

#include "op/move.h"
#include "op/tape.h"
#include "op/types.h"

static void det_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (rank < 2 || hn_dim_differ(hn_infer_dim(x, 0, rank - 1), hn_infer_dim(x, 0, rank - 2))) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input does not hold square matrices");
        return;
    }
    for (int a = 0; a < rank - 2; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank - 2, dims);
}

/* a [n,n] is overwritten. */
static double det(double *a, int64_t n)
{
    double d = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t p = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[p * n + k]))
                p = i;
        double pivot = a[p * n + k];
        d *= p != k ? -pivot : pivot;
        if (pivot == 0)
            return 0;
        for (int64_t j = k; j < n && p != k; j++) {
            double t = a[p * n + j];
            a[p * n + j] = a[k * n + j];
            a[k * n + j] = t;
        }
        for (int64_t i = k + 1; i < n; i++) {
            double f = a[i * n + k] / pivot;
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
        }
    }
    return d;
}

static void det_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int rank = x->ndim;
    if (rank < 2 || x->dims[rank - 1] != x->dims[rank - 2]) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input does not hold square matrices");
        return;
    }
    int64_t n = x->dims[rank - 1];
    void *out = hn_eval_out(e, 0, x->dtype, rank - 2, x->dims);
    double *a = out != NULL && e->out[0]->n > 0 ? hn_eval_scratch(e, n * n, sizeof *a) : NULL;
    for (int64_t m = 0; a != NULL && m < e->out[0]->n; m++) {
#define RUN(T)                                              \
    for (int64_t i = 0; i < n * n; i++)                     \
        a[i] = (double)((const T *)x->data)[m * n * n + i]; \
    ((T *)out)[m] = (T)det(a, n);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, a);
}

static void det_cost(const HnInfer *x, HnCost *c)
{
    const HnType *t = x->in[0];
    c->flops = t->rank > 0 ? 2.0 / 3 * hn_type_count(t) * (double)t->dims[t->rank - 1].n : 0;
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

/* (-1)^(row + column) det of x [n,n] without them; minor: memory for that */
static double cofactor(const HnTensor *x, int64_t from, int64_t n, int64_t row, int64_t column, double *minor)
{
    for (int64_t i = 0, at = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i != row && j != column)
                minor[at++] = hn_tensor_get_f64(x, from + i * n + j);
    return (row + column) % 2 == 0 ? det(minor, n - 1) : -det(minor, n - 1);
}

static void detgrad_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *dy = hn_eval_in(e, 1);
    const int rank = x->ndim;
    if (rank < 2 || x->dims[rank - 1] != x->dims[rank - 2] || dy->n != hn_span(x->dims, 0, rank - 2)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the inputs are not square matrices and a number for each");
        return;
    }
    const int64_t n = x->dims[rank - 1];
    double *minor = hn_eval_out_like(e, 0, x) != NULL ? hn_eval_scratch(e, MAX(n * n, 1), sizeof *minor) : NULL;
    for (int64_t i = 0; minor != NULL && i < x->n; i++) {
        const double c = cofactor(x, i / (n * n) * n * n, n, i / n % n, i % n, minor);
        hn_tensor_set_f64(e->out[0], i, c * hn_tensor_get_f64(dy, i / (n * n)));
    }
    hn_eval_scratch_free(e, minor);
}

static void detgrad_cost(const HnInfer *x, HnCost *c)
{
    const HnType *t = x->in[0];
    const double n = t->rank > 0 ? (double)t->dims[t->rank - 1].n : 0;
    c->flops = 2.0 / 3 * hn_type_count(t) * n * n * n;
}

static void det_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_dy(t, 0) };
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "DetGrad", 2, in, 1), 0));
}

/* --- records ------------------------------------------------------------------------------------------------------ */

const HnOp hn_op_det = {
    .name = "Det",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 11, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "T",
    .out = "T",
    .T = HN_T_FLOATS,
    .infer = det_infer,
    .cost = det_cost,
    .ref = det_ref,
    .grad = det_grad,
};

const HnOp hn_op_detgrad = {
    .name = "DetGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS,
    .infer = hn_infer_same,
    .cost = detgrad_cost,
    .ref = detgrad_ref,
};
