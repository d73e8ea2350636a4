/*
 * LayerNormalization, RMSNormalization: each row, from `axis` to the end, divided by its standard deviation (mean taken
 * off first) or by its root mean square; then scaled, and shifted, by tensors that broadcast to the input.
 */
#include "op/layernorm.h"

#include <math.h>

#include "base/half.h"
#include "op/batch.h"
#include "op/index.h"
#include "op/norm_grad.h"
#include "op/op.h"
#include "op/types.h"
#include "op/unbind.h"

gboolean hn_is_norm_row(const HnTensor *t, const HnTensor *x, int axis)
{
    if (t->n != hn_span(x->dims, axis, x->ndim))
        return FALSE;
    for (int i = 1; i <= t->ndim; i++)
        if (t->dims[t->ndim - i] != (i <= x->ndim - axis ? x->dims[x->ndim - i] : 1))
            return FALSE;
    return TRUE;
}

static void layernorm_bind(HnBind *b, void *params)
{
    HnLayerNorm *p = params;
    p->axis = hn_bind_int(b, "axis", -1);
    p->epsilon = hn_bind_float(b, "epsilon", 1e-5f);
    int64_t stash = hn_bind_int(b, "stash_type", HN_F32);
    if (stash != HN_F32 && stash != HN_BF16 && stash != HN_F16 && stash != HN_F64)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'stash_type' cannot be %" PRId64, stash);
    else
        p->stash = (HnDtype)stash;
}

/* Input i broadcasts to input 0 without making it larger. */
static void check_broadcast(HnInfer *x, int i)
{
    int rank = hn_infer_rank(x, 0), r = hn_infer_rank(x, i);
    if (rank < 0 || r < 0)
        return;
    for (int j = 0; j < r; j++) {
        HnDim d = hn_infer_dim(x, i, j);
        if (!hn_dim_is(d, 1) && (j + rank < r || hn_dim_differ(d, hn_infer_dim(x, 0, j + rank - r)))) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d does not broadcast to input 0", i);
            return;
        }
    }
}

static void layernorm_infer(HnInfer *x)
{
    const HnLayerNorm *p = x->params;
    int rank = hn_infer_rank(x, 0), axis;
    HnDim dims[HN_MAX_RANK];
    hn_infer_same(x);
    check_broadcast(x, 1);
    check_broadcast(x, 2);
    if (rank < 0) {
        for (int k = 1; k < x->n_out && k < 3; k++)
            hn_infer_out_unknown(x, k, p->stash);
        return;
    }
    if ((axis = hn_infer_axis(x, p->axis, rank)) < 0)
        return;
    for (int i = 0; i < rank; i++)
        dims[i] = i < axis ? hn_infer_dim(x, 0, i) : hn_dim(1);
    for (int k = 1; k < x->n_out && k < 3; k++)
        hn_infer_out(x, k, p->stash, rank, dims);
}

static void rmsnorm_infer(HnInfer *x)
{
    const HnLayerNorm *p = x->params;
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0)
        hn_infer_axis(x, p->axis, rank);
    check_broadcast(x, 1);
    hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 1), 0);
}

static void layernorm_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 8 * hn_type_count(x->in[0]); /* mean 1, variance 3, normalise 2, scale and shift 2 */
}

static void rmsnorm_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 4 * hn_type_count(x->in[0]);
}

/* A tensor that broadcasts to [rows, cols]: element (r, c) is data[row_offset(r) + col[c]]. */
typedef struct {
    const HnTensor *t;
    int64_t strides[HN_MAX_RANK];
    int64_t *col;
} Spread;

static gboolean spread_make(HnEval *e, Spread *s, const HnTensor *t, const HnTensor *x, int axis, int64_t cols)
{
    s->t = t;
    gboolean fits = t->ndim <= x->ndim;
    for (int i = 0; fits && i < t->ndim; i++)
        fits = t->dims[i] == 1 || t->dims[i] == x->dims[x->ndim - t->ndim + i];
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "scale or bias does not broadcast to input 0");
        return FALSE;
    }
    hn_broadcast_strides(t, x->ndim, s->strides);
    if ((s->col = hn_eval_scratch(e, cols, sizeof *s->col)) == NULL)
        return FALSE;
    int64_t idx[HN_MAX_RANK] = { 0 }, off = 0, *strides = s->strides + axis;
    for (int64_t c = 0; c < cols; c++) {
        s->col[c] = off;
        hn_index_next(x->ndim - axis, x->dims + axis, idx, 1, &strides, &off);
    }
    return TRUE;
}

/* What a row needs besides its elements. b->t is NULL where there is no bias. */
typedef struct {
    int64_t cols;
    double epsilon;
    gboolean centre; /* take the mean off */
    const Spread *w, *b;
} Job;

#define DEFINE_ROW(T, S)                                                                                               \
    static void row_##T##_##S(const Job *j, const T *x, S *y, int64_t w_off, int64_t b_off, double *mean, double *inv) \
    {                                                                                                                  \
        const S *w = (const S *)j->w->t->data + w_off;                                                                 \
        double sum = 0, squares = 0;                                                                                   \
        for (int64_t c = 0; j->centre && c < j->cols; c++)                                                             \
            sum += (double)x[c];                                                                                       \
        *mean = j->centre ? sum / (double)j->cols : 0;                                                                 \
        for (int64_t c = 0; c < j->cols; c++) {                                                                        \
            double d = (double)x[c] - *mean;                                                                           \
            squares += d * d;                                                                                          \
        }                                                                                                              \
        *inv = 1 / sqrt(squares / (double)j->cols + j->epsilon);                                                       \
        if (j->b->t == NULL) {                                                                                         \
            for (int64_t c = 0; c < j->cols; c++)                                                                      \
                y[c] = (S)(((double)x[c] - *mean) * *inv * (double)w[j->w->col[c]]);                                   \
        } else {                                                                                                       \
            const S *b = (const S *)j->b->t->data + b_off;                                                             \
            for (int64_t c = 0; c < j->cols; c++)                                                                      \
                y[c] = (S)(((double)x[c] - *mean) * *inv * (double)w[j->w->col[c]] + (double)b[j->b->col[c]]);         \
        }                                                                                                              \
    }
DEFINE_ROW(float, float)
DEFINE_ROW(float, double)
DEFINE_ROW(double, float)
DEFINE_ROW(double, double)

/* x: of T; w, b and y: of S, which may differ from T */
static void run_row(const Job *j, HnDtype t, HnDtype s, const void *x, void *y, int64_t row, int64_t w_off,
                    int64_t b_off, double *mean, double *inv)
{
    row *= j->cols;
    if (t == HN_F32 && s == HN_F32)
        row_float_float(j, (const float *)x + row, (float *)y + row, w_off, b_off, mean, inv);
    else if (t == HN_F32)
        row_float_double(j, (const float *)x + row, (double *)y + row, w_off, b_off, mean, inv);
    else if (s == HN_F32)
        row_double_float(j, (const double *)x + row, (float *)y + row, w_off, b_off, mean, inv);
    else
        row_double_double(j, (const double *)x + row, (double *)y + row, w_off, b_off, mean, inv);
}

static void store(void *data, HnDtype dtype, int64_t i, double v)
{
    if (data == NULL)
        return;
    if (dtype == HN_F32)
        ((float *)data)[i] = (float)v;
    else if (dtype == HN_F64)
        ((double *)data)[i] = v;
    else
        ((uint16_t *)data)[i] = dtype == HN_F16 ? hn_f16_from_f64(v) : hn_bf16_from_f64(v);
}

static void norm_eval(HnEval *e, gboolean centre)
{
    const HnLayerNorm *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *scale = hn_eval_in(e, 1), *bias = centre ? hn_eval_in(e, 2) : NULL;
    Spread w = { .col = NULL }, b = { .col = NULL };
    int64_t dims[HN_MAX_RANK];
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    if (axis < 0)
        return;
    int64_t rows = hn_span(x->dims, 0, axis), cols = hn_span(x->dims, axis, x->ndim);
    for (int i = 0; i < x->ndim; i++)
        dims[i] = i < axis ? x->dims[i] : 1;
    void *y = hn_eval_out(e, 0, scale->dtype, x->ndim, x->dims), *extra[2] = { NULL, NULL };
    for (int k = 0; k < 2; k++)
        if (centre && hn_eval_wants(e, k + 1))
            extra[k] = hn_eval_out(e, k + 1, p->stash, x->ndim, dims);
    if (e->error != NULL || !spread_make(e, &w, scale, x, axis, cols) ||
        (bias != NULL && !spread_make(e, &b, bias, x, axis, cols)))
        goto done;
    Job job = { cols, (double)p->epsilon, centre, &w, &b };
    int64_t idx[HN_MAX_RANK] = { 0 }, off[2] = { 0, 0 }, *strides[2] = { w.strides, b.strides };
    if (bias == NULL)
        strides[1] = w.strides;
    for (int64_t r = 0; r < rows && (x->n > 0 || cols == 0); r++) {
        double mean, inv;
        run_row(&job, x->dtype, scale->dtype, x->data, y, r, off[0], off[1], &mean, &inv);
        store(extra[0], p->stash, r, mean);
        store(extra[1], p->stash, r, inv);
        hn_index_next(axis, x->dims, idx, 2, strides, off);
    }
done:
    hn_eval_scratch_free(e, w.col);
    hn_eval_scratch_free(e, b.col);
}

static void layernorm_ref(HnEval *e)
{
    norm_eval(e, TRUE);
}

static void rmsnorm_ref(HnEval *e)
{
    norm_eval(e, FALSE);
}

/* Input i, scale or bias, in the type that x is computed in. */
static HnValue *weight_as(HnUnbind *u, int i, HnDtype dtype)
{
    return hn_unbind_dtype(u, i) == dtype ? hn_unbind_in(u, i) : hn_unbind_cast(u, hn_unbind_in(u, i), dtype);
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias, in f32 or f64; RMSNormalization takes no mean off. */
static void norm_unbind(HnUnbind *u, gboolean centre)
{
    const HnLayerNorm *p = u->params;
    int rank = hn_unbind_rank(u, 0);
    int64_t n = p->axis < 0 ? -MAX(p->axis, -HN_MAX_RANK - 1) : rank - MIN(p->axis, HN_MAX_RANK), axes[HN_MAX_RANK];
    HnDtype dtype;
    if ((p->axis >= 0 && rank < 0) || n < 1 || n > HN_MAX_RANK || !hn_dtype_in(hn_unbind_dtype(u, 1), HN_T_FLOATS)) {
        hn_unbind_refuse(u, "the number of dimensions of input 0 or the type of input 1 is not known");
        return;
    }
    HnValue *x = hn_unbind_real(u, 0, &dtype), *mean = NULL;
    if (x == NULL)
        return;
    for (int64_t i = 0; i < n; i++)
        axes[i] = i - n;
    if (centre) {
        mean = hn_unbind_reduce(u, "ReduceMean", x, axes, (int)n, TRUE);
        x = hn_unbind_op2(u, "Sub", x, mean);
    }
    HnValue *squares = hn_unbind_reduce(u, "ReduceMean", hn_unbind_op2(u, "Mul", x, x), axes, (int)n, TRUE);
    HnValue *sum = hn_unbind_op2(u, "Add", squares, hn_unbind_scalar(u, dtype, (double)p->epsilon));
    HnValue *inv = hn_unbind_op1(u, "Reciprocal", hn_unbind_op1(u, "Sqrt", sum));
    HnValue *y = hn_unbind_op2(u, "Mul", hn_unbind_op2(u, "Mul", x, inv), weight_as(u, 1, dtype));
    if (centre && hn_unbind_in(u, 2) != NULL)
        y = hn_unbind_op2(u, "Add", y, weight_as(u, 2, dtype));
    if (centre && hn_unbind_wants(u, 1))
        hn_unbind_take(u, 1, p->stash == dtype ? mean : hn_unbind_cast(u, mean, p->stash));
    if (centre && hn_unbind_wants(u, 2))
        hn_unbind_take(u, 2, p->stash == dtype ? inv : hn_unbind_cast(u, inv, p->stash));
    hn_unbind_give_up(u, 1);
    hn_unbind_take_real(u, 0, y);
}

static void layernorm_unbind(HnUnbind *u)
{
    if (u->to < 17)
        norm_unbind(u, TRUE);
}

static void rmsnorm_unbind(HnUnbind *u)
{
    if (u->to < 23)
        norm_unbind(u, FALSE);
}

/* Input i has the shape of a row, and the type of x. */
static gboolean is_row(const HnTape *t, int i, int64_t axis)
{
    const HnType *x = hn_types_get(t->types, hn_tape_in(t, 0)), *v = hn_types_get(t->types, hn_tape_in(t, i));
    if (v == NULL || v->dtype != x->dtype || v->rank != x->rank - axis)
        return FALSE;
    for (int k = 0; k < v->rank; k++)
        if (!hn_dim_equal(v->dims[k], x->dims[axis + k]))
            return FALSE;
    return TRUE;
}

/* By one record, where scale and bias are rows. FALSE: they are not. */
static gboolean fused_grad(HnTape *t, gboolean centred, int64_t axis)
{
    const HnLayerNorm *p = t->params;
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, 0), hn_tape_in(t, 1) };
    if (!is_row(t, 1, axis) || (hn_tape_needs(t, 2) && !is_row(t, 2, axis)))
        return FALSE;
    HnNode *n = hn_build_node(t->build, "LayerNormGrad", HN_DOMAIN_INTERNAL, 3, in, 3);
    hn_node_set_int(n, "axis", p->axis);
    hn_node_set_float(n, "epsilon", p->epsilon);
    hn_node_set_int(n, "centred", centred);
    for (int i = 0; i < 3; i++)
        hn_tape_give(t, i, hn_node_out(n, i));
    return TRUE;
}

static void rows_grad(HnTape *t, gboolean centred)
{
    const HnLayerNorm *p = t->params;
    const int rank = hn_tape_rank(t, 0);
    HnNormGrad g = { .epsilon = (double)p->epsilon, .centred = centred };
    HnValue *dy = hn_tape_dy(t, 0);
    if (rank < 0 || hn_tape_dy(t, 1) != NULL || hn_tape_dy(t, 2) != NULL) {
        hn_tape_refuse(t, rank < 0 ? "the number of dimensions is not known" : "mean and deviation are read, too");
        return;
    }
    const int64_t axis = p->axis + (p->axis < 0 ? rank : 0);
    if (fused_grad(t, centred, axis))
        return;
    for (int64_t a = axis; a < rank; a++)
        g.axes[g.n++] = a;
    hn_norm_hat(t, &g, hn_tape_in(t, 0));
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_norm_dx(t, &g, hn_build_op2(t->build, "Mul", dy, hn_tape_in(t, 1))));
    if (hn_tape_needs(t, 1))
        hn_tape_give_sum(t, 1, hn_build_op2(t->build, "Mul", dy, g.hat));
    hn_tape_operand(t, 2, "dy");
}

static void layernormalization_grad(HnTape *t)
{
    rows_grad(t, TRUE);
}

static void rmsnormalization_grad(HnTape *t)
{
    rows_grad(t, FALSE);
}

void hn_layernorm_batch(HnBatch *b)
{
    const HnLayerNorm *p = b->params;
    const int back = hn_batch_rank(b, 0) - b->in[0].at.axis;
    if (hn_batch_split(b, 0) && !hn_batch_in_front(b, 0))
        for (int i = 1; i < b->n_in; i++)
            if (!hn_batch_same_along(b, i, back))
                return;
    hn_batch_along(b, p->axis, TRUE);
}

const HnOp hn_op_layernormalization = {
    .name = "LayerNormalization",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 17 },
    .in = "TTT",
    .out = "TUU",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .min_in = 2,
    .unbind = layernorm_unbind,
    .params_size = sizeof(HnLayerNorm),
    .bind = layernorm_bind,
    .infer = layernorm_infer,
    .cost = layernorm_cost,
    .ref = layernorm_ref,
    .grad = layernormalization_grad,
    .batch = hn_layernorm_batch,
    .range = { .kind = HN_R_SQUARES, .row = HN_ROW_FROM_AXIS },
    .channels = { HN_CH_ROWS, HN_UNIT_NONE },
    .trained = 1 << 1 | 1 << 2,
};

const HnOp hn_op_rmsnormalization = {
    .name = "RMSNormalization",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 23 },
    .in = "TU",
    .out = "U",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .unbind = rmsnorm_unbind,
    .params_size = sizeof(HnLayerNorm),
    .bind = layernorm_bind,
    .infer = rmsnorm_infer,
    .cost = rmsnorm_cost,
    .ref = rmsnorm_ref,
    .grad = rmsnormalization_grad,
    .batch = hn_layernorm_batch,
    .range = { .kind = HN_R_SQUARES, .row = HN_ROW_FROM_AXIS },
    .channels = { HN_CH_ROWS, HN_UNIT_NONE },
    .trained = 1 << 1,
};
