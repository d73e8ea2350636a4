/*
 * MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool: in whatever layout the source has. The maximum of a window
 * that holds nothing but -inf is the lowest finite number in oneDNN.
 */
#include "op/pool.h"

#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/half_step.h"

typedef struct {
    int n; /* spatial axes */
    dnnl_alg_kind_t kind;
    HnWindowAxis axis[HN_MAX_RANK];
} Place;

static gboolean is_global(const HnStep *s)
{
    return s->op != &hn_op_maxpool && s->op != &hn_op_averagepool;
}

static gboolean place(const HnStep *s, Place *p)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    int64_t dims[HN_MAX_RANK];
    p->n = x->ndim - 2;
    if (is_global(s)) {
        p->kind = s->op == &hn_op_globalmaxpool ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
        for (int i = 0; i < p->n; i++)
            p->axis[i] =
                (HnWindowAxis){ .in = x->dims[2 + i], .out = 1, .kernel = x->dims[2 + i], .stride = 1, .dilation = 1 };
        return TRUE;
    }
    const HnPool *pool = s->params;
    p->kind = s->op == &hn_op_maxpool ? dnnl_pooling_max
              : pool->count_pad       ? dnnl_pooling_avg_include_padding
                                      : dnnl_pooling_avg_exclude_padding;
    return hn_pool_place(pool, x->ndim, x->dims, p->axis, dims, NULL);
}

static dnnl_status_t describe(const HnStep *s, const Place *p, dnnl_primitive_desc_t *pd)
{
    const HnTensor *y = s->out[0].slot->tensor;
    dnnl_dims_t strides, kernel, dilations, pad, pad_end;
    double taps = (double)y->n;
    for (int i = 0; i < p->n; i++) {
        taps *= (double)p->axis[i].kernel;
        strides[i] = p->axis[i].stride;
        kernel[i] = p->axis[i].kernel;
        dilations[i] = p->axis[i].dilation - 1;
        pad[i] = p->axis[i].pad;
        pad_end[i] = MAX(0, hn_window_overhang(&p->axis[i]));
    }
    HnCpu *c = hn_cpu_begin(s, 4 * taps); /* pools are far from the peak */
    g_auto(dnnl_memory_desc_t) src = hn_md_of(s->in[0].slot);
    g_auto(dnnl_memory_desc_t) dst = hn_md_any(y->ndim, y->dims);
    return hn_dnnl(pooling_forward_primitive_desc_create)(pd, c->engine, dnnl_forward_inference, p->kind, src, dst,
                                                          strides, kernel, dilations, pad, pad_end, c->attr);
}

/* Windows that see padding only, or hardly anything else, and means that count padding where the window goes beyond it.
 */
static const char *reject_axis(const Place *p, const HnWindowAxis *a)
{
    int64_t over = hn_window_overhang(a), reach = (a->kernel - 1) * a->dilation + 1;
    if (a->pad >= reach || over >= reach || (a->dilation > 1 && a->in < a->dilation))
        return "a window may lie in the padding altogether";
    if (a->kernel > MAX(a->in, 64))
        return "a window much larger than the input";
    if (p->kind == dnnl_pooling_avg_include_padding && over > a->pad_end)
        return "a counted window goes beyond the padding";
    return NULL;
}

static const char *pool_reject(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    int rank = hn_cpu_in(s, 0)->ndim;
    Place p;
    if (!hn_cpu_wants_only(s, 1))
        return "indices are wanted";
    if (reason != NULL)
        return reason;
    if (rank < 3 || rank > 5)
        return "only 1 to 3 spatial axes";
    if (!place(s, &p))
        return "the window does not fit";
    for (int i = 0; i < p.n; i++)
        if ((reason = reject_axis(&p, &p.axis[i])) != NULL)
            return reason;
    if ((reason = hn_cpu_reject_onednn(s)) != NULL)
        return reason;
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    return describe(s, &p, &pd) == dnnl_success ? NULL : "oneDNN has no implementation";
}

static void pool_release(HnStep *s)
{
    if (s->state != NULL)
        hn_prim_clear(s->state);
    g_clear_pointer(&s->state, g_free);
}

static gboolean pool_prepare(HnStep *s, GError **error)
{
    HnPrim *prim = g_new0(HnPrim, 1);
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    Place p;
    s->state = prim;
    if (!hn_cpu_check(place(s, &p) ? describe(s, &p, &pd) : dnnl_invalid_arguments, s, error))
        return FALSE;
    s->in[0].any = TRUE;
    s->out[0].slot->layout = hn_layout_new(hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_dst_md, 0));
    return hn_prim_init(prim, s, pd, 2, (const int[]){ DNNL_ARG_SRC, DNNL_ARG_DST }, error);
}

static gboolean pool_run(HnStep *s, GError **error)
{
    void *data[] = { hn_cpu_data(&s->in[0]), hn_cpu_data(&s->out[0]) };
    return hn_prim_run(s->state, s, data, error);
}

static const HnKernel pool_onednn = {
    .name = "onednn.pool",
    .reject = pool_reject,
    .prepare = pool_prepare,
    .run = pool_run,
    .release = pool_release,
};

/* --- small pools in plain layouts ----------------------------------------------------------------------------------
 */

#define SMALL_TAPS 1e5 /* elements read; less is done before oneDNN has been called */

/* A row of windows in two stages: the rows of the source that they see are joined into one, element by element, with
 * padding at both ends; then the columns of each window. */
typedef struct {
    Place place;
    HnWindowAxis h, w;
    int64_t width; /* of the joined row */
} Small;

static double taps_of(const Place *p, const HnTensor *y)
{
    double taps = (double)y->n;
    for (int i = 0; i < p->n; i++)
        taps *= (double)p->axis[i].kernel;
    return taps;
}

static const char *small_reject(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    const HnTensor *x = hn_cpu_in(s, 0);
    Place p;
    if (!hn_cpu_wants_only(s, 1))
        return "indices are wanted";
    if (reason != NULL)
        return reason;
    if ((x->ndim != 3 && x->ndim != 4) || s->in[0].slot->layout != NULL)
        return "not 1 or 2 spatial axes in a plain layout";
    if (!place(s, &p))
        return "the window does not fit";
    for (int i = 0; i < p.n; i++)
        if ((reason = reject_axis(&p, &p.axis[i])) != NULL || p.axis[i].pad < 0)
            return reason != NULL ? reason : "a negative padding";
    if (taps_of(&p, s->out[0].slot->tensor) > SMALL_TAPS || x->n > (int64_t)SMALL_TAPS * 10)
        return "large enough for oneDNN";
    return NULL;
}

static gboolean small_prepare(HnStep *s, GError **error)
{
    (void)error;
    Small *r = g_new0(Small, 1);
    s->state = r;
    place(s, &r->place);
    r->w = r->place.axis[r->place.n - 1];
    r->h = r->place.n == 2 ? r->place.axis[0]
                           : (HnWindowAxis){ .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1 };
    r->width = MAX(r->w.in + r->w.pad, (r->w.out - 1) * r->w.stride + (r->w.kernel - 1) * r->w.dilation + 1);
    s->scratch_bytes = (gsize)r->width * sizeof(float);
    return TRUE;
}

static void small_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

static inline float greater(float a, float b)
{
    return b > a || b != b ? b : a;
}

/* Number of taps at output o that lie in the source. */
static int64_t taps_inside(const HnWindowAxis *a, int64_t o)
{
    int64_t n = 0;
    for (int64_t k = 0; k < a->kernel; k++) {
        int64_t at = o * a->stride + k * a->dilation - a->pad;
        n += at >= 0 && at < a->in;
    }
    return n;
}

/* Row o of windows over the plane x into y. */
static void max_row(const Small *r, const float *x, int64_t o, float *restrict row, float *restrict y)
{
    const HnWindowAxis *h = &r->h, *w = &r->w;
    for (int64_t i = 0; i < r->width; i++)
        row[i] = -INFINITY;
    for (int64_t k = 0; k < h->kernel; k++) {
        const int64_t at = o * h->stride + k * h->dilation - h->pad;
        const float *restrict from = x + at * w->in;
        for (int64_t i = 0; at >= 0 && at < h->in && i < w->in; i++)
            row[w->pad + i] = greater(row[w->pad + i], from[i]);
    }
    for (int64_t i = 0; i < w->out; i++)
        y[i] = row[i * w->stride];
    for (int64_t k = 1; k < w->kernel; k++)
        for (int64_t i = 0; i < w->out; i++)
            y[i] = greater(y[i], row[i * w->stride + k * w->dilation]);
}

static void mean_row(const Small *r, const float *x, int64_t o, float *restrict row, float *restrict y)
{
    const HnWindowAxis *h = &r->h, *w = &r->w;
    memset(row, 0, (gsize)r->width * sizeof *row);
    for (int64_t k = 0; k < h->kernel; k++) {
        const int64_t at = o * h->stride + k * h->dilation - h->pad;
        const float *restrict from = x + at * w->in;
        for (int64_t i = 0; at >= 0 && at < h->in && i < w->in; i++)
            row[w->pad + i] += from[i];
    }
    const gboolean all = r->place.kind == dnnl_pooling_avg_include_padding;
    const int64_t rows = all ? h->kernel : taps_inside(h, o);
    for (int64_t i = 0; i < w->out; i++) {
        float sum = 0;
        for (int64_t k = 0; k < w->kernel; k++)
            sum += row[i * w->stride + k * w->dilation];
        y[i] = sum / (float)(rows * (all ? w->kernel : taps_inside(w, i)));
    }
}

static gboolean small_run(HnStep *s, GError **error)
{
    (void)error;
    const Small *r = s->state;
    const HnTensor *x = hn_cpu_in(s, 0);
    const int64_t planes = x->dims[0] * x->dims[1], plane = r->h.in * r->w.in;
    const float *from = hn_cpu_data(&s->in[0]);
    float *y = hn_cpu_data(&s->out[0]);
    for (int64_t c = 0; c < planes; c++, from += plane)
        for (int64_t o = 0; o < r->h.out; o++, y += r->w.out) {
            if (r->place.kind == dnnl_pooling_max)
                max_row(r, from, o, s->scratch, y);
            else
                mean_row(r, from, o, s->scratch, y);
        }
    return TRUE;
}

static const HnKernel pool_small = {
    .name = "cpu.pool",
    .reject = small_reject,
    .prepare = small_prepare,
    .run = small_run,
    .release = small_release,
};

const HnKernel *const hn_cpu_maxpool[] = { &pool_small, &pool_onednn, &hn_cpu_half_step, NULL };
const HnKernel *const hn_cpu_averagepool[] = { &pool_small, &pool_onednn, &hn_cpu_half_step, NULL };
const HnKernel *const hn_cpu_globalmaxpool[] = { &pool_small, &pool_onednn, &hn_cpu_half_step, NULL };
const HnKernel *const hn_cpu_globalaveragepool[] = { &pool_small, &pool_onednn, &hn_cpu_half_step, NULL };
