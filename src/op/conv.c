/*
 * Conv: y[n,m,o...] = b[m] + sum over input channels of m's group and taps k of w[m,c,k...] *
 * x[n,c,o*stride+k*dilation-pad].
 */
#include "op/conv.h"

#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/conv_grad.h"
#include "op/gemm.h"
#include "op/index.h"
#include "op/linear.h"
#include "op/narrow.h"

/* --- geometry ---------------------------------------------------------------------------------------------------- */

static gboolean products(HnConvPlan *plan, GError **error)
{
    plan->x_plane = plan->y_plane = plan->taps = 1;
    for (int i = 0; i < plan->n; i++) {
        const HnWindowAxis *a = &plan->axis[i];
        if (!hn_mul_i64(plan->x_plane, a->in, &plan->x_plane) || !hn_mul_i64(plan->y_plane, a->out, &plan->y_plane) ||
            !hn_mul_i64(plan->taps, a->kernel, &plan->taps)) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "the sizes of the spatial axes overflow");
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean check_ranks(const HnWindow *window, int ndim, int w_ndim, const int64_t *w, GError **error)
{
    if (ndim < 3 || ndim > HN_MAX_RANK || w_ndim != ndim) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "the input has %d dimensions and the weights have %d", ndim,
                    w_ndim);
        return FALSE;
    }
    if (!hn_window_check(window, ndim - 2, error))
        return FALSE;
    for (int i = 0; window->kernel != NULL && i < window->n; i++)
        if (window->kernel[i] != w[2 + i]) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                        "attribute 'kernel_shape' says %" PRId64 " where the weights have %" PRId64, window->kernel[i],
                        w[2 + i]);
            return FALSE;
        }
    return TRUE;
}

static gboolean check_channels(int64_t x_channels, int64_t split, int64_t per_group, int64_t group, GError **error)
{
    int64_t all;
    if (split % group == 0 && hn_mul_i64(per_group, group, &all) && all == x_channels)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                "weights for %" PRId64 " x %" PRId64 " channels do not fit %" PRId64 " channels in %" PRId64 " groups",
                split, per_group, x_channels, group);
    return FALSE;
}

gboolean hn_conv_plan(const HnConv *p, int ndim, const int64_t *x, int w_ndim, const int64_t *w, HnConvPlan *plan,
                      GError **error)
{
    if (!check_ranks(&p->window, ndim, w_ndim, w, error) || !check_channels(x[1], w[0], w[1], p->group, error))
        return FALSE;
    plan->n = ndim - 2;
    plan->batch = x[0];
    plan->group = p->group;
    plan->in_channels = w[1];
    plan->out_channels = w[0] / p->group;
    return hn_window_place(&p->window, plan->n, x + 2, w + 2, plan->axis, error) && products(plan, error);
}

void hn_conv_out_dims(const HnConvPlan *plan, gboolean transposed, int64_t *dims)
{
    dims[0] = plan->batch;
    dims[1] = plan->group * plan->out_channels;
    for (int i = 0; i < plan->n; i++)
        dims[2 + i] = transposed ? plan->axis[i].in : plan->axis[i].out;
}

/* --- bind and infer ---------------------------------------------------------------------------------------------- */

void hn_conv_bind(HnBind *b, void *params)
{
    HnConv *p = params;
    hn_window_bind(b, &p->window, HN_WINDOW_DILATIONS);
    p->group = hn_bind_int(b, "group", 1);
    if (p->group < 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'group' cannot be %" PRId64, p->group);
    p->few = hn_bind_int(b, HN_CONV_FEW, 0) != 0;
}

void hn_conv_infer(HnInfer *x, int ix, int iw, HnDtype dtype)
{
    const HnConv *p = x->params;
    int rank = hn_infer_rank(x, ix), w_rank = hn_infer_rank(x, iw);
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
    if (!hn_window_check(&p->window, rank - 2, &x->error))
        return;
    HnDim channels = hn_infer_dim(x, ix, 1), split = hn_infer_dim(x, iw, 0), per_group = hn_infer_dim(x, iw, 1);
    if (hn_dim_differ(channels, hn_dim_mul(per_group, hn_dim(p->group))) || (split.known && split.n % p->group != 0)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the weights do not fit the input's channels in %" PRId64 " groups", p->group);
        return;
    }
    dims[0] = hn_infer_dim(x, ix, 0);
    dims[1] = split;
    for (int i = 0; i < rank - 2; i++) {
        HnDim in = hn_infer_dim(x, ix, 2 + i), kernel = hn_infer_dim(x, iw, 2 + i);
        if (p->window.kernel != NULL && hn_dim_differ(kernel, hn_dim(p->window.kernel[i]))) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "attribute 'kernel_shape' differs from the shape of the weights");
            return;
        }
        if (p->window.kernel != NULL)
            kernel = hn_dim(p->window.kernel[i]);
        HnDim out = kernel.known ? hn_window_out(&p->window, i, in, kernel.n) : hn_dim_unknown();
        if (out.known && out.n < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "a window of %" PRId64 " does not fit into spatial axis %d", kernel.n, i);
            return;
        }
        dims[2 + i] = out;
    }
    hn_infer_out(x, 0, dtype, rank, dims);
}

static void conv_infer(HnInfer *x)
{
    HnDtype dtype = hn_infer_dtype(x, 0) != HN_UNDEFINED ? hn_infer_dtype(x, 0) : hn_infer_dtype(x, 1);
    hn_conv_infer(x, 0, 1, dtype);
    int rank = hn_infer_rank(x, 2);
    if ((rank >= 0 && rank != 1) || hn_dim_differ(hn_infer_dim(x, 2, 0), hn_infer_dim(x, 1, 0)))
        hn_infer_fail(x, HN_ERROR_SHAPE, "the bias does not have one element per output channel");
}

static void conv_cost(const HnInfer *x, HnCost *c)
{
    double taps = 1;
    for (int i = 1; i < hn_infer_rank(x, 1); i++)
        taps *= (double)hn_infer_dim(x, 1, i).n;
    c->flops = 2 * hn_type_count(x->out[0]) * taps;
}

/* --- ref: rows of the input gathered into a matrix, multiplied by the weights ---------------------------------------
 */

enum { COLUMNS = 1 << 20 }; /* elements of the matrix that are aimed at: some MB */

typedef struct {
    const void *x; /* an input plane */
    void *col;     /* [taps, width] of its channel */
    int64_t width;
} Columns;

#define DEFINE_COLUMNS(T)                                                                              \
    static void columns_##T(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len) \
    {                                                                                                  \
        const Columns *c = data;                                                                       \
        const T *from = (const T *)c->x + x;                                                           \
        T *to = (T *)c->col + k * c->width + y;                                                        \
        if (step == 1)                                                                                 \
            memcpy(to, from, (size_t)len * sizeof(T));                                                 \
        else                                                                                           \
            for (int64_t i = 0; i < len; i++)                                                          \
                to[i] = from[i * step];                                                                \
    }
DEFINE_COLUMNS(uint32_t)
DEFINE_COLUMNS(uint64_t)

static gboolean is_pointwise(const HnConvPlan *plan)
{
    for (int i = 0; i < plan->n; i++) {
        const HnWindowAxis *a = &plan->axis[i];
        if (a->kernel != 1 || a->stride != 1 || a->pad != 0 || a->out != a->in)
            return FALSE;
    }
    return TRUE;
}

/* The output rows [from, from + rows) along the first axis, of group g of sample s. */
typedef struct {
    int64_t s, g, from, rows, row_size;
} Part;

static void part_run(const HnConvPlan *plan, HnDtype dtype, const char *x, const char *w, const char *bias, char *y,
                     char *col, const Part *t)
{
    int64_t size = (int64_t)hn_dtype_size(dtype), depth = plan->in_channels * plan->taps;
    int64_t first_in = (t->s * plan->group + t->g) * plan->in_channels, m = t->g * plan->out_channels;
    const char *xg = x + first_in * plan->x_plane * size;
    char *yg = y + ((t->s * plan->group * plan->out_channels + m) * plan->y_plane + t->from * t->row_size) * size;
    HnGemm gemm = { .m = plan->out_channels, .n = t->rows * t->row_size, .k = depth, .alpha = 1, .beta = 1 };
    gemm.a = w + m * depth * size;
    gemm.a_row = depth;
    gemm.a_col = gemm.b_col = gemm.add_row = 1;
    gemm.c = yg;
    gemm.c_row = plan->y_plane;
    gemm.add = bias != NULL ? bias + m * size : NULL;
    if (col == NULL) {
        gemm.b = xg;
        gemm.b_row = plan->x_plane;
    } else {
        HnWindowAxis axis[HN_MAX_RANK];
        memcpy(axis, plan->axis, (size_t)plan->n * sizeof *axis);
        axis[0].pad -= t->from * axis[0].stride;
        axis[0].out = t->rows;
        memset(col, 0, (size_t)(depth * gemm.n * size));
        for (int64_t c = 0; c < plan->in_channels; c++) {
            Columns columns = { xg + c * plan->x_plane * size, col + c * plan->taps * gemm.n * size, gemm.n };
            hn_window_rows(plan->n, axis, size == 4 ? columns_uint32_t : columns_uint64_t, &columns);
        }
        gemm.b = col;
        gemm.b_row = gemm.n;
    }
    hn_gemm(dtype, &gemm);
}

gboolean hn_conv_run(HnEval *e, const HnConvPlan *plan, HnDtype dtype, const void *x, const void *w, const void *bias,
                     void *y)
{
    int64_t depth, rows = plan->axis[0].out, row_size = rows > 0 ? plan->y_plane / rows : 0;
    if (plan->batch == 0 || plan->out_channels == 0 || plan->y_plane == 0)
        return TRUE;
    gboolean empty = plan->in_channels == 0 || plan->x_plane == 0;
    if (!hn_mul_i64(plan->in_channels, plan->taps, &depth)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the size of the kernel overflows");
        return FALSE;
    }
    HnConvPlan bare = *plan; /* without input only the bias is left */
    if (empty) {
        bare.in_channels = bare.taps = 0;
        depth = 0;
    }
    char *col = NULL;
    if (!empty && !is_pointwise(plan)) {
        int64_t most = COLUMNS / MAX(1, depth) / row_size, elems;
        rows = CLAMP(most, 1, rows);
        if (!hn_mul_i64(depth, rows * row_size, &elems)) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "the size of the kernel overflows");
            return FALSE;
        }
        col = hn_eval_scratch(e, elems, hn_dtype_size(dtype));
        if (col == NULL)
            return FALSE;
    }
    for (int64_t s = 0; s < plan->batch; s++)
        for (int64_t g = 0; g < plan->group; g++)
            for (int64_t from = 0; from < plan->axis[0].out; from += rows) {
                Part part = { s, g, from, MIN(rows, plan->axis[0].out - from), row_size };
                part_run(&bare, dtype, x, w, bias, y, col, &part);
            }
    hn_eval_scratch_free(e, col);
    return TRUE;
}

static void conv_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *w = hn_eval_in(e, 1), *bias = hn_eval_in(e, 2);
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK];
    if (!hn_conv_plan(e->params, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error))
        return;
    hn_conv_out_dims(&plan, FALSE, dims);
    if (bias != NULL && (bias->ndim != 1 || bias->dims[0] != dims[1])) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the bias does not have one element per output channel");
        return;
    }
    if (w->dtype != x->dtype || (bias != NULL && bias->dtype != x->dtype)) {
        hn_eval_fail(e, HN_ERROR_TYPE, "input, weights and bias are not of one type");
        return;
    }
    void *y = hn_eval_out(e, 0, x->dtype, x->ndim, dims);
    if (y != NULL)
        hn_conv_run(e, &plan, x->dtype, x->data, w->data, bias != NULL ? bias->data : NULL, y);
}

static void conv_linear(const void *params, HnLinearView *v)
{
    const HnConv *p = params;
    v->groups = p->group;
    v->window = &p->window;
}

static gboolean conv_narrow(const HnNarrow *x)
{
    return hn_narrow_groups(x, "group", ((const HnConv *)x->params)->group);
}

/* dx is the transposed convolution of dy, as large as x was: what strides leave over is padded at the end. */
static void conv_grad(HnTape *t)
{
    int64_t x[HN_MAX_RANK], w[HN_MAX_RANK], over[HN_MAX_RANK];
    HnConvPlan p;
    const int rank = hn_tape_rank(t, 0);
    if (!hn_tape_dims(t, 0, x) || !hn_tape_dims(t, 1, w)) {
        hn_tape_refuse(t, "sizes are not known");
        return;
    }
    if (!hn_conv_plan(t->params, rank, x, hn_tape_rank(t, 1), w, &p, &t->error))
        return;
    HnValue *dy = hn_tape_dy(t, 0), *in[] = { hn_tape_in(t, 0), dy, hn_tape_in(t, 1) };
    if (hn_tape_needs(t, 0)) {
        HnNode *dx = hn_conv_backward(t, &p, "ConvTranspose", NULL, 2, (HnValue *[]){ dy, in[2] }, 1);
        for (int i = 0; i < p.n; i++)
            over[i] = -hn_window_overhang(&p.axis[i]) + p.axis[i].pad_end;
        hn_node_set_ints(dx, "output_padding", over, p.n);
        hn_tape_give(t, 0, hn_node_out(dx, 0));
    }
    if (!hn_tape_needs(t, 1)) {
        hn_conv_bias_grad(t);
        return;
    }
    const gboolean bias = hn_tape_needs(t, 2);
    HnNode *dw = hn_conv_backward(t, &p, "ConvWeightGrad", HN_DOMAIN_INTERNAL, 3, in, bias ? 2 : 1);
    hn_tape_give(t, 1, hn_node_out(dw, 0));
    if (bias)
        hn_tape_give(t, 2, hn_node_out(dw, 1));
}

const HnOp hn_op_conv = {
    .name = "Conv",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 11, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 2,
    .params_size = sizeof(HnConv),
    .bind = hn_conv_bind,
    .infer = conv_infer,
    .cost = conv_cost,
    .ref = conv_ref,
    .grad = conv_grad,
    .batch = hn_batch_first,
    .linear = { .weight = 1, .bias = 2, .out = 0, .in = 1, .x_axis = 1, .y_axis = 1, .read = conv_linear },
    .quant = { .kind = HN_Q_WEIGHTED },
    .narrow = conv_narrow,
    .range = { .kind = HN_R_PRODUCTS, .addends = 1 << 2 },
};
