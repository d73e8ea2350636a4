/*
 * Products of bytes, exact: MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv, QuantMatMul and QuantConv. Scales
 * and zero points are read on the device, whether they are known before or not.
 */
#include <string.h>

#include "cuda/core/cuda_kernel.h"
#include "cuda/int8/cuda_int8_product_args.h"
#include "op/conv.h"
#include "op/index.h"
#include "op/quantlinear.h"
#include "run/int8_forms.h"

#define THREADS 256
#define TILE 64
#define FEW 16   /* rows of a smaller tile */
#define DIRECT 4 /* rows of a group, at most, that threads compute one by one */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaInt8Args args;
} Product;

static gboolean is_byte(const HnTensor *t)
{
    return t->dtype == HN_U8 || t->dtype == HN_I8;
}

/* One element, or one for each of n lines where that is not 0. */
static gboolean one_or(const HnTensor *t, int64_t n)
{
    return t == NULL || t->n == 1 || (n > 0 && t->ndim == 1 && t->n == n);
}

static gboolean is_zero_of(const HnTensor *zero, const HnTensor *t)
{
    return zero == NULL || zero->dtype == t->dtype;
}

/* --- matrices ----------------------------------------------------------------------------------------------------- */

/* Stacks that advance alike become one. FALSE: more kinds of them than there is room for. */
static gboolean set_stacks(HnCudaInt8Args *a, int rank, const int64_t *dims, const int64_t *left, const int64_t *right)
{
    a->stack_rank = 0;
    a->units = 1;
    for (int i = 0; i < rank; i++) {
        const int last = a->stack_rank - 1;
        a->units *= dims[i];
        if (dims[i] == 1)
            continue;
        if (last >= 0 && a->row_stride[last] == dims[i] * left[i] && a->col_stride[last] == dims[i] * right[i]) {
            a->stack[last] *= dims[i];
            a->row_stride[last] = left[i];
            a->col_stride[last] = right[i];
            continue;
        }
        if (a->stack_rank == HN_CUDA_INT8_STACK)
            return FALSE;
        a->stack[a->stack_rank] = dims[i];
        a->row_stride[a->stack_rank] = left[i];
        a->col_stride[a->stack_rank++] = right[i];
    }
    return TRUE;
}

/* Of the axes of t but the last two, through an output with `stacks` of them; `each`: elements of a matrix. */
static void stack_strides(const HnTensor *t, int stacks, int64_t each, int64_t *strides)
{
    for (int i = stacks - 1, j = t->ndim - 3; i >= 0; i--, j--) {
        strides[i] = j >= 0 && t->dims[j] != 1 ? each : 0;
        if (j >= 0)
            each *= t->dims[j];
    }
}

static gboolean place_matrices(const HnStep *s, const HnInt8Inputs *form, HnCudaInt8Args *a)
{
    const HnTensor *x = hn_int8_input(s, form->x), *w = hn_int8_input(s, form->w), *y = s->out[0].slot->tensor;
    const gboolean turned = form->internal && ((const HnQuantProduct *)s->params)->turned;
    int64_t left[HN_MAX_RANK], right[HN_MAX_RANK];
    if (x->ndim < 1 || w->ndim < 1 || (turned && w->ndim != 2))
        return FALSE;
    a->k = x->dims[x->ndim - 1];
    a->n = w->ndim == 1 ? 1 : w->dims[turned ? 0 : w->ndim - 1];
    a->m = x->ndim == 1 ? 1 : x->dims[x->ndim - 2];
    if ((w->ndim == 1 ? w->dims[0] : w->dims[turned ? 1 : w->ndim - 2]) != a->k)
        return FALSE;
    if (w->ndim <= 2) { /* all rows meet the same matrix */
        a->m = hn_span(x->dims, 0, x->ndim - 1);
        return set_stacks(a, 0, NULL, NULL, NULL);
    }
    const int stacks = y->ndim - 1 - (x->ndim > 1);
    stack_strides(x, stacks, a->m * a->k, left);
    stack_strides(w, stacks, a->k * a->n, right);
    return set_stacks(a, stacks, y->dims, left, right);
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

static gboolean place_windows(const HnStep *s, const HnInt8Inputs *form, HnCudaInt8Args *a)
{
    const HnTensor *x = hn_int8_input(s, form->x), *w = hn_int8_input(s, form->w);
    HnConvPlan plan;
    const HnConv *conv = form->internal ? &((const HnQuantProduct *)s->params)->conv : s->params;
    if (!hn_conv_plan(conv, x->ndim, x->dims, w->ndim, w->dims, &plan, NULL) || plan.n > HN_CUDA_INT8_AXES)
        return FALSE;
    HnWindowAxis axis[HN_CUDA_INT8_AXES];
    hn_window_axes(plan.n, plan.axis, HN_CUDA_INT8_AXES, axis);
    for (int i = 0; i < HN_CUDA_INT8_AXES; i++) {
        const HnWindowAxis *v = &axis[i];
        const int64_t sizes[] = { v->in, v->out, v->kernel, v->stride, v->dilation, v->pad };
        for (guint k = 0; k < G_N_ELEMENTS(sizes); k++)
            if (ABS(sizes[k]) > 1 << 24)
                return FALSE;
        if ((v->out - 1) * v->stride > 1 << 29 || v->kernel * v->dilation > 1 << 29)
            return FALSE;
        a->in[i] = (int32_t)v->in;
        a->out[i] = (int32_t)v->out;
        a->kernel[i] = (int32_t)v->kernel;
        a->stride[i] = (int32_t)v->stride;
        a->dilation[i] = (int32_t)v->dilation;
        a->pad[i] = (int32_t)v->pad;
    }
    a->m = plan.out_channels;
    a->k = plan.in_channels * plan.taps;
    a->n = plan.batch * plan.y_plane;
    a->units = plan.group;
    a->x_plane = plan.x_plane;
    a->y_plane = plan.y_plane;
    a->in_channels = plan.in_channels;
    return TRUE;
}

static gboolean place(const HnStep *s, const HnInt8Inputs *form, HnCudaInt8Args *a)
{
    return form->matrix ? place_matrices(s, form, a) : place_windows(s, form, a);
}

/* --- the step ----------------------------------------------------------------------------------------------------- */

static const char *product_reject(const HnStep *s)
{
    const HnInt8Inputs *form = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, form->x), *w = hn_int8_input(s, form->w), *y = s->out[0].slot->tensor;
    const HnTensor *bias = hn_int8_input(s, form->bias);
    HnCudaInt8Args a;
    if (!is_byte(x) || !is_byte(w) || (!is_byte(y) && y->dtype != HN_F32 && y->dtype != HN_I32))
        return "only 8-bit integers";
    if (!is_zero_of(hn_int8_input(s, form->x_zero), x) || !is_zero_of(hn_int8_input(s, form->w_zero), w) ||
        (form->y_zero >= 0 && !is_zero_of(hn_int8_input(s, form->y_zero), y)))
        return "a zero point of another type";
    if (y->n == 0 || x->n == 0 || w->n == 0)
        return "nothing to compute";
    if (!place(s, form, &a))
        return "shapes that do not fit, more than 3 spatial axes, or stacks that broadcast along many axes";
    const int64_t rows = form->matrix ? a.m : 0, channels = form->matrix ? a.n : a.m * a.units;
    if (!one_or(hn_int8_input(s, form->x_zero), rows) || !one_or(hn_int8_input(s, form->x_scale), rows) ||
        !one_or(hn_int8_input(s, form->y_scale), 0) || !one_or(hn_int8_input(s, form->y_zero), 0))
        return "scales or zero points of data of other sizes";
    if (!one_or(hn_int8_input(s, form->w_zero), channels) || !one_or(hn_int8_input(s, form->w_scale), channels))
        return "scales or zero points of weights of other sizes";
    const int scales[] = { form->x_scale, form->w_scale, form->y_scale };
    for (guint i = 0; i < G_N_ELEMENTS(scales); i++)
        if (hn_int8_input(s, scales[i]) != NULL && !hn_cuda_is_float(hn_int8_input(s, scales[i])->dtype))
            return "only scales of f32, f16, bf16";
    if (bias != NULL && (bias->ndim != 1 || bias->n != channels || (bias->dtype != HN_I32 && bias->dtype != HN_F32)))
        return "a bias of another size than the output's channels";
    return NULL;
}

static int32_t scale_type(const HnTensor *t)
{
    return t == NULL || t->dtype == HN_F32 ? HN_CUDA_SCALE_F32
           : t->dtype == HN_F16            ? HN_CUDA_SCALE_F16
                                           : HN_CUDA_SCALE_BF16;
}

static int32_t flip_of(const HnTensor *t)
{
    return t->dtype == HN_U8 ? 0x80 : 0;
}

static int32_t is_each(const HnTensor *t)
{
    return t != NULL && t->n > 1;
}

static void set_finish(const HnStep *s, const HnInt8Inputs *form, HnCudaInt8Finish *f)
{
    const HnTensor *y = s->out[0].slot->tensor, *bias = hn_int8_input(s, form->bias);
    f->how = y->dtype == HN_I32   ? HN_CUDA_SUMS
             : y->dtype == HN_F32 ? HN_CUDA_SUMS_NUMBERS
             : form->internal     ? HN_CUDA_SUMS_BYTES
                                  : HN_CUDA_SUMS_QLINEAR;
    f->y_signed = y->dtype == HN_I8;
    f->nan_is_zero = form->matrix && !form->internal;
    f->bias_is_f32 = bias != NULL && bias->dtype == HN_F32;
    f->x_scale_type = scale_type(hn_int8_input(s, form->x_scale));
    f->w_scale_type = scale_type(hn_int8_input(s, form->w_scale));
    f->y_scale_type = scale_type(hn_int8_input(s, form->y_scale));
    f->x_scale_each = is_each(hn_int8_input(s, form->x_scale));
    f->w_scale_each = is_each(hn_int8_input(s, form->w_scale));
    if (form->internal) {
        f->lo = ((const HnQuantProduct *)s->params)->lo;
        f->hi = ((const HnQuantProduct *)s->params)->hi;
    }
}

static gboolean product_prepare(HnStep *s, GError **error)
{
    const HnInt8Inputs *form = hn_int8_inputs(s);
    Product *p = g_new0(Product, 1);
    HnCudaInt8Args *a = &p->args;
    s->state = p;
    place(s, form, a);
    set_finish(s, form, &a->finish);
    const int rows = form->matrix ? form->x : form->w, cols = form->matrix ? form->w : form->x;
    a->row_flip = flip_of(hn_int8_input(s, rows));
    a->col_flip = flip_of(hn_int8_input(s, cols));
    a->row_zero_each = is_each(hn_int8_input(s, form->matrix ? form->x_zero : form->w_zero));
    a->col_zero_each = is_each(hn_int8_input(s, form->matrix ? form->w_zero : form->x_zero));
    if (!form->matrix && a->units > 1 && a->m <= DIRECT) {
        p->grid = hn_cuda_loop(s, s->out[0].slot->tensor->n, THREADS);
        p->f = hn_cuda_named(s, "cuda_int8_product", "int8_direct", error);
        return p->f != NULL;
    }
    const gboolean few = a->m <= FEW, turned = form->internal && ((const HnQuantProduct *)s->params)->turned;
    a->row_tiles = few ? 1 : (a->m + TILE - 1) / TILE;
    a->col_tiles = (a->n + TILE - 1) / TILE;
    p->grid = hn_cuda_row(a->units * a->row_tiles * a->col_tiles, THREADS);
    static const char *const names[3][2] = { { "int8_straight", "int8_straight_few" },
                                             { "int8_turned", "int8_turned_few" },
                                             { "int8_windows", "int8_windows_few" } };
    p->f = hn_cuda_named(s, "cuda_int8_product", names[!form->matrix ? 2 : turned ? 1 : 0][few], error);
    return p->f != NULL;
}

static uint64_t address(const HnStep *s, int i)
{
    return i >= 0 ? hn_cuda_in_address(s, i) : 0;
}

static gboolean product_run(HnStep *s, GError **error)
{
    const HnInt8Inputs *form = hn_int8_inputs(s);
    const Product *p = s->state;
    HnCudaInt8Args a = p->args;
    a.rows = address(s, form->matrix ? form->x : form->w);
    a.cols = address(s, form->matrix ? form->w : form->x);
    a.row_zero = address(s, form->matrix ? form->x_zero : form->w_zero);
    a.col_zero = address(s, form->matrix ? form->w_zero : form->x_zero);
    a.finish.y = hn_cuda_out_address(s, 0);
    a.finish.x_scale = address(s, form->x_scale);
    a.finish.w_scale = address(s, form->w_scale);
    a.finish.y_scale = address(s, form->y_scale);
    a.finish.y_zero = address(s, form->y_zero);
    a.finish.bias = address(s, form->bias);
    a.finish.exchanges = s->table != NULL;
    if (s->table != NULL)
        memcpy(a.finish.table, s->table, sizeof a.finish.table);
    return hn_cuda_launch(s, p->f, p->grid, &a, error);
}

static const HnKernel product = {
    .name = "cuda.int8_product",
    .reject = product_reject,
    .prepare = product_prepare,
    .run = product_run,
    .release = hn_cuda_release,
    .exchanges = TRUE,
};

const HnKernel *const hn_cuda_matmulinteger[] = { &product, NULL };
const HnKernel *const hn_cuda_qlinearmatmul[] = { &product, NULL };
const HnKernel *const hn_cuda_quantmatmul[] = { &product, NULL };
const HnKernel *const hn_cuda_convinteger[] = { &product, NULL };
const HnKernel *const hn_cuda_qlinearconv[] = { &product, NULL };
const HnKernel *const hn_cuda_quantconv[] = { &product, NULL };
