/*
 * QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: floats and integers of 2 to 32 bits, with one scale, one
 * for each index of an axis, or one for each block.
 */
#include "op/quantize.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/int8/cuda_quantize_args.h"
#include "op/index.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaQuantizeArgs args;
} Quantize;

/* HnCudaInt; -1: none. */
static int int_of(HnDtype d)
{
    static const HnDtype types[] = {
        [HN_CUDA_INT_U8] = HN_U8,   [HN_CUDA_INT_I8] = HN_I8,   [HN_CUDA_INT_U16] = HN_U16,
        [HN_CUDA_INT_I16] = HN_I16, [HN_CUDA_INT_I32] = HN_I32, [HN_CUDA_INT_U4] = HN_U4,
        [HN_CUDA_INT_I4] = HN_I4,   [HN_CUDA_INT_U2] = HN_U2,   [HN_CUDA_INT_I2] = HN_I2,
    };
    for (int i = 0; i < (int)G_N_ELEMENTS(types); i++)
        if (types[i] == d)
            return i;
    return -1;
}

static int real_of(HnDtype d)
{
    return d == HN_F32 ? HN_CUDA_REAL_F32 : d == HN_F16 ? HN_CUDA_REAL_F16 : HN_CUDA_REAL_BF16;
}

/* The shape of scales; FALSE: they do not fit. */
static gboolean place(const HnStep *s, HnCudaQuantizeArgs *a)
{
    const HnQuantize *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *scale = hn_cuda_in(s, 1);
    a->n = x->n;
    a->size = a->inner = a->scales = 1;
    a->block = 0;
    if (scale->n == 1)
        return TRUE;
    const int64_t axis = x->ndim == 1 ? 0 : p->axis < 0 ? p->axis + x->ndim : p->axis;
    if (!p->per_axis || axis < 0 || axis >= x->ndim || scale->ndim != (p->block == 0 ? 1 : x->ndim))
        return FALSE;
    a->size = x->dims[axis];
    a->inner = hn_span(x->dims, (int)axis + 1, x->ndim);
    a->scales = scale->dims[p->block == 0 ? 0 : axis];
    a->block = p->block;
    if (p->block == 0)
        return a->scales == a->size;
    for (int i = 0; i < x->ndim; i++)
        if (i != axis && x->dims[i] != scale->dims[i])
            return FALSE;
    return (a->size + a->block - 1) / a->block == a->scales;
}

static const char *quantize_reject(const HnStep *s)
{
    const HnQuantize *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *scale = hn_cuda_in(s, 1), *zero = hn_cuda_in(s, 2);
    const HnTensor *y = s->out[0].slot->tensor;
    const gboolean back = s->op == &hn_op_dequantizelinear;
    const HnTensor *real = back ? y : x, *ints = back ? x : y;
    HnCudaQuantizeArgs a;
    if (!hn_cuda_is_float(real->dtype) || !hn_cuda_is_float(scale->dtype) ||
        (p->precision != HN_UNDEFINED && !hn_cuda_is_float(p->precision)))
        return "only f32, f16, bf16";
    if (int_of(ints->dtype) < 0 || (!back && ints->dtype == HN_I32))
        return "only integers of 2 to 16 bits";
    if (zero != NULL && (zero->dtype != ints->dtype || zero->n != scale->n))
        return "a zero point that is not as the scale";
    if (x->n == 0)
        return "nothing to compute";
    return place(s, &a) ? NULL : "scales that do not fit the input";
}

static gboolean quantize_prepare(HnStep *s, GError **error)
{
    const HnQuantize *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *scale = hn_cuda_in(s, 1), *y = s->out[0].slot->tensor;
    const gboolean back = s->op == &hn_op_dequantizelinear;
    Quantize *q = g_new0(Quantize, 1);
    HnCudaQuantizeArgs *a = &q->args;
    s->state = q;
    place(s, a);
    a->ints = int_of((back ? x : y)->dtype);
    a->scale_type = real_of(scale->dtype);
    a->precision = real_of(p->precision != HN_UNDEFINED ? p->precision : scale->dtype);
    const gboolean one = !back && a->scales == 1 && a->block == 0 && a->ints <= HN_CUDA_INT_I8;
    q->grid = hn_cuda_loop(s, one ? (x->n + 3) / 4 : x->n, THREADS);
    q->f = hn_cuda_typed(s, "cuda_quantize",
                         back  ? "dequantize"
                         : one ? "quantize_one"
                               : "quantize",
                         (back ? y : x)->dtype, error);
    return q->f != NULL;
}

static gboolean quantize_run(HnStep *s, GError **error)
{
    const Quantize *q = s->state;
    HnCudaQuantizeArgs a = q->args;
    a.x = hn_cuda_in_address(s, 0);
    a.scale = hn_cuda_in_address(s, 1);
    a.zero = hn_cuda_in_address(s, 2);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, q->f, q->grid, &a, error);
}

static const HnKernel quantize = {
    .name = "cuda.quantize",
    .reject = quantize_reject,
    .prepare = quantize_prepare,
    .run = quantize_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_quantizelinear[] = { &quantize, NULL };
const HnKernel *const hn_cuda_dequantizelinear[] = { &quantize, NULL };

/* --- the range of the tensor itself ------------------------------------------------------------------------------- */

#define MOST_PARTS 256

typedef struct {
    HnCuFunction range, quantize;
    HnCudaGrid parts, grid;
    int64_t n;
} Dynamic;

static gboolean dynamic_prepare(HnStep *s, GError **error)
{
    Dynamic *d = g_new0(Dynamic, 1);
    s->state = d;
    d->n = hn_cuda_in(s, 0)->n;
    d->grid = hn_cuda_loop(s, (d->n + 3) / 4, THREADS);
    d->parts = d->grid;
    d->parts.grid[0] = MIN(d->parts.grid[0], MOST_PARTS);
    s->scratch_bytes = (gsize)d->parts.grid[0] * 2 * sizeof(float);
    d->range = hn_cuda_named(s, "cuda_quantize", "dynamic_range", error);
    d->quantize = d->range != NULL ? hn_cuda_named(s, "cuda_quantize", "dynamic_quantize", error) : NULL;
    return d->quantize != NULL;
}

static gboolean dynamic_run(HnStep *s, GError **error)
{
    const Dynamic *d = s->state;
    const HnCudaDynamicArgs a = {
        .x = hn_cuda_in_address(s, 0),
        .y = hn_cuda_out_address(s, 0),
        .y_scale = hn_cuda_out_address(s, 1),
        .y_zero = hn_cuda_out_address(s, 2),
        .ranges = hn_cuda_scratch(s),
        .n = d->n,
        .parts = (int32_t)d->parts.grid[0],
    };
    return hn_cuda_launch(s, d->range, d->parts, &a, error) && hn_cuda_launch(s, d->quantize, d->grid, &a, error);
}

static const HnKernel dynamic = {
    .name = "cuda.dynamicquantize",
    .prepare = dynamic_prepare,
    .run = dynamic_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_dynamicquantizelinear[] = { &dynamic, NULL };
