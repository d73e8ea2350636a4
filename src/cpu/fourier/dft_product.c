/*
 * Frames of a signal (Conv) or rows of a matrix (MatMul) go through transforms, a vector of them at a time, which do
 * not see each other. Against sums of products the largest error is a fifth, in the mean of all bins a third; it is
 * spread evenly, so that bins far below the largest one have five times the error that a sum of small terms has there.
 */
#include "cpu/fourier/dft_product.h"

#include <math.h>
#include <string.h>

#include "cpu/conv/turned.h"
#include "cpu/core/cpu_level.h"
#include "cpu/core/epilogue.h"
#include "cpu/fourier/dft_table.h"
#include "cpu/fourier/fft_batch.h"
#include "op/conv.h"

typedef struct {
    HnPack *table; /* HnDftTable */
    HnFftWork work;
    int64_t pad, padded; /* zeros before a signal, and its length with those around it; 0: read where it is */
    double part;         /* HnKernel.products */
    HnEpilogue epilogue;
} Product;

/* Sizes of either operator. */
typedef struct {
    int64_t frames, rows, taps; /* of all samples, of weights */
    int64_t row, tap;           /* elements of weights from result to result, from tap to tap */
} Size;

#define NEAR 24 /* bytes of weights that a cycle brings out of the second cache */

/* Cycles of the transforms, of about as many points as there are taps, and of the products, or of what their weights
 * take to be read where frames are few. */
static gboolean is_worth_it(const Size *z)
{
    const double lanes = 4 << hn_cpu_level(), taps = (double)z->taps, weights = taps * (double)z->rows;
    const double blocks = ceil((double)z->frames / lanes), stages = log2(taps) / 3;
    const double transforms = blocks * (taps * (4 + 3.5 * stages) + 4 * (double)z->rows);
    const double a_frame = weights / (hn_cpu_level() == 0 ? lanes : 2 * lanes);
    return transforms < MAX((double)z->frames * a_frame, weights * sizeof(float) / NEAR);
}

static gboolean fill(const HnStep *s, void *to, const HnTensor *w, gconstpointer data, GError **error)
{
    const Size *z = data;
    if (hn_dft_table_find(to, w->data, z->rows, z->taps, z->row, z->tap))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "node '%s': the weights are no Fourier transform",
                hn_node_label(s->node));
    return FALSE;
}

/* What packs of tables are known by. */
static void as_table(void *to, const HnTensor *w, gconstpointer data)
{
    (void)fill(NULL, to, w, data, NULL);
}

/* The step's weights as a table, found once for all plans that use it. NULL: they are none. */
static HnPack *table_of(const HnStep *s, const Size *z, GError **error)
{
    const HnPackForm form = { .fn = as_table, .variant = z->tap };
    return hn_packs_get(s, s->in[1].slot, &form, hn_dft_table_bytes(z->rows, z->taps), fill, z, error);
}

static const char *table_reject(const HnStep *s, const Size *z)
{
    const HnSlot *w = s->in[1].slot;
    HnPack *table = NULL;
    if (s->strict_math)
        return "--strict-math: sums of products";
    if (!w->constant || w->variable || w->layout != NULL || w->tensor->data == NULL)
        return "weights that change";
    if (!is_worth_it(z))
        return "too few products";
    if (hn_dft_table_likely(w->tensor->data, z->rows, z->taps, z->row, z->tap))
        table = table_of(s, z, NULL);
    const int64_t n = table != NULL ? ((const HnDftTable *)table->data)->n : 0;
    hn_pack_unref(table);
    if (n == 0)
        return "the weights are no Fourier transform";
    return z->rows <= 2 * n ? NULL : "more results than a transform has parts";
}

/* With b set but for columns, window and sums. */
static gboolean product_begin(HnStep *s, const Size *z, HnFftBatch b, GError **error)
{
    Product *p = s->state;
    p->table = table_of(s, z, error);
    if (p->table == NULL)
        return FALSE;
    const HnDftTable *t = p->table->data;
    b.rows = z->frames;
    b.inner = 1;
    b.columns_in = b.used = z->taps;
    b.columns_out = z->rows;
    b.parts_in = b.parts_out = 1;
    b.factor = hn_dft_table_window(t);
    b.sums = t->sums;
    hn_fft_work_init(&p->work, hn_fft_new_real(t->n), b);
    p->part = hn_fft_flops(p->work.fft) / (2 * (double)z->rows * (double)z->taps);
    s->scratch_bytes += hn_fft_work_bytes(&p->work, s);
    s->in[1].unread = TRUE;
    return TRUE;
}

static void product_release(HnStep *s)
{
    Product *p = s->state;
    if (p != NULL) {
        hn_fft_work_clear(&p->work);
        hn_pack_unref(p->table);
        hn_epilogue_clear(&p->epilogue);
    }
    hn_cpu_release(s);
}

static double product_part(const HnStep *s)
{
    return MIN(((const Product *)s->state)->part, 1);
}

/* --- Conv -------------------------------------------------------------------------------------------------------- */

/* Axes but for the last one have a single element. */
static gboolean is_signal(const HnConvPlan *plan)
{
    for (int i = 0; i + 1 < plan->n; i++)
        if (plan->axis[i].in != 1 || plan->axis[i].out != 1 || plan->axis[i].kernel != 1)
            return FALSE;
    return plan->n > 0 && plan->group == 1 && plan->in_channels == 1 && plan->axis[plan->n - 1].dilation == 1 &&
           plan->axis[plan->n - 1].pad >= 0;
}

static Size conv_size(const HnConvPlan *plan)
{
    const HnWindowAxis *a = &plan->axis[plan->n - 1];
    return (Size){
        .frames = plan->batch * a->out, .rows = plan->out_channels, .taps = a->kernel, .row = a->kernel, .tap = 1
    };
}

static const char *conv_reject(const HnStep *s)
{
    HnConvPlan plan;
    const char *reason = hn_conv_reject(s, HN_CONV_PLAIN, HN_MAX_RANK, &plan);
    if (reason != NULL)
        return reason;
    if (!is_signal(&plan))
        return "more than one signal to a result";
    const Size z = conv_size(&plan);
    return table_reject(s, &z);
}

static gboolean conv_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    Product *p = g_new0(Product, 1);
    HnConvPlan plan;
    s->state = p;
    hn_epilogue_init(&p->epilogue, s, 1);
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &plan, error))
        return FALSE;
    const HnWindowAxis *a = &plan.axis[plan.n - 1];
    const Size z = conv_size(&plan);
    if (a->pad > 0 || hn_window_overhang(a) > 0) {
        p->pad = a->pad;
        p->padded = (a->out - 1) * a->stride + a->kernel;
    }
    s->scratch_bytes = (gsize)(plan.batch * p->padded) * sizeof(float);
    return product_begin(
        s, &z,
        (HnFftBatch){ .group = a->out, .far = p->padded > 0 ? p->padded : a->in, .near = a->stride, .planar = TRUE },
        error);
}

/* Signals with zeros around them. */
static void copy_padded(const Product *p, const HnTensor *x, float *to)
{
    const int64_t in = x->dims[x->ndim - 1], pad = MIN(p->pad, p->padded), n = MIN(in, p->padded - pad);
    for (int64_t i = 0; i < x->dims[0]; i++, to += p->padded) {
        memset(to, 0, (gsize)pad * sizeof *to);
        memcpy(to + pad, (const float *)x->data + i * in, (gsize)n * sizeof *to);
        memset(to + pad + n, 0, (gsize)(p->padded - pad - n) * sizeof *to);
    }
}

static gboolean conv_run(HnStep *s, GError **error)
{
    const Product *p = s->state;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    HnFftBatch b = p->work.batch;
    (void)error;
    b.x = x->data;
    b.y = y->data;
    b.bias = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    if (p->padded > 0) {
        float *copy = (float *)(gpointer)((char *)s->scratch + hn_fft_work_bytes(&p->work, s));
        copy_padded(p, x, copy);
        b.x = copy;
    }
    hn_fft_work_run(&p->work, s, &b, s->scratch);
    for (int64_t i = 0; p->epilogue.n > 0 && i < y->dims[0] * b.columns_out; i++)
        hn_epilogue_row(&p->epilogue, s, b.y + i * b.group, i * b.group, b.group, i % b.columns_out);
    return TRUE;
}

const HnKernel hn_cpu_dft_conv = {
    .name = "cpu.dft_conv",
    .reject = conv_reject,
    .prepare = conv_prepare,
    .run = conv_run,
    .release = product_release,
    .products = product_part,
    .fuses = hn_epilogue_conv_fuses,
};

/* --- MatMul ------------------------------------------------------------------------------------------------------ */

static Size matmul_size(const HnTensor *x, const HnTensor *w)
{
    return (Size){ .frames = x->n / w->dims[0], .rows = w->dims[1], .taps = w->dims[0], .row = 1, .tap = w->dims[1] };
}

static const char *matmul_reject(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    if (x->ndim == 0 || w->ndim != 2 || x->dims[x->ndim - 1] != w->dims[0])
        return "stacks of weights";
    const Size z = matmul_size(x, w);
    return table_reject(s, &z);
}

static gboolean matmul_prepare(HnStep *s, GError **error)
{
    const Size z = matmul_size(hn_cpu_in(s, 0), hn_cpu_in(s, 1));
    s->state = g_new0(Product, 1);
    return product_begin(s, &z, (HnFftBatch){ .group = z.frames, .near = z.taps }, error);
}

static gboolean matmul_run(HnStep *s, GError **error)
{
    const Product *p = s->state;
    HnFftBatch b = p->work.batch;
    (void)error;
    b.x = hn_cpu_data(&s->in[0]);
    b.y = hn_cpu_data(&s->out[0]);
    hn_fft_work_run(&p->work, s, &b, s->scratch);
    return TRUE;
}

const HnKernel hn_cpu_dft_matmul = {
    .name = "cpu.dft_matmul",
    .reject = matmul_reject,
    .prepare = matmul_prepare,
    .run = matmul_run,
    .release = product_release,
    .products = product_part,
};
