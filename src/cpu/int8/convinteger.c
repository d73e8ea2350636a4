/*
 * ConvInteger and QLinearConv, exact, with 1 or 2 spatial axes.
 */
#include "cpu/int8/int8_conv.h"
#include "cpu/int8/int8_gemm.h"
#include "cpu/int8/int8_winograd.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/int8/int16_gemm.h"
#include "op/conv.h"

typedef struct {
    HnInt16Gemm product; /* of one group */
    HnConvPlan plan;
    HnPack *weights;    /* [group] of packed rows; NULL: packed in each run */
    int64_t tiles;      /* of one group */
    gsize rows, scales; /* bytes in scratch: packed rows of all groups, scales; then what each thread needs */
    gsize thread;
    int threads;
} Conv;

static gboolean one_or(const HnTensor *t, int64_t channels)
{
    return t == NULL || t->n == 1 || (channels > 0 && t->ndim == 1 && t->n == channels);
}

static const char *integer_reject(const HnStep *s)
{
    const HnInt8Inputs *i = hn_int8_inputs(s);
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_int8_input(s, i->w), *y = s->out[0].slot->tensor,
                   *bias = hn_int8_input(s, i->bias);
    HnConvPlan plan;
    if (x->n == 0 || w->n == 0 || y->n == 0)
        return "nothing to compute";
    if (x->ndim != 3 && x->ndim != 4)
        return "only 1 or 2 spatial axes";
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &plan, NULL))
        return "the window does not fit";
    for (int k = 0; k < plan.n; k++)
        if (plan.axis[k].pad < 0)
            return "negative padding";
    if (!one_or(hn_int8_input(s, i->x_zero), 0) || !one_or(hn_int8_input(s, i->w_zero), w->dims[0]) ||
        !one_or(hn_int8_input(s, i->y_zero), 0))
        return "zero points of other sizes";
    if (!one_or(hn_int8_input(s, i->x_scale), 0) || !one_or(hn_int8_input(s, i->w_scale), w->dims[0]) ||
        !one_or(hn_int8_input(s, i->y_scale), 0))
        return "scales of other sizes";
    if (bias != NULL && (bias->ndim != 1 || bias->n != w->dims[0]))
        return "a bias of another size";
    return NULL;
}

static void integer_release(HnStep *s)
{
    Conv *c = s->state;
    if (c != NULL)
        hn_pack_unref(c->weights);
    g_free(c);
    s->state = NULL;
}

typedef struct {
    const Conv *c;
    const HnTensor *zero;
} Packing;

static void pack_groups(const Conv *c, int16_t *to, const HnTensor *w, const HnTensor *zero)
{
    const HnInt16Gemm *p = &c->product;
    const int step = zero != NULL && zero->n > 1 ? 1 : 0;
    for (int64_t g = 0; g < c->plan.group; g++)
        hn_int16_gemm_pack_rows(p, to + g * p->m * 2 * p->pairs, (const char *)w->data + g * p->m * p->k, w->dtype,
                                zero != NULL ? (const char *)zero->data + g * p->m * step : NULL, step);
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Packing *k = data;
    pack_groups(k->c, to, w, k->zero);
}

static gsize aligned(gsize bytes)
{
    return (bytes + 63) / 64 * 64;
}

static gboolean integer_prepare(HnStep *s, GError **error)
{
    const HnInt8Inputs *i = hn_int8_inputs(s);
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_int8_input(s, i->w), *zero = hn_int8_input(s, i->w_zero);
    Conv *c = g_new0(Conv, 1);
    HnInt16Gemm *p = &c->product;
    s->state = c;
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &c->plan, error))
        return FALSE;
    const HnConvPlan *plan = &c->plan;
    hn_int16_gemm_init(p, plan->out_channels, plan->in_channels, plan->n == 2 ? &plan->axis[0] : NULL,
                       &plan->axis[plan->n - 1]);
    c->tiles = (p->units + p->tile - 1) / p->tile;
    const double flops = 2 * (double)s->out[0].slot->tensor->n * (double)p->k;
    c->threads = (int)MIN((int64_t)hn_cpu_threads_for(s, flops), plan->batch * plan->group * c->tiles);
    const gsize rows = (gsize)plan->group * hn_int16_gemm_rows_bytes(p);
    const gboolean known = s->in[i->w].slot->constant && (zero == NULL || s->in[i->w_zero].slot->constant);
    if (known) {
        const Packing k = { c, zero };
        if (!hn_pack_own(s, i->w, pack_weights, (int64_t)hn_pack_mix(0, zero), rows, &k, &c->weights, error))
            return FALSE;
    } else {
        c->rows = aligned(rows);
    }
    c->scales = aligned((gsize)w->dims[0] * sizeof(float));
    c->thread = aligned(hn_int16_gemm_units_bytes(p, p->tile)) + aligned(hn_int16_gemm_line_bytes(p));
    s->scratch_bytes = c->rows + c->scales + (gsize)c->threads * c->thread;
    return TRUE;
}

/* What sums are multiplied by, per output channel. */
static void load_scales(const HnStep *s, float *to)
{
    const HnInt8Inputs *i = hn_int8_inputs(s);
    if (i->y_scale < 0)
        return;
    const HnTensor *w_scale = hn_int8_input(s, i->w_scale);
    const float *ws = w_scale->data, xs = *(const float *)hn_int8_input(s, i->x_scale)->data;
    const float ys = *(const float *)hn_int8_input(s, i->y_scale)->data;
    for (int64_t m = 0; m < hn_int8_input(s, i->w)->dims[0]; m++)
        to[m] = xs * ws[w_scale->n > 1 ? m : 0] / ys;
}

/* One tile of columns of one group of one sample. */
static void run_tile(const HnStep *s, const int16_t *rows, const float *scales, int64_t job, int16_t *units)
{
    const Conv *c = s->state;
    const HnInt16Gemm *p = &c->product;
    const HnInt8Inputs *i = hn_int8_inputs(s);
    const HnTensor *x = hn_cpu_in(s, 0), *x_zero = hn_int8_input(s, i->x_zero), *bias = hn_int8_input(s, i->bias),
                   *y = s->out[0].slot->tensor;
    const int64_t image = job / c->tiles, g = image % c->plan.group, first = job % c->tiles * p->tile;
    const int64_t n = MIN(p->units - first, p->tile);
    int16_t *line = (int16_t *)((char *)units + aligned(hn_int16_gemm_units_bytes(p, p->tile)));
    const HnInt16GemmZero zero = hn_int16_gemm_zero(x->dtype, x_zero != NULL ? hn_tensor_get_i64(x_zero, 0) : 0);
    hn_int16_gemm_pack_units(p, units, (const char *)x->data + image * p->channels * c->plan.x_plane, zero, first, n,
                             line);
    const HnInt16GemmOut out = {
        .y = (char *)y->data + (gsize)(image * p->m * c->plan.y_plane) * (y->dtype == HN_I32 ? 4 : 1),
        .pitch = c->plan.y_plane,
        .dtype = y->dtype,
        .scale = scales + g * p->m,
        .row_step = 1,
        .zero = y->dtype != HN_I32 ? (double)hn_tensor_get_i64(hn_int8_input(s, i->y_zero), 0) : 0,
        .nan = y->dtype == HN_I8 ? -128 : 0,
    };
    hn_int16_gemm_multiply(p, rows + g * p->m * 2 * p->pairs, units, first, n,
                           bias != NULL ? (const int32_t *)bias->data + g * p->m : NULL, &out);
}

static gboolean integer_run(HnStep *s, GError **error)
{
    (void)error;
    const Conv *c = s->state;
    const HnInt8Inputs *i = hn_int8_inputs(s);
    char *scratch = s->scratch;
    const int16_t *rows = hn_pack_data(c->weights, s, i->w);
    if (c->weights == NULL) {
        pack_groups(c, (int16_t *)scratch, hn_int8_input(s, i->w), hn_int8_input(s, i->w_zero));
        rows = (const int16_t *)scratch;
    }
    float *scales = (float *)(scratch + c->rows);
    load_scales(s, scales);
    const int64_t jobs = c->plan.batch * c->plan.group * c->tiles;
    if (c->threads == 1) {
        for (int64_t job = 0; job < jobs; job++)
            run_tile(s, rows, scales, job, (int16_t *)(scratch + c->rows + c->scales));
        return TRUE;
    }
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int t = 0; t < c->threads; t++)
        for (int64_t job = t; job < jobs; job += c->threads)
            run_tile(s, rows, scales, job, (int16_t *)(scratch + c->rows + c->scales + (gsize)t * c->thread));
    return TRUE;
}

static const HnKernel convinteger_kernel = {
    .name = "cpu.convinteger",
    .reject = integer_reject,
    .prepare = integer_prepare,
    .run = integer_run,
    .release = integer_release,
};

static const HnKernel qlinearconv_kernel = {
    .name = "cpu.qlinearconv",
    .reject = integer_reject,
    .prepare = integer_prepare,
    .run = integer_run,
    .release = integer_release,
};

const HnKernel *const hn_cpu_convinteger[] = { &hn_cpu_int8_depthwise,
                                               &hn_cpu_int8_group,
                                               &hn_cpu_sparse_int8_conv,
                                               &hn_cpu_int8_winograd,
                                               &hn_cpu_int8_conv,
                                               &convinteger_kernel,
                                               NULL };
const HnKernel *const hn_cpu_qlinearconv[] = { &hn_cpu_int8_depthwise,
                                               &hn_cpu_int8_group,
                                               &hn_cpu_sparse_int8_conv,
                                               &hn_cpu_int8_winograd,
                                               &hn_cpu_int8_conv,
                                               &qlinearconv_kernel,
                                               NULL };
