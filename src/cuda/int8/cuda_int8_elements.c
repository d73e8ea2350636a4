/*
 * Bytes one by one: QuantAdd, QuantMul, QuantAveragePool, ByteTable, and bytes as the numbers that they stand for.
 */
#include <math.h>
#include <string.h>

#include "cuda/core/cuda_kernel.h"
#include "cuda/int8/cuda_int8_elements_args.h"
#include "op/index.h"
#include "op/quantbinary.h"
#include "op/quantlinear.h"
#include "op/quantpool.h"

#define THREADS 256
#define MODULE "cuda_int8_elements"

static gboolean is_byte(const HnTensor *t)
{
    return t->dtype == HN_U8 || t->dtype == HN_I8;
}

static float number(const HnStep *s, int i, float otherwise)
{
    return hn_cuda_in(s, i) != NULL ? (float)hn_tensor_get_f64(hn_cuda_in(s, i), 0) : otherwise;
}

static int whole(const HnStep *s, int i)
{
    return hn_cuda_in(s, i) != NULL ? (int)hn_tensor_get_i64(hn_cuda_in(s, i), 0) : 0;
}

/* Inputs [from, to) are read by prepare(). */
static const char *reject_parameters(const HnStep *s, int from, int to)
{
    for (int i = from; i < MIN(to, s->n_in); i++)
        if (s->in[i].slot != NULL && (!s->in[i].slot->constant || hn_cuda_in(s, i)->n != 1))
            return "parameters that are known only at run time, or of another size";
    return NULL;
}

static void read_parameters(HnStep *s, int from, int to)
{
    for (int i = from; i < MIN(to, s->n_in); i++)
        s->in[i].unread = TRUE;
}

static void set_limits(HnCudaInt8Limits *l, HnDtype dtype, float lo, float hi, float step, int zero)
{
    const HnQuantProduct within = { .lo = lo, .hi = hi };
    l->numbers = dtype == HN_F32;
    const HnQuantBounds b = l->numbers ? (HnQuantBounds){ lo, hi } : hn_quant_bounds(&within, dtype, step, zero);
    l->lo = b.lo;
    l->hi = b.hi;
    l->zero = zero;
}

static void set_table(const HnStep *s, HnCudaInt8Limits *l)
{
    l->exchanges = s->table != NULL;
    if (s->table != NULL)
        memcpy(l->table, s->table, sizeof l->table);
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaPairArgs args;
} Pair;

/* Axes that advance alike become one. FALSE: more kinds of them than there is room for. */
static gboolean meet(const HnStep *s, HnCudaPairArgs *p)
{
    const HnTensor *a = hn_cuda_in(s, HN_QUANTBINARY_A), *b = hn_cuda_in(s, HN_QUANTBINARY_B);
    const HnTensor *y = s->out[0].slot->tensor;
    int64_t left[HN_MAX_RANK], right[HN_MAX_RANK];
    hn_broadcast_strides(a, y->ndim, left);
    hn_broadcast_strides(b, y->ndim, right);
    p->n = y->n;
    p->axes = 0;
    for (int i = 0; i < y->ndim; i++) {
        const int last = p->axes - 1;
        if (y->dims[i] == 1)
            continue;
        if (last >= 0 && p->a_stride[last] == y->dims[i] * left[i] && p->b_stride[last] == y->dims[i] * right[i]) {
            p->dims[last] *= y->dims[i];
            p->a_stride[last] = left[i];
            p->b_stride[last] = right[i];
            continue;
        }
        if (p->axes == HN_CUDA_PAIR_AXES)
            return FALSE;
        p->dims[p->axes] = y->dims[i];
        p->a_stride[p->axes] = left[i];
        p->b_stride[p->axes++] = right[i];
    }
    return TRUE;
}

static const char *pair_reject(const HnStep *s)
{
    const HnTensor *a = hn_cuda_in(s, HN_QUANTBINARY_A), *b = hn_cuda_in(s, HN_QUANTBINARY_B);
    HnCudaPairArgs p;
    const char *reason = reject_parameters(s, HN_QUANTBINARY_A_SCALE, HN_QUANTBINARY_INPUTS);
    if (reason != NULL)
        return reason;
    if ((b->dtype == HN_F32) != (hn_cuda_in(s, HN_QUANTBINARY_B_SCALE) == NULL))
        return "bytes without a scale, or numbers with one";
    if (!is_byte(a) || (!is_byte(b) && b->dtype != HN_F32))
        return "only bytes, and numbers of f32";
    if (s->out[0].slot->tensor->n == 0)
        return "nothing to compute";
    return meet(s, &p) ? NULL : "operands that broadcast along many axes";
}

static gboolean pair_prepare(HnStep *s, GError **error)
{
    const HnQuantBinary *q = s->params;
    const HnTensor *a = hn_cuda_in(s, HN_QUANTBINARY_A), *b = hn_cuda_in(s, HN_QUANTBINARY_B);
    Pair *p = g_new0(Pair, 1);
    HnCudaPairArgs *args = &p->args;
    s->state = p;
    meet(s, args);
    args->product = s->op == &hn_op_quantmul;
    args->a_signed = a->dtype == HN_I8;
    args->b_signed = b->dtype == HN_I8;
    args->b_numbers = b->dtype == HN_F32;
    const float y_scale = number(s, HN_QUANTBINARY_Y_SCALE, 1), a_scale = number(s, HN_QUANTBINARY_A_SCALE, 1),
                b_scale = number(s, HN_QUANTBINARY_B_SCALE, 1);
    const int a_zero = whole(s, HN_QUANTBINARY_A_ZERO), b_zero = whole(s, HN_QUANTBINARY_B_ZERO);
    const HnQuantBinarySteps k = args->product ? hn_quant_mul_steps(a_scale, a_zero, b_scale, b_zero, y_scale)
                                               : hn_quant_add_steps(q, a_scale, a_zero, b_scale, b_zero, y_scale);
    args->a_by = k.a_by;
    args->a_plus = k.a_plus;
    args->b_by = k.b_by;
    args->b_plus = k.b_plus;
    set_limits(&args->limits, s->out[0].slot->tensor->dtype, q->lo, q->hi, y_scale, whole(s, HN_QUANTBINARY_Y_ZERO));
    read_parameters(s, HN_QUANTBINARY_A_SCALE, HN_QUANTBINARY_INPUTS);
    const gboolean flat = args->axes == 0 || (args->axes == 1 && args->a_stride[0] == 1 && args->b_stride[0] <= 1);
    if (flat && args->axes == 1) {
        args->b_step = (int32_t)args->b_stride[0];
        args->axes = 0;
    }
    p->grid = hn_cuda_loop(s, flat ? (args->n + 3) / 4 : args->n, THREADS);
    p->f = hn_cuda_named(s, MODULE, flat ? "int8_pair_flat" : "int8_pair", error);
    return p->f != NULL;
}

static gboolean pair_run(HnStep *s, GError **error)
{
    const Pair *p = s->state;
    HnCudaPairArgs a = p->args;
    a.a = hn_cuda_in_address(s, HN_QUANTBINARY_A);
    a.b = hn_cuda_in_address(s, HN_QUANTBINARY_B);
    a.y = hn_cuda_out_address(s, 0);
    set_table(s, &a.limits);
    return hn_cuda_launch(s, p->f, p->grid, &a, error);
}

static const HnKernel pair = {
    .name = "cuda.int8_pair",
    .reject = pair_reject,
    .prepare = pair_prepare,
    .run = pair_run,
    .release = hn_cuda_release,
    .exchanges = TRUE,
};

const HnKernel *const hn_cuda_quantadd[] = { &pair, NULL };
const HnKernel *const hn_cuda_quantmul[] = { &pair, NULL };

/* --- means -------------------------------------------------------------------------------------------------------- */

#define MOST_TAPS ((int64_t)1 << 22) /* of a window: sums fit into 32 bits */
#define MANY_TAPS 64                 /* from here on a warp makes an output */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaMeanArgs args;
} Mean;

static gboolean place(const HnStep *s, HnCudaMeanArgs *a, int64_t *taps)
{
    const HnQuantPool *p = s->params;
    const HnTensor *x = hn_cuda_in(s, HN_MEAN_X);
    HnWindowAxis all[HN_MAX_RANK], axis[3];
    int64_t dims[HN_MAX_RANK];
    if (x->ndim < 3 || x->ndim > 5 || !hn_quant_pool_place(p, x->ndim, x->dims, all, dims, NULL))
        return FALSE;
    hn_window_axes(x->ndim - 2, all, 3, axis);
    *taps = 1;
    for (int i = 0; i < 3; i++) {
        const HnWindowAxis *v = &axis[i];
        a->in[i] = v->in;
        a->out[i] = v->out;
        a->kernel[i] = v->kernel;
        a->stride[i] = v->stride;
        a->dilation[i] = v->dilation;
        a->pad[i] = v->pad;
        a->pad_end[i] = v->pad_end;
        *taps = MIN(*taps, MOST_TAPS + 1) * CLAMP(v->kernel, 1, MOST_TAPS + 1);
    }
    a->planes = x->dims[0] * x->dims[1];
    a->count_pad = p->pool.count_pad;
    return TRUE;
}

static const char *mean_reject(const HnStep *s)
{
    HnCudaMeanArgs a;
    int64_t taps;
    const char *reason = reject_parameters(s, HN_MEAN_X_SCALE, HN_MEAN_INPUTS);
    if (reason != NULL)
        return reason;
    if (hn_cuda_in(s, HN_MEAN_X)->n == 0 || s->out[0].slot->tensor->n == 0)
        return "nothing to compute";
    if (!place(s, &a, &taps))
        return "only 1 to 3 spatial axes, and windows that fit";
    return taps <= MOST_TAPS ? NULL : "very large windows";
}

static gboolean mean_prepare(HnStep *s, GError **error)
{
    const HnQuantPool *q = s->params;
    Mean *m = g_new0(Mean, 1);
    int64_t taps;
    s->state = m;
    place(s, &m->args, &taps);
    const HnTensor *y = s->out[0].slot->tensor;
    const float step = number(s, HN_MEAN_Y_SCALE, 1);
    m->args.scale = number(s, HN_MEAN_X_SCALE, 1) / step;
    m->args.x_zero = whole(s, HN_MEAN_X_ZERO);
    m->args.is_signed = hn_cuda_in(s, HN_MEAN_X)->dtype == HN_I8;
    set_limits(&m->args.limits, y->dtype, q->lo, q->hi, step, whole(s, HN_MEAN_Y_ZERO));
    read_parameters(s, HN_MEAN_X_SCALE, HN_MEAN_INPUTS);
    const gboolean large = taps >= MANY_TAPS;
    m->grid = hn_cuda_loop(s, y->n * (large ? HN_CUDA_WARP : 1), THREADS);
    m->f = hn_cuda_named(s, MODULE, large ? "int8_mean_large" : "int8_mean", error);
    return m->f != NULL;
}

static gboolean mean_run(HnStep *s, GError **error)
{
    const Mean *m = s->state;
    HnCudaMeanArgs a = m->args;
    a.x = hn_cuda_in_address(s, HN_MEAN_X);
    a.y = hn_cuda_out_address(s, 0);
    set_table(s, &a.limits);
    return hn_cuda_launch(s, m->f, m->grid, &a, error);
}

static const HnKernel mean = {
    .name = "cuda.int8_mean",
    .reject = mean_reject,
    .prepare = mean_prepare,
    .run = mean_run,
    .release = hn_cuda_release,
    .exchanges = TRUE,
};

const HnKernel *const hn_cuda_quantaveragepool[] = { &mean, NULL };

/* --- tables ------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
} Table;

static const char *table_reject(const HnStep *s)
{
    if (s->out[0].slot->tensor->dtype == HN_F32)
        return "numbers";
    return s->out[0].slot->tensor->n == 0 ? "nothing to compute" : NULL;
}

static gboolean prepare(HnStep *s, const char *name, GError **error)
{
    Table *t = g_new0(Table, 1);
    s->state = t;
    t->grid = hn_cuda_loop(s, (s->out[0].slot->tensor->n + 3) / 4, THREADS);
    t->f = hn_cuda_named(s, MODULE, name, error);
    return t->f != NULL;
}

static gboolean table_prepare(HnStep *s, GError **error)
{
    return prepare(s, "int8_table", error);
}

static const char *numbers_reject(const HnStep *s)
{
    return s->out[0].slot->tensor->dtype == HN_F32 ? NULL : "bytes";
}

static gboolean numbers_prepare(HnStep *s, GError **error)
{
    return prepare(s, "int8_numbers", error);
}

static gboolean table_run(HnStep *s, GError **error)
{
    const Table *t = s->state;
    const HnCudaTableArgs a = {
        .x = hn_cuda_in_address(s, 0),
        .table = hn_cuda_in_address(s, 1),
        .y = hn_cuda_out_address(s, 0),
        .n = s->out[0].slot->tensor->n,
    };
    return hn_cuda_launch(s, t->f, t->grid, &a, error);
}

static const HnKernel byte_table = {
    .name = "cuda.int8_table",
    .reject = table_reject,
    .prepare = table_prepare,
    .run = table_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

static const HnKernel byte_numbers = {
    .name = "cuda.int8_numbers",
    .reject = numbers_reject,
    .prepare = numbers_prepare,
    .run = table_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_bytetable[] = { &byte_table, &byte_numbers, NULL };
