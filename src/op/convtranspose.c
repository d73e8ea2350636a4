/*
 * ConvTranspose: the adjoint of Conv in its input: every input element adds its multiple of the kernel to the output at
 * i * stride + k * dilation - pad.
 */
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/conv.h"
#include "op/conv_grad.h"
#include "op/index.h"
#include "op/linear.h"
#include "op/narrow.h"
#include "op/types.h"

/* Output size along an axis before padding is taken off. */
static HnDim full_size(const HnConvTranspose *p, int axis, HnDim in, HnDim kernel)
{
    const HnWindow *w = &p->window;
    HnDim one = hn_dim(1), stride = hn_dim(w->strides != NULL ? w->strides[axis] : 1);
    HnDim dilation = hn_dim(w->dilations != NULL ? w->dilations[axis] : 1);
    HnDim extra = hn_dim(p->output_padding != NULL ? p->output_padding[axis] : 0);
    HnDim reach = hn_dim_add(hn_dim_mul(hn_dim_sub(kernel, one), dilation), one);
    return hn_dim_add(hn_dim_add(hn_dim_mul(stride, hn_dim_sub(in, one)), extra), reach);
}

static HnDim out_size(const HnConvTranspose *p, int axis, HnDim in, HnDim kernel)
{
    const HnWindow *w = &p->window;
    if (p->output_shape != NULL)
        return hn_dim(p->output_shape[axis]);
    if (w->pad_mode == HN_PAD_SAME_UPPER || w->pad_mode == HN_PAD_SAME_LOWER)
        return hn_dim_mul(in, hn_dim(w->strides != NULL ? w->strides[axis] : 1));
    HnDim out = full_size(p, axis, in, kernel);
    if (w->pads != NULL)
        out = hn_dim_sub(out, hn_dim(w->pads[axis] + w->pads[w->n + axis]));
    return out;
}

/* Padding that is not given is what the full size has too much, the odd one at the end for SAME_UPPER and at the
 * beginning otherwise. (Version 1 of the specification has that the other way round in one place; nobody does it.) */
static gboolean place_axis(const HnConvTranspose *p, int i, int64_t in, int64_t kernel, HnWindowAxis *a, GError **error)
{
    const HnWindow *w = &p->window;
    HnDim full = full_size(p, i, hn_dim(in), hn_dim(kernel)), out = out_size(p, i, hn_dim(in), hn_dim(kernel));
    if (!full.known || !out.known || kernel < 1 || out.n < 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                    "size %" PRId64 " of spatial axis %d gives no output with a kernel of %" PRId64, in, i, kernel);
        return FALSE;
    }
    *a = (HnWindowAxis){ .in = out.n, .out = in, .kernel = kernel, .stride = 1, .dilation = 1 };
    a->stride = w->strides != NULL ? w->strides[i] : 1;
    a->dilation = w->dilations != NULL ? w->dilations[i] : 1;
    if (p->output_shape == NULL && w->pad_mode == HN_PAD_EXPLICIT) {
        a->pad = w->pads != NULL ? w->pads[i] : 0;
        a->pad_end = w->pads != NULL ? w->pads[w->n + i] : 0;
    } else if (p->output_shape != NULL || w->pad_mode != HN_PAD_VALID) {
        int64_t total = MAX(0, full.n - out.n);
        a->pad = w->pad_mode == HN_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        a->pad_end = total - a->pad;
    }
    return TRUE;
}

static gboolean check_lists(const HnConvTranspose *p, int n, GError **error)
{
    if (!hn_window_check(&p->window, n, error))
        return FALSE;
    if (p->n_output == 0 || p->n_output == n)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_ATTRIBUTE,
                "attributes 'output_shape' and 'output_padding' speak of %d spatial axes, the input has %d",
                p->n_output, n);
    return FALSE;
}

gboolean hn_conv_transpose_plan(const HnConvTranspose *p, int ndim, const int64_t *x, int w_ndim, const int64_t *w,
                                HnConvPlan *plan, GError **error)
{
    int64_t ignored;
    if (ndim < 3 || ndim > HN_MAX_RANK || w_ndim != ndim) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "the input has %d dimensions and the weights have %d", ndim,
                    w_ndim);
        return FALSE;
    }
    if (!check_lists(p, ndim - 2, error))
        return FALSE;
    if (x[1] != w[0] || w[0] % p->group != 0 || !hn_mul_i64(w[1], p->group, &ignored)) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                    "weights for %" PRId64 " channels do not fit %" PRId64 " channels in %" PRId64 " groups", w[0],
                    x[1], p->group);
        return FALSE;
    }
    *plan = (HnConvPlan){ .n = ndim - 2,
                          .batch = x[0],
                          .group = p->group,
                          .in_channels = w[0] / p->group,
                          .out_channels = w[1],
                          .x_plane = 1,
                          .y_plane = 1,
                          .taps = 1 };
    for (int i = 0; i < plan->n; i++) {
        HnWindowAxis *a = &plan->axis[i];
        if (p->window.kernel != NULL && p->window.kernel[i] != w[2 + i]) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                        "attribute 'kernel_shape' differs from the shape of the weights");
            return FALSE;
        }
        if (!place_axis(p, i, x[2 + i], w[2 + i], a, error))
            return FALSE;
        if (!hn_mul_i64(plan->x_plane, a->out, &plan->x_plane) || !hn_mul_i64(plan->y_plane, a->in, &plan->y_plane) ||
            !hn_mul_i64(plan->taps, a->kernel, &plan->taps)) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "the sizes of the spatial axes overflow");
            return FALSE;
        }
    }
    return TRUE;
}

/* --- the record -----------------------------------------------------------------------------------------------------
 */

static const int64_t *bind_output(HnBind *b, HnConvTranspose *p, const char *name, gboolean shape)
{
    int64_t n;
    const int64_t *v = hn_bind_ints(b, name, &n);
    int spatial = p->window.n > 0 ? p->window.n : p->n_output;
    if (n == 0)
        return NULL;
    if (shape && spatial > 0 && n == spatial + 2) { /* some writers put batch and channels in front */
        v += 2;
        n -= 2;
    }
    if (n > HN_MAX_RANK || (spatial > 0 && n != spatial)) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' has %" PRId64 " elements, which do not fit the others",
                     name, n);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        if (v[i] < 0 || v[i] > INT32_MAX) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' cannot hold %" PRId64, name, v[i]);
            return NULL;
        }
    p->n_output = (int)n;
    return v;
}

static void convtranspose_bind(HnBind *b, void *params)
{
    HnConvTranspose *p = params;
    hn_window_bind(b, &p->window, HN_WINDOW_DILATIONS);
    p->group = hn_bind_int(b, "group", 1);
    if (p->group < 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'group' cannot be %" PRId64, p->group);
    p->output_padding = bind_output(b, p, "output_padding", FALSE);
    p->output_shape = bind_output(b, p, "output_shape", TRUE);
    p->few = hn_bind_int(b, HN_CONV_FEW, 0) != 0;
}

static void convtranspose_infer(HnInfer *x)
{
    const HnConvTranspose *p = x->params;
    int rank = hn_infer_rank(x, 0), w_rank = hn_infer_rank(x, 1);
    HnDtype dtype = hn_infer_dtype(x, 0) != HN_UNDEFINED ? hn_infer_dtype(x, 0) : hn_infer_dtype(x, 1);
    HnDim dims[HN_MAX_RANK];
    if (rank >= 0 && w_rank >= 0 && rank != w_rank) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions and the weights have %d", rank, w_rank);
        return;
    }
    rank = MAX(rank, w_rank);
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, dtype);
        return;
    }
    if (rank < 3) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 3 are needed", rank);
        return;
    }
    if (!check_lists(p, rank - 2, &x->error))
        return;
    HnDim channels = hn_infer_dim(x, 0, 1);
    if (hn_dim_differ(channels, hn_infer_dim(x, 1, 0)) || (channels.known && channels.n % p->group != 0)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the weights do not fit the input's channels in %" PRId64 " groups", p->group);
        return;
    }
    dims[0] = hn_infer_dim(x, 0, 0);
    dims[1] = hn_dim_mul(hn_infer_dim(x, 1, 1), hn_dim(p->group));
    for (int i = 0; i < rank - 2; i++) {
        HnDim kernel = p->window.kernel != NULL ? hn_dim(p->window.kernel[i]) : hn_infer_dim(x, 1, 2 + i);
        dims[2 + i] = out_size(p, i, hn_infer_dim(x, 0, 2 + i), kernel);
        if (dims[2 + i].known && dims[2 + i].n < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "spatial axis %d of the output has a negative size", i);
            return;
        }
    }
    hn_infer_out(x, 0, dtype, rank, dims);
    int bias = hn_infer_rank(x, 2);
    if ((bias >= 0 && bias != 1) || hn_dim_differ(hn_infer_dim(x, 2, 0), dims[1]))
        hn_infer_fail(x, HN_ERROR_SHAPE, "the bias does not have one element per output channel");
}

static void convtranspose_cost(const HnInfer *x, HnCost *c)
{
    double taps = 1;
    for (int i = 1; i < hn_infer_rank(x, 1); i++)
        taps *= (double)hn_infer_dim(x, 1, i).n;
    c->flops = 2 * hn_type_count(x->in[0]) * taps;
}

typedef struct {
    const void *x, *w; /* an input plane; the kernel of its channel for one output channel */
    double *sum;       /* the output plane */
} Scatter;

#define DEFINE_SCATTER(T)                                                                              \
    static void scatter_##T(gpointer data, int64_t k, int64_t y, int64_t step, int64_t x, int64_t len) \
    {                                                                                                  \
        const Scatter *s = data;                                                                       \
        const T *from = (const T *)s->x + x;                                                           \
        double w = (double)((const T *)s->w)[k], *to = s->sum + y;                                     \
        for (int64_t i = 0; i < len; i++)                                                              \
            to[i * step] += w * (double)from[i];                                                       \
    }
DEFINE_SCATTER(float)
DEFINE_SCATTER(double)

static void channel_run(const HnConvPlan *p, HnDtype dtype, int64_t sample, int64_t channel, const HnTensor *x,
                        const HnTensor *w, double *sum)
{
    int64_t group = channel / p->out_channels, m = channel % p->out_channels;
    for (int64_t c = 0; c < p->in_channels; c++) {
        int64_t ic = group * p->in_channels + c;
        int64_t plane = sample * p->group * p->in_channels + ic, kernel = ic * p->out_channels + m;
#define RUN(T)                                                                                           \
    Scatter s = { (const T *)x->data + plane * p->x_plane, (const T *)w->data + kernel * p->taps, sum }; \
    hn_window_rows(p->n, p->axis, scatter_##T, &s);
        HN_FOR_FLOAT(dtype, RUN)
#undef RUN
    }
}

static void convtranspose_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *w = hn_eval_in(e, 1), *bias = hn_eval_in(e, 2);
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK];
    if (!hn_conv_transpose_plan(e->params, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error))
        return;
    hn_conv_out_dims(&plan, TRUE, dims);
    if (bias != NULL && (bias->ndim != 1 || bias->dims[0] != dims[1])) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the bias does not have one element per output channel");
        return;
    }
    if (w->dtype != x->dtype || (bias != NULL && bias->dtype != x->dtype)) {
        hn_eval_fail(e, HN_ERROR_TYPE, "input, weights and bias are not of one type");
        return;
    }
    void *y = hn_eval_out(e, 0, x->dtype, x->ndim, dims);
    double *sum = y != NULL ? hn_eval_scratch(e, plan.y_plane, sizeof *sum) : NULL;
    if (sum == NULL)
        return;
    gboolean empty = x->n == 0 || w->n == 0;
    for (int64_t i = 0; i < plan.batch * dims[1] && plan.y_plane > 0; i++) {
        int64_t channel = i % dims[1];
        double start = bias != NULL ? hn_tensor_get_f64(bias, channel) : 0;
        for (int64_t k = 0; k < plan.y_plane; k++)
            sum[k] = start;
        if (!empty)
            channel_run(&plan, x->dtype, i / dims[1], channel, x, w, sum);
#define RUN(T)                                 \
    for (int64_t k = 0; k < plan.y_plane; k++) \
        ((T *)y)[i * plan.y_plane + k] = (T)sum[k];
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, sum);
}

static void convtranspose_linear(const void *params, HnLinearView *v)
{
    const HnConvTranspose *p = params;
    v->groups = p->group;
    v->window = &p->window;
    v->adjoint = TRUE;
}

static gboolean convtranspose_narrow(const HnNarrow *x)
{
    return hn_narrow_groups(x, "group", ((const HnConvTranspose *)x->params)->group);
}

/* The convolution that this one is the adjoint of. */
static void convtranspose_grad(HnTape *t)
{
    int64_t x[HN_MAX_RANK], w[HN_MAX_RANK];
    HnConvPlan p;
    const int rank = hn_tape_rank(t, 0);
    if (!hn_tape_dims(t, 0, x) || !hn_tape_dims(t, 1, w)) {
        hn_tape_refuse(t, "sizes are not known");
        return;
    }
    if (!hn_conv_transpose_plan(t->params, rank, x, hn_tape_rank(t, 1), w, &p, &t->error))
        return;
    HnValue *dy = hn_tape_dy(t, 0), *in[] = { dy, hn_tape_in(t, 0), hn_tape_in(t, 1) };
    for (int i = 0; i < p.n; i++)
        p.axis[i].pad_end = MAX(hn_window_overhang(&p.axis[i]), 0);
    if (hn_tape_needs(t, 0)) {
        HnValue *dx = hn_node_out(hn_conv_backward(t, &p, "Conv", NULL, 2, (HnValue *[]){ dy, in[2] }, 1), 0);
        for (int i = 0; i < p.n; i++) /* windows that lie in what output_padding added are none of this one */
            if (-hn_window_overhang(&p.axis[i]) >= p.axis[i].stride)
                dx = hn_build_slice(t->build, dx, 2 + i, 0, p.axis[i].out);
        hn_tape_give(t, 0, dx);
    }
    if (hn_tape_needs(t, 1))
        hn_tape_give(t, 1, hn_node_out(hn_conv_backward(t, &p, "ConvWeightGrad", HN_DOMAIN_INTERNAL, 3, in, 1), 0));
    hn_conv_bias_grad(t);
}

const HnOp hn_op_convtranspose = {
    .name = "ConvTranspose",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 11, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 2,
    .params_size = sizeof(HnConvTranspose),
    .bind = convtranspose_bind,
    .infer = convtranspose_infer,
    .cost = convtranspose_cost,
    .ref = convtranspose_ref,
    .grad = convtranspose_grad,
    .batch = hn_batch_first,
    .linear = { .weight = 1, .bias = 2, .out = 1, .in = 0, .x_axis = 1, .y_axis = 1, .read = convtranspose_linear },
    .quant = { .kind = HN_Q_WEIGHTED },
    .narrow = convtranspose_narrow,
    .range = { .kind = HN_R_PRODUCTS, .addends = 1 << 2 },
};
