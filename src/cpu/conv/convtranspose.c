/*
 * ConvTranspose of f32: a kernel for small ones of 1 or 2 spatial axes in plain layouts, those of convolutions where
 * strides are 1, tiles for other ones, oneDNN's deconvolution for the rest.
 *
 * The small kernel gathers. Along an axis with stride s, output o reads taps k with (o + pad - k * dilation) % s == 0
 * only: outputs fall into s phases by (o + pad) % s, and each phase is a convolution of stride 1 with the taps of its
 * remainder, of which every tap has one. The source is copied once with the zeros that outputs at the borders reach.
 */
#include <string.h>

#include "cpu/conv/conv_gemm.h"
#include "cpu/conv/conv_small.h"
#include "cpu/conv/convtranspose_columns.h"
#include "cpu/conv/convtranspose_gemm.h"
#include "cpu/conv/depthwise.h"
#include "cpu/conv/turned.h"
#include "cpu/conv/weight_grad.h"
#include "cpu/conv/winograd.h"
#include "cpu/core/cpu_kernel.h"
#include "op/conv.h"

#define MAX_FLOPS 4e5  /* as for convolutions */
#define MAX_SOURCE 4e6 /* elements with zeros around */
#define MAX_PHASES 64
#define OC HN_CONV_OC

typedef struct {
    HnPrim prim;
    HnPack *weights;
} Deconv;

/* --- own ---------------------------------------------------------------------------------------------------------- */

/* One axis. `size` and `out` are those of the operator's input and output. */
typedef struct {
    int64_t size, out, kernel, stride, dilation, pad;
    int64_t before, length; /* zeros in front of the source; all of it, zeros included */
} Axis;

typedef struct {
    HnConvPlan plan;
    HnConvRowFn row;
    Axis h, v;
    gboolean copied;
    int64_t blocks, taps; /* blocks of OC output channels of a group; taps of a group */
    int64_t columns;      /* of a phase at most */
    int64_t *off;         /* [taps], sorted by phase */
    int64_t *first;       /* [phases + 1]: taps of a phase in off */
    HnPack *weights;      /* [group][blocks][taps][OC], zeros beyond the last channel */
} Small;

static Axis axis_of(const HnWindowAxis *w)
{
    Axis a = {
        .size = w->out, .out = w->in, .kernel = w->kernel, .stride = w->stride, .dilation = w->dilation, .pad = w->pad
    };
    a.before = MAX(0, (a.kernel - 1) * a.dilation / a.stride - a.pad / a.stride);
    a.length = a.before + MAX(a.size, (a.out - 1 + a.pad) / a.stride + 1);
    return a;
}

static void axes_of(const HnConvPlan *p, Axis *h, Axis *v)
{
    HnWindowAxis axis[2];
    hn_window_axes(p->n, p->axis, 2, axis);
    *h = axis_of(&axis[0]);
    *v = axis_of(&axis[1]);
}

static const char *deconv_reject(const HnStep *s, HnConvPlan *plan)
{
    const char *reason = hn_conv_reject(s, HN_CONV_TRANSPOSE, HN_MAX_RANK, plan);
    if (reason != NULL)
        return reason;
    for (int i = 0; i < plan->n; i++)
        if (plan->axis[i].pad < 0)
            return "negative padding";
    return NULL;
}

static const char *small_reject(const HnStep *s)
{
    HnConvPlan plan;
    Axis h, v;
    const char *reason = deconv_reject(s, &plan);
    if (reason != NULL)
        return reason;
    if (plan.n > 2)
        return "only 1 or 2 spatial axes";
    if (s->in[0].slot->layout != NULL)
        return "the source is in a blocked layout";
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    if (2.0 * (double)s->in[0].slot->tensor->n * (double)plan.out_channels * (double)plan.taps > MAX_FLOPS)
        return "large enough for tiles";
    axes_of(&plan, &h, &v);
    if (h.stride > MAX_PHASES || v.stride > MAX_PHASES || h.stride * v.stride > MAX_PHASES)
        return "a large stride";
    if ((double)plan.in_channels * (double)h.length * (double)v.length > MAX_SOURCE || (double)v.out > MAX_SOURCE)
        return "a source that is large for what is computed of it";
    return NULL;
}

static gsize pack_bytes(const Small *c)
{
    return (gsize)(c->plan.group * c->blocks * c->taps * OC) * sizeof(float);
}

/* Numbers taps as they are sorted: by phase, then input channel, then place. */
typedef void (*TapFn)(const Small *c, int64_t t, int64_t channel, int64_t row, int64_t column, gpointer data);
static void each_tap(const Small *c, TapFn fn, gpointer data)
{
    const Axis *h = &c->h, *v = &c->v;
    int64_t t = 0;
    for (int64_t phase = 0; phase < h->stride * v->stride; phase++) {
        c->first[phase] = t;
        for (int64_t i = 0; i < c->plan.in_channels; i++)
            for (int64_t a = 0; a < h->kernel; a++)
                for (int64_t b = 0; b < v->kernel; b++)
                    if (a * h->dilation % h->stride == phase / v->stride &&
                        b * v->dilation % v->stride == phase % v->stride)
                        fn(c, t++, i, a, b, data);
    }
    c->first[h->stride * v->stride] = t;
}

static void place_tap(const Small *c, int64_t t, int64_t channel, int64_t row, int64_t column, gpointer data)
{
    (void)data;
    c->off[t] = (channel * c->h.length - row * c->h.dilation / c->h.stride) * c->v.length -
                column * c->v.dilation / c->v.stride;
}

typedef struct {
    float *to;
    const char *from; /* [group * in_channels][out_channels][taps] */
} Packing;

static void pack_tap(const Small *c, int64_t t, int64_t channel, int64_t row, int64_t column, gpointer data)
{
    const Packing *k = data;
    const HnConvPlan *p = &c->plan;
    for (int64_t m = 0; m < p->group * p->out_channels; m++) {
        const int64_t g = m / p->out_channels, o = m % p->out_channels;
        const int64_t at = (((g * p->in_channels + channel) * p->out_channels + o) * c->h.kernel + row) * c->v.kernel;
        memcpy(k->to + ((g * c->blocks + o / OC) * c->taps + t) * OC + o % OC,
               k->from + (at + column) * (int64_t)sizeof(float), sizeof(float));
    }
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Small *c = data;
    Packing k = { to, w->data };
    memset(to, 0, pack_bytes(c));
    each_tap(c, pack_tap, &k);
}

static void small_release(HnStep *s)
{
    Small *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    g_free(c->off);
    g_free(c->first);
    g_free(c);
    s->state = NULL;
}

/* Tells arrangements of the same weights apart. */
static int64_t variant_of(const Small *c)
{
    const Axis *h = &c->h, *v = &c->v;
    return ((c->plan.group * MAX_PHASES + h->stride) * MAX_PHASES + v->stride) * MAX_PHASES * MAX_PHASES +
           h->dilation % h->stride * MAX_PHASES + v->dilation % v->stride;
}

static gboolean small_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    Small *c = g_new0(Small, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    if (!hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error))
        return FALSE;
    axes_of(p, &c->h, &c->v);
    c->row = hn_conv_row();
    c->blocks = (p->out_channels + OC - 1) / OC;
    c->taps = p->in_channels * p->taps;
    c->copied = c->h.length != c->h.size || c->v.length != c->v.size;
    c->columns = (c->v.out + c->v.stride - 1) / c->v.stride;
    const int64_t source = c->copied ? p->in_channels * c->h.length * c->v.length : 0;
    s->scratch_bytes = (gsize)(source + OC * c->columns) * sizeof(float);
    c->off = g_new(int64_t, (gsize)c->taps);
    c->first = g_new(int64_t, (gsize)(c->h.stride * c->v.stride) + 1);
    each_tap(c, place_tap, NULL);
    return hn_pack_own(s, 1, pack_weights, variant_of(c), pack_bytes(c), c, &c->weights, error);
}

static void copy_source(const Small *c, const float *x, float *to)
{
    const Axis *h = &c->h, *v = &c->v;
    memset(to, 0, (gsize)(c->plan.in_channels * h->length * v->length) * sizeof(float));
    for (int64_t i = 0; i < c->plan.in_channels; i++)
        for (int64_t r = 0; r < h->size; r++)
            memcpy(to + (i * h->length + h->before + r) * v->length + v->before, x + (i * h->size + r) * v->size,
                   (gsize)v->size * sizeof(float));
}

/* Outputs of one row, of OC channels: phase after phase. x: the row of the source that tap 0 of the row's phase reads;
 * off, first: of that phase. */
static void out_row(const Small *c, float *y, int channels, const float *x, const int64_t *first, const float *w,
                    const float *bias, float *part)
{
    const Axis *v = &c->v;
    for (int64_t phase = 0; phase < v->stride; phase++) {
        const int64_t begin = (phase - v->pad % v->stride + v->stride) % v->stride; /* first output of the phase */
        const int64_t n = (v->out - begin + v->stride - 1) / v->stride, t = first[phase];
        if (begin >= v->out)
            continue;
        const float *from = x + (begin + v->pad) / v->stride;
        if (v->stride == 1) {
            c->row(y, c->plan.y_plane, channels, from, c->off + t, w + t * OC, first[phase + 1] - t, bias, n);
            continue;
        }
        c->row(part, c->columns, channels, from, c->off + t, w + t * OC, first[phase + 1] - t, bias, n);
        for (int k = 0; k < channels; k++) {
            float *to = y + k * c->plan.y_plane + begin;
            for (int64_t o = 0; o < n; o++)
                to[o * v->stride] = part[k * c->columns + o];
        }
    }
}

static gboolean small_run(HnStep *s, GError **error)
{
    (void)error;
    const Small *c = s->state;
    const HnConvPlan *p = &c->plan;
    const Axis *h = &c->h;
    const float *x = hn_cpu_data(&s->in[0]), *bias = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    const float *weights = hn_pack_data(c->weights, s, 1);
    float *y = hn_cpu_data(&s->out[0]), *part = s->scratch, *source = part + OC * c->columns;
    for (int64_t n = 0; n < p->batch * p->group; n++) {
        const int64_t g = n % p->group;
        const float *from = x + n * p->in_channels * p->x_plane;
        if (c->copied) {
            copy_source(c, from, source);
            from = source;
        }
        for (int64_t block = 0; block < c->blocks; block++) {
            const int channels = (int)MIN(p->out_channels - block * OC, OC);
            float b[OC] = { 0 };
            for (int i = 0; bias != NULL && i < channels; i++)
                b[i] = bias[g * p->out_channels + block * OC + i];
            const float *w = weights + (g * c->blocks + block) * c->taps * OC;
            float *to = y + (n * p->out_channels + block * OC) * p->y_plane;
            for (int64_t o = 0; o < h->out; o++) {
                const int64_t at = o + h->pad;
                out_row(c, to + o * c->v.out, channels, from + (at / h->stride + h->before) * c->v.length + c->v.before,
                        c->first + at % h->stride * c->v.stride, w, b, part);
            }
        }
    }
    return TRUE;
}

/* --- oneDNN ------------------------------------------------------------------------------------------------------- */

/* Weights [group * C, M, k...] as oneDNN counts axes: [group, M, C, k...] where there are groups. */
static int weight_axes(const HnConvPlan *p, const HnTensor *w, int64_t *dims, int64_t *strides)
{
    int n = 0;
    if (p->group > 1) {
        strides[n] = p->in_channels * p->out_channels * p->taps;
        dims[n++] = p->group;
    }
    strides[n] = p->taps;
    dims[n++] = p->out_channels;
    strides[n] = p->out_channels * p->taps;
    dims[n++] = p->in_channels;
    int64_t step = p->taps;
    for (int i = 0; i < p->n; i++) {
        dims[n] = w->dims[2 + i];
        step /= w->dims[2 + i];
        strides[n++] = step;
    }
    return n;
}

static dnnl_memory_desc_t weights_as_stored(const HnConvPlan *p, const HnTensor *w)
{
    int64_t dims[HN_MAX_RANK + 1], strides[HN_MAX_RANK + 1];
    int n = weight_axes(p, w, dims, strides);
    return hn_md_strided(n, dims, strides);
}

static dnnl_status_t describe(const HnStep *s, const HnConvPlan *p, dnnl_primitive_desc_t *pd)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *b = hn_cpu_in(s, 2), *y = s->out[0].slot->tensor;
    dnnl_dims_t strides, dilations, pad, pad_end;
    int64_t dims[HN_MAX_RANK + 1], ignored[HN_MAX_RANK + 1];
    for (int i = 0; i < p->n; i++) {
        strides[i] = p->axis[i].stride;
        dilations[i] = p->axis[i].dilation - 1;
        pad[i] = p->axis[i].pad;
        pad_end[i] = MAX(0, hn_window_overhang(&p->axis[i]));
    }
    HnCpu *c = hn_cpu_begin(s, 2 * (double)x->n * (double)p->out_channels * (double)p->taps);
    g_auto(dnnl_memory_desc_t) src = hn_md_any(x->ndim, x->dims);
    g_auto(dnnl_memory_desc_t) weights =
        s->in[1].slot->constant ? hn_md_any(weight_axes(p, w, dims, ignored), dims) : weights_as_stored(p, w);
    g_auto(dnnl_memory_desc_t) bias = b != NULL ? hn_md_plain(b->ndim, b->dims) : NULL;
    g_auto(dnnl_memory_desc_t) dst = hn_md_any(y->ndim, y->dims);
    return hn_dnnl(deconvolution_forward_primitive_desc_create)(pd, c->engine, dnnl_forward_inference,
                                                                dnnl_deconvolution_direct, src, weights, bias, dst,
                                                                strides, dilations, pad, pad_end, c->attr);
}

static const char *onednn_reject(const HnStep *s)
{
    HnConvPlan plan;
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    const char *reason = deconv_reject(s, &plan);
    if (reason != NULL)
        return reason;
    if (plan.n > 3)
        return "only 1 to 3 spatial axes";
    if ((reason = hn_cpu_reject_onednn(s)) != NULL)
        return reason;
    return describe(s, &plan, &pd) == dnnl_success ? NULL : "oneDNN has no implementation";
}

static void onednn_release(HnStep *s)
{
    Deconv *c = s->state;
    if (c == NULL)
        return;
    hn_prim_clear(&c->prim);
    hn_pack_unref(c->weights);
    g_free(c);
    s->state = NULL;
}

static gboolean onednn_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    Deconv *c = g_new0(Deconv, 1);
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    HnConvPlan plan;
    s->state = c;
    if (!hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &plan, error) ||
        !hn_cpu_check(describe(s, &plan, &pd), s, error))
        return FALSE;
    g_auto(dnnl_memory_desc_t) stored = weights_as_stored(&plan, w);
    if (s->in[1].slot->constant &&
        !hn_pack(s, 1, stored, hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_weights_md, 0), &c->weights, error))
        return FALSE;
    s->in[0].want = hn_layout_new(hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_src_md, 0));
    s->out[0].slot->layout = hn_layout_new(hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_dst_md, 0));
    static const int args[] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS };
    return hn_prim_init(&c->prim, s, pd, hn_cpu_in(s, 2) != NULL ? 4 : 3, args, error);
}

static gboolean onednn_run(HnStep *s, GError **error)
{
    Deconv *c = s->state;
    void *data[] = { hn_cpu_data(&s->in[0]), hn_pack_data(c->weights, s, 1), hn_cpu_data(&s->out[0]),
                     hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL };
    return hn_prim_run(&c->prim, s, data, error);
}

static const HnKernel small_kernel = {
    .name = "cpu.convtranspose",
    .reject = small_reject,
    .prepare = small_prepare,
    .run = small_run,
    .release = small_release,
};

static const HnKernel onednn_kernel = {
    .name = "onednn.deconvolution",
    .reject = onednn_reject,
    .prepare = onednn_prepare,
    .run = onednn_run,
    .release = onednn_release,
};

const HnKernel *const hn_cpu_convtranspose[] = { &hn_cpu_source_grad_few,
                                                 &hn_cpu_depthwise_turned,
                                                 &small_kernel,
                                                 &hn_cpu_depthwise_transposed,
                                                 &hn_cpu_winograd_turned,
                                                 &hn_cpu_conv_gemm_turned,
                                                 &hn_cpu_convtranspose_columns,
                                                 &hn_cpu_convtranspose_gemm,
                                                 &onednn_kernel,
                                                 NULL };
