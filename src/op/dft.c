/*
 * DFT: y[k] = sum of x[j] e^(-2 pi i j k / n) along an axis, and its inverse, which is divided by n. The last axis
 * holds real and imaginary parts, or real ones alone. A real signal may keep one half of its spectrum, whose inverse is
 * a real signal. STFT: the same of pieces of a signal, each times a window.
 *
 * Opset 17 has the axis as an attribute, which is 1 where it is absent; since 20 it is an input, -2 where it is absent.
 */
#include "op/batch.h"
#include "op/dft.h"

#include "op/batch.h"
#include "op/fourier.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/unbind.h"

static void dft_bind(HnBind *b, void *params)
{
    HnDft *p = params;
    p->inverse = hn_bind_bool(b, "inverse", FALSE);
    p->onesided = hn_bind_bool(b, "onesided", FALSE);
    p->by_input = b->version >= 20;
    p->axis = p->by_input ? -2 : hn_bind_int(b, "axis", 1);
    if (!p->by_input && b->node->in->len > 2)
        hn_bind_fail(b, HN_ERROR_GRAPH, "has %u inputs, 2 are allowed before opset 20", b->node->in->len);
}

/* --- shapes ------------------------------------------------------------------------------------------------------ */

/* The only element of input i as a dimension. */
static HnDim scalar_dim(HnInfer *x, int i)
{
    const HnContents *c = hn_infer_contents(x, i);
    const HnDim n = hn_infer_rank(x, i) == 1 ? hn_infer_dim(x, i, 0) : hn_dim(1);
    if (hn_infer_rank(x, i) > 1 || (n.known && n.n != 1))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input %d is not a scalar", i);
    return c != NULL && c->n == 1 ? c->d[0] : hn_dim_unknown();
}

static HnDim bins_of(HnDim length, gboolean onesided)
{
    return onesided ? hn_dim_add(hn_dim_floor_div(length, hn_dim(2)), hn_dim(1)) : length;
}

/* The last axis holds one number or two. Failure where that cannot be, or a whole spectrum is needed. */
static void check_parts(HnInfer *x, gboolean real)
{
    const HnDim parts = hn_infer_dim(x, 0, hn_infer_rank(x, 0) - 1);
    if (parts.known && parts.n != 1 && parts.n != 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the last axis has %" PRId64 " numbers instead of 1 or 2", parts.n);
    else if (parts.known && parts.n == 2 && real)
        hn_infer_fail(x, HN_ERROR_SHAPE, "one half of the spectrum is enough for a real signal only");
}

/* The axis from the front; -1: not known, or failed. */
static int axis_known(HnInfer *x, int rank)
{
    const HnDft *p = x->params;
    int64_t axis = p->axis;
    int n = 0;
    if (p->by_input && hn_infer_has(x, HN_DFT_AXIS) && (!hn_infer_ints(x, HN_DFT_AXIS, &axis, 1, &n) || n != 1))
        return -1;
    if (axis == -1 || axis == rank - 1) {
        hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "the last axis holds real and imaginary parts: no signal runs along it");
        return -1;
    }
    return hn_infer_axis(x, axis, rank);
}

static HnDim length_known(HnInfer *x, int axis)
{
    const HnDft *p = x->params;
    const HnDim n = hn_infer_dim(x, 0, axis);
    if (hn_infer_has(x, HN_DFT_LENGTH))
        return scalar_dim(x, HN_DFT_LENGTH);
    return p->inverse && p->onesided ? hn_dim_mul(hn_dim(2), hn_dim_sub(n, hn_dim(1))) : n;
}

static void dft_infer(HnInfer *x)
{
    const HnDft *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (rank >= 0 && rank < 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 2 are needed", rank);
    if (rank < 2) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    check_parts(x, p->onesided && !p->inverse);
    const int axis = x->error == NULL ? axis_known(x, rank) : -1;
    for (int a = 0; a < rank; a++)
        dims[a] = axis >= 0 ? hn_infer_dim(x, 0, a) : hn_dim_unknown();
    dims[rank - 1] = hn_dim(p->inverse && p->onesided ? 1 : 2);
    if (axis >= 0) {
        const HnDim length = length_known(x, axis);
        if (length.known && length.n < 1)
            hn_infer_fail(x, HN_ERROR_VALUE, "a signal cannot have a length of %" PRId64, length.n);
        dims[axis] = bins_of(length, p->onesided && !p->inverse);
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

/* --- ref --------------------------------------------------------------------------------------------------------- */

/* A transform with memory for the points of one signal. */
typedef struct {
    HnFourier f;
    double *z; /* [n] pairs */
    double *memory;
} Line;

static gboolean line_new(HnEval *e, Line *l, int64_t n)
{
    const int64_t own = hn_fourier_memory(n);
    if (own < 0) {
        hn_eval_fail(e, HN_ERROR_VALUE, "a signal cannot have a length of %" PRId64, n);
        return FALSE;
    }
    if ((l->memory = hn_eval_scratch(e, own + 2 * n, sizeof(double))) == NULL)
        return FALSE;
    l->z = l->memory + own;
    hn_fourier_init(&l->f, n, l->memory);
    return TRUE;
}

/* The bins that half a spectrum leaves out. */
static void mirror(double *z, int64_t n)
{
    z[1] = 0;
    if (n % 2 == 0)
        z[n + 1] = 0;
    for (int64_t k = n / 2 + 1; k < n; k++) {
        z[2 * k] = z[2 * (n - k)];
        z[2 * k + 1] = -z[2 * (n - k) + 1];
    }
}

/* Element `at` of x, of `parts` numbers, or 0. */
static void load_point(const HnTensor *x, int64_t at, int parts, double *z)
{
    z[0] = at >= 0 ? hn_tensor_get_f64(x, at * parts) : 0;
    z[1] = at >= 0 && parts == 2 ? hn_tensor_get_f64(x, at * parts + 1) : 0;
}

/* Signals of x along an axis of `points`, `inner` of them side by side. */
static void transform(HnEval *e, Line *l, int64_t points, int64_t inner, int64_t outer)
{
    const HnDft *p = e->params;
    const HnTensor *x = e->in[0];
    HnTensor *y = e->out[0];
    const gboolean half = p->onesided && p->inverse;
    const int parts = (int)x->dims[x->ndim - 1], out_parts = half ? 1 : 2;
    const int64_t n = l->f.n, bins = hn_dft_bins(n, p->onesided && !p->inverse), given = half ? n / 2 + 1 : n;
    const double scale = p->inverse ? 1 / (double)n : 1;
    for (int64_t s = 0; s < outer * inner; s++) {
        const int64_t o = s / inner, i = s % inner;
        for (int64_t j = 0; j < given; j++)
            load_point(x, j < points ? (o * points + j) * inner + i : -1, parts, l->z + 2 * j);
        if (half)
            mirror(l->z, n);
        hn_fourier_run(&l->f, l->z, p->inverse);
        for (int64_t k = 0; k < bins; k++)
            for (int c = 0; c < out_parts; c++)
                hn_tensor_set_f64(y, ((o * bins + k) * inner + i) * out_parts + c, l->z[2 * k + c] * scale);
    }
}

/* Axis and length; FALSE: failed. */
static gboolean dft_setting(HnEval *e, int *axis, int64_t *length)
{
    const HnDft *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t a = p->axis;
    if (x->ndim < 2 || (x->dims[x->ndim - 1] != 1 && x->dims[x->ndim - 1] != 2)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input is not a signal of real or complex numbers");
        return FALSE;
    }
    if (p->onesided && !p->inverse && x->dims[x->ndim - 1] == 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "one half of the spectrum is enough for a real signal only");
        return FALSE;
    }
    if (p->by_input && hn_eval_in(e, HN_DFT_AXIS) != NULL && !hn_eval_int(e, HN_DFT_AXIS, &a))
        return FALSE;
    if ((*axis = hn_eval_axis(e, a, x->ndim)) < 0)
        return FALSE;
    if (*axis == x->ndim - 1) {
        hn_eval_fail(e, HN_ERROR_ATTRIBUTE, "the last axis holds real and imaginary parts: no signal runs along it");
        return FALSE;
    }
    *length = p->inverse && p->onesided ? 2 * (x->dims[*axis] - 1) : x->dims[*axis];
    return hn_eval_in(e, HN_DFT_LENGTH) == NULL || hn_eval_int(e, HN_DFT_LENGTH, length);
}

static void dft_ref(HnEval *e)
{
    const HnDft *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t dims[HN_MAX_RANK], length;
    int axis;
    Line l;
    if (!dft_setting(e, &axis, &length))
        return;
    for (int a = 0; a < x->ndim; a++)
        dims[a] = x->dims[a];
    dims[x->ndim - 1] = p->inverse && p->onesided ? 1 : 2;
    if (!line_new(e, &l, length))
        return;
    dims[axis] = hn_dft_bins(length, p->onesided && !p->inverse);
    if (hn_eval_out(e, 0, x->dtype, x->ndim, dims) != NULL)
        transform(e, &l, x->dims[axis], hn_span(dims, axis + 1, x->ndim - 1), hn_span(dims, 0, axis));
    hn_eval_scratch_free(e, l.memory);
}

/* 5 n log2 n for a complex signal, half of that for a real one. */
static double transform_flops(double points, double n)
{
    double log2n = 0;
    for (double m = n; m > 1; m /= 2)
        log2n++;
    return 5 * points * log2n;
}

static void dft_cost(const HnInfer *x, HnCost *c)
{
    const HnDft *p = x->params;
    const int rank = hn_infer_rank(x, 0), axis = rank >= 2 ? axis_known((HnInfer *)x, rank) : -1;
    const double points = MAX(hn_type_count(x->in[0]), hn_type_count(x->out[0])) / 2;
    if (axis >= 0 && x->out[0] != NULL)
        c->flops = transform_flops(points, (double)MAX(x->out[0]->dims[axis].n, hn_infer_dim(x, 0, axis).n)) /
                   (p->onesided && p->inverse ? 2 : 1);
}

/* --- other opsets ------------------------------------------------------------------------------------------------ */

static void set_axis(HnNode *n, HnValue *axis)
{
    while (n->in->len < HN_DFT_AXIS)
        hn_node_set_in(n, (int)n->in->len, NULL);
    hn_node_set_in(n, HN_DFT_AXIS, axis);
}

/* The axis moves between attribute and input; it has to be known where it becomes an attribute. */
static void dft_unbind(HnUnbind *u)
{
    const HnDft *p = u->params;
    double axis = -2;
    if (u->to < 17) {
        hn_unbind_settle(u, 0);
    } else if (hn_unbind_below(u, 20)) {
        if (hn_unbind_in(u, HN_DFT_AXIS) != NULL && !hn_unbind_number(u, HN_DFT_AXIS, &axis)) {
            hn_unbind_refuse(u, "the axis is computed when it runs");
            return;
        }
        hn_unbind_drop(u, HN_DFT_AXIS);
        hn_node_set_int(u->node, "axis", (int64_t)axis);
    } else if (hn_unbind_above(u, 20)) {
        const int64_t at = p->axis;
        hn_node_remove_attr(u->node, "axis");
        set_axis(u->node, hn_unbind_scalar(u, HN_I64, (double)at));
    }
}

/* --- STFT -------------------------------------------------------------------------------------------------------- */

static void stft_bind(HnBind *b, void *params)
{
    HnDft *p = params;
    p->onesided = hn_bind_bool(b, "onesided", TRUE);
}

/* Points of each piece: what the input says, else as many as the window has, else the whole signal. */
static HnDim frame_known(HnInfer *x)
{
    const HnDim window = hn_infer_rank(x, HN_STFT_WINDOW) == 1 ? hn_infer_dim(x, HN_STFT_WINDOW, 0) : hn_dim_unknown();
    if (hn_infer_has(x, HN_STFT_LENGTH)) {
        const HnDim n = scalar_dim(x, HN_STFT_LENGTH);
        if (hn_dim_differ(n, window))
            hn_infer_fail(x, HN_ERROR_SHAPE, "the window is not as long as a frame");
        return n.known ? n : hn_infer_has(x, HN_STFT_WINDOW) && window.known ? window : n;
    }
    return hn_infer_has(x, HN_STFT_WINDOW) ? window : hn_infer_dim(x, 0, 1);
}

static void stft_infer(HnInfer *x)
{
    const HnDft *p = x->params;
    const int rank = hn_infer_rank(x, 0), window = hn_infer_rank(x, HN_STFT_WINDOW);
    if (rank >= 0 && rank != 2 && rank != 3)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the signal has %d dimensions instead of 3", rank);
    if (window >= 0 && window != 1)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the window has %d dimensions instead of 1", window);
    HnDim dims[] = { hn_dim_unknown(), hn_dim_unknown(), hn_dim_unknown(), hn_dim(2) };
    if (rank >= 2 && x->error == NULL) {
        const HnDim n = frame_known(x), step = scalar_dim(x, HN_STFT_STEP), all = hn_infer_dim(x, 0, 1);
        if (rank == 3)
            check_parts(x, p->onesided);
        if ((n.known && n.n < 1) || (step.known && step.n < 1))
            hn_infer_fail(x, HN_ERROR_VALUE, "frames cannot have a length of %" PRId64 " and a step of %" PRId64,
                          n.known ? n.n : 1, step.known ? step.n : 1);
        else if (n.known && all.known && all.n < n.n)
            hn_infer_fail(x, HN_ERROR_SHAPE, "the signal is shorter than a frame");
        dims[0] = hn_infer_dim(x, 0, 0);
        dims[1] = hn_dim_add(hn_dim_floor_div(hn_dim_sub(all, n), step), hn_dim(1));
        dims[2] = bins_of(n, p->onesided);
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 4, dims);
}

/* Step and length; FALSE: failed. */
static gboolean stft_setting(HnEval *e, int64_t *step, int64_t *length)
{
    const HnDft *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *window = hn_eval_in(e, HN_STFT_WINDOW);
    const int64_t parts = x->ndim == 3 ? x->dims[2] : 1;
    if ((x->ndim != 2 && x->ndim != 3) || (parts != 1 && parts != 2) || (window != NULL && window->ndim != 1)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input is not a signal of real or complex numbers, or the window is none");
        return FALSE;
    }
    if (p->onesided && parts == 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "one half of the spectrum is enough for a real signal only");
        return FALSE;
    }
    *length = window != NULL ? window->dims[0] : x->dims[1];
    if (!hn_eval_int(e, HN_STFT_STEP, step) ||
        (hn_eval_in(e, HN_STFT_LENGTH) != NULL && !hn_eval_int(e, HN_STFT_LENGTH, length)))
        return FALSE;
    if (*step < 1 || *length < 1)
        hn_eval_fail(e, HN_ERROR_VALUE, "frames cannot have a length of %" PRId64 " and a step of %" PRId64, *length,
                     *step);
    else if (window != NULL && window->dims[0] != *length)
        hn_eval_fail(e, HN_ERROR_SHAPE, "the window is not as long as a frame");
    else if (*length > x->dims[1])
        hn_eval_fail(e, HN_ERROR_SHAPE, "the signal is shorter than a frame");
    return e->error == NULL;
}

static void stft_frame(HnEval *e, Line *l, int64_t first, int64_t frame, int64_t bins)
{
    const HnTensor *x = e->in[0], *window = hn_eval_in(e, HN_STFT_WINDOW);
    for (int64_t j = 0; j < l->f.n; j++) {
        const double w = window != NULL ? hn_tensor_get_f64(window, j) : 1;
        load_point(x, first + j, x->ndim == 3 ? (int)x->dims[2] : 1, l->z + 2 * j);
        l->z[2 * j] *= w;
        l->z[2 * j + 1] *= w;
    }
    hn_fourier_run(&l->f, l->z, FALSE);
    for (int64_t k = 0; k < 2 * bins; k++)
        hn_tensor_set_f64(e->out[0], frame * 2 * bins + k, l->z[k]);
}

static void stft_ref(HnEval *e)
{
    const HnDft *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t step, length;
    Line l;
    if (!stft_setting(e, &step, &length) || !line_new(e, &l, length))
        return;
    const int64_t frames = (x->dims[1] - length) / step + 1, bins = hn_dft_bins(length, p->onesided);
    if (hn_eval_out(e, 0, x->dtype, 4, (int64_t[]){ x->dims[0], frames, bins, 2 }) != NULL)
        for (int64_t f = 0; f < x->dims[0] * frames; f++)
            stft_frame(e, &l, f / frames * x->dims[1] + f % frames * step, f, bins);
    hn_eval_scratch_free(e, l.memory);
}

static void stft_cost(const HnInfer *x, HnCost *c)
{
    if (x->out[0] != NULL)
        c->flops = transform_flops(hn_type_count(x->out[0]) / 2, 2 * (double)x->out[0]->dims[2].n);
}

static void stft_unbind(HnUnbind *u)
{
    if (u->to < 17)
        hn_unbind_settle(u, 0);
}

/* Signals along one axis, which are samples' own. */
void hn_dft_batch(HnBatch *b)
{
    const HnDft *p = b->params;
    const int rank = hn_batch_rank_was(b, 0);
    int64_t axis = p->axis;
    int n;
    if (p->by_input && hn_batch_has(b, HN_DFT_AXIS) && !hn_batch_ints(b, HN_DFT_AXIS, &axis, 1, &n)) {
        hn_batch_fail(b, "its axis is not constant");
        return;
    }
    const int a = hn_batch_axis(axis, rank);
    if (a < 0 || hn_batch_split(b, HN_DFT_LENGTH)) {
        hn_batch_fail(b, a < 0 ? "its axis is not known" : "its length differs from sample to sample");
        return;
    }
    if (hn_batch_in_front(b, 0) || b->in[0].at.axis == a || b->in[0].at.axis == rank - 1) {
        axis = a + 1;
        if (!hn_batch_lift(b, 0, 0))
            return;
        if (p->by_input)
            set_axis(b->node, hn_batch_weight(b, hn_tensor_scalar_i64(axis)));
        else
            hn_node_set_int(b->node, "axis", axis);
    }
    b->out[0] = b->in[0].at;
}

const HnOp hn_op_dft = {
    .name = "DFT",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 17, 20 },
    .in = "Tji",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 1,
    .unbind = dft_unbind,
    .params_size = sizeof(HnDft),
    .bind = dft_bind,
    .infer = dft_infer,
    .cost = dft_cost,
    .ref = dft_ref,
    .batch = hn_dft_batch,
    .range = { .kind = HN_R_PRODUCTS },
};

const HnOp hn_op_stft = {
    .name = "STFT",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 17 },
    .in = "TUTU",
    .out = "T",
    .T = HN_T_FLOATS,
    .U = HN_BIT(HN_I32) | HN_BIT(HN_I64),
    .min_in = 2,
    .unbind = stft_unbind,
    .params_size = sizeof(HnDft),
    .bind = stft_bind,
    .infer = stft_infer,
    .cost = stft_cost,
    .ref = stft_ref,
    .batch = hn_batch_first,
    .range = { .kind = HN_R_PRODUCTS },
};
