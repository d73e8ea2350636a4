/*
 * Small convolutions: a direct kernel for plain layouts, where putting the source channels last, and the result back,
 * takes longer than the arithmetic.
 *
 * Source rows are copied into scratch memory with their padding, and columns sorted by their remainder modulo the
 * stride, so that for any stride and dilation the inputs of neighbouring outputs lie side by side. A tap is then an
 * offset from the output's position; the kernel runs over all taps of all input channels at once, for four output
 * channels and two vectors of output columns whose sums stay in registers.
 */
#include "cpu/conv/conv_small.h"

#include <immintrin.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/conv/turned.h"
#include "cpu/core/epilogue.h"
#include "op/conv.h"

#define ONE_PIXEL 256 /* weights: fewer of them take no time in any way */
#define MAX_FLOPS 4e5 /* above, tiles are faster even where the source has to be put channels last */
/* products of a sum, channels and pixels that fill tiles, however few operations these are */
#define TILE_DEPTH 64
#define TILE_DEPTH_SHORT 16 /* the same with AVX-512 where rows of columns leave lanes empty ... */
#define TILE_DEPTH_HALF 8   /* ... and where half of them are, or channels fill a vector */
#define TILE_OUT 8
#define TILE_PIXELS 4
#define MAX_SOURCE 4e6 /* elements with padding */
#define OC HN_CONV_OC
#define NARROW 8 /* columns; shorter rows leave lanes empty, so lanes are output channels there */
#define NARROW_OC 16

typedef struct {
    HnConvPlan plan;
    HnConvRowFn row;
    gboolean copied;            /* source rows go through scratch memory */
    int64_t rows, pitch, phase; /* of a channel in scratch: rows, floats from row to row, from remainder to remainder */
    int oc;                     /* output channels side by side: OC, or NARROW_OC where rows are short */
    int64_t blocks, taps;       /* blocks of oc output channels of a group; taps of a group */
    int64_t *off;               /* [taps] */
    HnPack *weights;            /* [group][blocks][taps][oc], zeros beyond the last channel */
    HnEpilogue epilogue;
} Small;

static void row_plain(float *y, int64_t plane, int channels, const float *x, const int64_t *off, const float *w,
                      int64_t taps, const float *bias, int64_t n)
{
    for (int c = 0; c < channels; c++, y += plane) {
        for (int64_t o = 0; o < n; o++)
            y[o] = bias[c];
        for (int64_t t = 0; t < taps; t++) {
            const float *restrict in = x + off[t], v = w[t * OC + c];
            for (int64_t o = 0; o < n; o++)
                y[o] += in[o] * v;
        }
    }
}

__attribute__((target("avx2,fma"))) static void row_avx2(float *y, int64_t plane, int channels, const float *x,
                                                         const int64_t *off, const float *w, int64_t taps,
                                                         const float *bias, int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int64_t o = 0; o < n; o += 16) {
        const int left = (int)MIN(n - o, 16);
        const __m256i m0 = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), lane);
        const __m256i m1 = _mm256_cmpgt_epi32(_mm256_set1_epi32(left - 8), lane);
        __m256 a0 = _mm256_set1_ps(bias[0]), a1 = a0, b0 = _mm256_set1_ps(bias[1]), b1 = b0;
        __m256 c0 = _mm256_set1_ps(bias[2]), c1 = c0, d0 = _mm256_set1_ps(bias[3]), d1 = d0;
        for (int64_t t = 0; t < taps; t++) {
            const float *in = x + off[t] + o, *v = w + t * OC;
            const __m256 x0 = left == 16 ? _mm256_loadu_ps(in) : _mm256_maskload_ps(in, m0);
            const __m256 x1 = left == 16 ? _mm256_loadu_ps(in + 8) : _mm256_maskload_ps(in + 8, m1);
            __m256 k = _mm256_broadcast_ss(v);
            a0 = _mm256_fmadd_ps(x0, k, a0);
            a1 = _mm256_fmadd_ps(x1, k, a1);
            k = _mm256_broadcast_ss(v + 1);
            b0 = _mm256_fmadd_ps(x0, k, b0);
            b1 = _mm256_fmadd_ps(x1, k, b1);
            k = _mm256_broadcast_ss(v + 2);
            c0 = _mm256_fmadd_ps(x0, k, c0);
            c1 = _mm256_fmadd_ps(x1, k, c1);
            k = _mm256_broadcast_ss(v + 3);
            d0 = _mm256_fmadd_ps(x0, k, d0);
            d1 = _mm256_fmadd_ps(x1, k, d1);
        }
        const __m256 sums[OC][2] = { { a0, a1 }, { b0, b1 }, { c0, c1 }, { d0, d1 } };
        for (int c = 0; c < channels; c++) {
            _mm256_maskstore_ps(y + c * plane + o, m0, sums[c][0]);
            _mm256_maskstore_ps(y + c * plane + o + 8, m1, sums[c][1]);
        }
    }
}

__attribute__((target("avx512f"))) static void row_avx512(float *y, int64_t plane, int channels, const float *x,
                                                          const int64_t *off, const float *w, int64_t taps,
                                                          const float *bias, int64_t n)
{
    for (int64_t o = 0; o < n; o += 32) {
        const int left = (int)MIN(n - o, 32);
        const __mmask16 m0 = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
        const __mmask16 m1 = (__mmask16)(left == 32 ? 0xffff : left > 16 ? (1u << (left - 16)) - 1 : 0);
        __m512 a0 = _mm512_set1_ps(bias[0]), a1 = a0, b0 = _mm512_set1_ps(bias[1]), b1 = b0;
        __m512 c0 = _mm512_set1_ps(bias[2]), c1 = c0, d0 = _mm512_set1_ps(bias[3]), d1 = d0;
        for (int64_t t = 0; t < taps; t++) {
            const float *in = x + off[t] + o, *v = w + t * OC;
            const __m512 x0 = _mm512_maskz_loadu_ps(m0, in), x1 = _mm512_maskz_loadu_ps(m1, in + 16);
            __m512 k = _mm512_set1_ps(v[0]);
            a0 = _mm512_fmadd_ps(x0, k, a0);
            a1 = _mm512_fmadd_ps(x1, k, a1);
            k = _mm512_set1_ps(v[1]);
            b0 = _mm512_fmadd_ps(x0, k, b0);
            b1 = _mm512_fmadd_ps(x1, k, b1);
            k = _mm512_set1_ps(v[2]);
            c0 = _mm512_fmadd_ps(x0, k, c0);
            c1 = _mm512_fmadd_ps(x1, k, c1);
            k = _mm512_set1_ps(v[3]);
            d0 = _mm512_fmadd_ps(x0, k, d0);
            d1 = _mm512_fmadd_ps(x1, k, d1);
        }
        const __m512 sums[OC][2] = { { a0, a1 }, { b0, b1 }, { c0, c1 }, { d0, d1 } };
        for (int c = 0; c < channels; c++) {
            _mm512_mask_storeu_ps(y + c * plane + o, m0, sums[c][0]);
            _mm512_mask_storeu_ps(y + c * plane + o + 16, m1, sums[c][1]);
        }
    }
}

/* Rows of few columns: the same with NARROW_OC channels of one column side by side, four taps at a time. */
static void narrow_plain(float *y, int64_t plane, int channels, const float *x, const int64_t *off, const float *w,
                         int64_t taps, const float *bias, int64_t n)
{
    for (int64_t o = 0; o < n; o++) {
        float sum[NARROW_OC];
        memcpy(sum, bias, sizeof sum);
        for (int64_t t = 0; t < taps; t++)
            for (int c = 0; c < NARROW_OC; c++)
                sum[c] += x[off[t] + o] * w[t * NARROW_OC + c];
        for (int c = 0; c < channels; c++)
            y[c * plane + o] = sum[c];
    }
}

__attribute__((target("avx2,fma"))) static void narrow_avx2(float *y, int64_t plane, int channels, const float *x,
                                                            const int64_t *off, const float *w, int64_t taps,
                                                            const float *bias, int64_t n)
{
    for (int64_t o = 0; o < n; o++) {
        const float *in = x + o;
        __m256 a0 = _mm256_loadu_ps(bias), a1 = _mm256_loadu_ps(bias + 8), b0 = _mm256_setzero_ps(), b1 = b0;
        __m256 c0 = b0, c1 = b0, d0 = b0, d1 = b0;
        int64_t t = 0;
        for (; t + 4 <= taps; t += 4) {
            const float *v = w + t * NARROW_OC;
            __m256 k = _mm256_broadcast_ss(in + off[t]);
            a0 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v), a0);
            a1 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v + 8), a1);
            k = _mm256_broadcast_ss(in + off[t + 1]);
            b0 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v + 16), b0);
            b1 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v + 24), b1);
            k = _mm256_broadcast_ss(in + off[t + 2]);
            c0 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v + 32), c0);
            c1 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v + 40), c1);
            k = _mm256_broadcast_ss(in + off[t + 3]);
            d0 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v + 48), d0);
            d1 = _mm256_fmadd_ps(k, _mm256_loadu_ps(v + 56), d1);
        }
        for (; t < taps; t++) {
            const __m256 k = _mm256_broadcast_ss(in + off[t]);
            a0 = _mm256_fmadd_ps(k, _mm256_loadu_ps(w + t * NARROW_OC), a0);
            a1 = _mm256_fmadd_ps(k, _mm256_loadu_ps(w + t * NARROW_OC + 8), a1);
        }
        float sum[NARROW_OC];
        _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_add_ps(a0, b0), _mm256_add_ps(c0, d0)));
        _mm256_storeu_ps(sum + 8, _mm256_add_ps(_mm256_add_ps(a1, b1), _mm256_add_ps(c1, d1)));
        for (int c = 0; c < channels; c++)
            y[c * plane + o] = sum[c];
    }
}

__attribute__((target("avx512f"))) static void narrow_avx512(float *y, int64_t plane, int channels, const float *x,
                                                             const int64_t *off, const float *w, int64_t taps,
                                                             const float *bias, int64_t n)
{
    for (int64_t o = 0; o < n; o++) {
        const float *in = x + o;
        __m512 a = _mm512_loadu_ps(bias), b = _mm512_setzero_ps(), c = b, d = b;
        int64_t t = 0;
        for (; t + 4 <= taps; t += 4) {
            const float *v = w + t * NARROW_OC;
            a = _mm512_fmadd_ps(_mm512_set1_ps(in[off[t]]), _mm512_loadu_ps(v), a);
            b = _mm512_fmadd_ps(_mm512_set1_ps(in[off[t + 1]]), _mm512_loadu_ps(v + 16), b);
            c = _mm512_fmadd_ps(_mm512_set1_ps(in[off[t + 2]]), _mm512_loadu_ps(v + 32), c);
            d = _mm512_fmadd_ps(_mm512_set1_ps(in[off[t + 3]]), _mm512_loadu_ps(v + 48), d);
        }
        for (; t < taps; t++)
            a = _mm512_fmadd_ps(_mm512_set1_ps(in[off[t]]), _mm512_loadu_ps(w + t * NARROW_OC), a);
        float sum[NARROW_OC];
        _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)));
        for (int i = 0; i < channels; i++)
            y[i * plane + o] = sum[i];
    }
}

static HnConvRowFn narrow_row(void)
{
    const HnIsa isa = hn_cpu_isa();
    return isa >= HN_ISA_AVX512 ? narrow_avx512 : isa >= HN_ISA_AVX2 ? narrow_avx2 : narrow_plain;
}

HnConvRowFn hn_conv_row(void)
{
    const HnIsa isa = hn_cpu_isa();
    return isa >= HN_ISA_AVX512 ? row_avx512 : isa >= HN_ISA_AVX2 ? row_avx2 : row_plain;
}

static gsize pack_bytes(const Small *c)
{
    return (gsize)(c->plan.group * c->blocks * c->taps * c->oc) * sizeof(float);
}

/* Spatial axes as height and width; a signal is one row, and so is an image of which single points are looked at. */
static void height_width(const HnConvPlan *p, HnWindowAxis *h, HnWindowAxis *w)
{
    *h = p->n == 2 ? p->axis[0] : hn_window_one();
    *w = p->axis[p->n - 1];
    const gboolean point = h->kernel == 1 && w->kernel == 1, every = h->stride == 1 && w->stride == 1;
    if (point && every && h->in == h->out && w->in == w->out) { /* all is one line */
        w->in *= h->in;
        w->out *= h->out;
        h->in = h->out = 1;
    }
}

/* Rows and columns of a source channel with all that outputs look at. */
static void reach(const HnWindowAxis *h, const HnWindowAxis *v, int64_t *rows, int64_t *columns)
{
    *rows = MAX(h->in + h->pad, (h->out - 1) * h->stride + (h->kernel - 1) * h->dilation + 1);
    *columns = MAX(v->in + v->pad, (v->out - 1) * v->stride + (v->kernel - 1) * v->dilation + 1);
}

/* Products of a sum from which on tiles are faster. */
static int64_t tile_depth(int64_t columns, int64_t channels)
{
    if (hn_cpu_isa() < HN_ISA_AVX512 || columns >= 16)
        return TILE_DEPTH;
    return columns <= 8 || channels >= 16 ? TILE_DEPTH_HALF : TILE_DEPTH_SHORT;
}

static const char *small_reject(const HnStep *s)
{
    const HnTensor *y = s->out[0].slot->tensor;
    HnConvPlan plan;
    const char *reason = hn_conv_reject(s, HN_CONV_PLAIN, 2, &plan);
    if (reason != NULL)
        return reason;
    if (s->in[0].slot->layout != NULL)
        return "the source is in a blocked layout";
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    if (2.0 * (double)y->n * (double)plan.in_channels * (double)plan.taps > MAX_FLOPS)
        return "large enough for tiles";
    if (plan.group == 1 && plan.x_plane == 1 && plan.y_plane == 1 && plan.in_channels * plan.out_channels > ONE_PIXEL)
        return "one pixel: a product";
    HnWindowAxis h, v;
    int64_t rows, columns;
    height_width(&plan, &h, &v);
    if (plan.in_channels * plan.taps >= tile_depth(v.out, plan.out_channels) && plan.out_channels >= TILE_OUT &&
        plan.y_plane >= TILE_PIXELS)
        return "enough for tiles";
    reach(&h, &v, &rows, &columns);
    if (h.pad < 0 || v.pad < 0 || (double)plan.in_channels * (double)rows * (double)(columns + v.stride) > MAX_SOURCE)
        return "a source that is large for what is computed of it";
    return NULL;
}

static void small_release(HnStep *s)
{
    Small *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    hn_epilogue_clear(&c->epilogue);
    g_free(c->off);
    g_free(c);
    s->state = NULL;
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Small *c = data;
    const HnConvPlan *p = &c->plan;
    const char *from = w->data; /* [group * out_channels][taps] */
    memset(to, 0, pack_bytes(c));
    for (int64_t m = 0; m < p->group * p->out_channels; m++) {
        int64_t g = m / p->out_channels, i = m % p->out_channels;
        float *block = (float *)to + (g * c->blocks + i / c->oc) * c->taps * c->oc + i % c->oc;
        for (int64_t t = 0; t < c->taps; t++)
            memcpy(block + t * c->oc, from + (m * c->taps + t) * (int64_t)sizeof(float), sizeof(float));
    }
}

static gboolean small_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    Small *c = g_new0(Small, 1);
    HnConvPlan *p = &c->plan;
    HnWindowAxis h, v;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error))
        return FALSE;
    height_width(p, &h, &v);
    gboolean narrow = v.out < NARROW && p->out_channels > OC;
    c->row = narrow ? narrow_row() : hn_conv_row();
    c->oc = narrow ? NARROW_OC : OC;
    c->blocks = (p->out_channels + c->oc - 1) / c->oc;
    c->taps = p->in_channels * h.kernel * v.kernel;
    int64_t width;
    reach(&h, &v, &c->rows, &width);
    c->copied = v.stride > 1 || v.pad > 0 || h.pad > 0 || width > v.in || c->rows > h.in;
    c->phase = (width + v.stride - 1) / v.stride;
    c->pitch = c->copied ? c->phase * v.stride : v.in;
    if (!c->copied)
        c->rows = h.in;
    else
        s->scratch_bytes = (gsize)(p->in_channels * c->rows * c->pitch) * sizeof(float);
    c->off = g_new(int64_t, (gsize)c->taps);
    for (int64_t i = 0, t = 0; i < p->in_channels; i++)
        for (int64_t a = 0; a < h.kernel; a++)
            for (int64_t b = 0; b < v.kernel; b++, t++) {
                int64_t at = b * v.dilation;
                c->off[t] = (i * c->rows + a * h.dilation) * c->pitch +
                            (c->copied ? at % v.stride * c->phase + at / v.stride : at);
            }
    return hn_pack_own(s, 1, pack_weights, p->group * 2 + narrow, pack_bytes(c), c, &c->weights, error);
}

/* Channels [in_channels] of x into scratch rows with padding, columns sorted by remainder. */
static void copy_source(const Small *c, const HnWindowAxis *h, const HnWindowAxis *v, const float *x, float *to)
{
    memset(to, 0, (gsize)(c->plan.in_channels * c->rows * c->pitch) * sizeof(float));
    for (int64_t i = 0; i < c->plan.in_channels; i++)
        for (int64_t r = 0; r < h->in; r++) {
            const float *from = x + (i * h->in + r) * v->in;
            float *row = to + (i * c->rows + r + h->pad) * c->pitch;
            if (v->stride == 1) {
                memcpy(row + v->pad, from, (gsize)v->in * sizeof(float));
                continue;
            }
            for (int64_t k = 0; k < v->in; k++)
                row[(k + v->pad) % v->stride * c->phase + (k + v->pad) / v->stride] = from[k];
        }
}

static gboolean small_run(HnStep *s, GError **error)
{
    (void)error;
    const Small *c = s->state;
    const HnConvPlan *p = &c->plan;
    const float *x = hn_cpu_data(&s->in[0]), *bias = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    const float *weights = hn_pack_data(c->weights, s, 1);
    float *y = hn_cpu_data(&s->out[0]);
    HnWindowAxis h, v;
    height_width(p, &h, &v);
    for (int64_t n = 0; n < p->batch * p->group; n++) {
        const int64_t g = n % p->group;
        const float *from = x + n * p->in_channels * p->x_plane;
        if (c->copied) {
            copy_source(c, &h, &v, from, s->scratch);
            from = s->scratch;
        }
        for (int64_t block = 0; block < c->blocks; block++) {
            const int64_t first = block * c->oc, channel = g * p->out_channels + first;
            const int channels = (int)MIN(p->out_channels - first, c->oc);
            float b[NARROW_OC] = { 0 };
            for (int i = 0; bias != NULL && i < channels; i++)
                b[i] = bias[channel + i];
            float *to = y + (n * p->out_channels + first) * p->y_plane;
            const float *w = weights + (g * c->blocks + block) * c->taps * c->oc;
            for (int64_t o = 0; o < h.out; o++)
                c->row(to + o * v.out, p->y_plane, channels, from + o * h.stride * c->pitch, c->off, w, c->taps, b,
                       v.out);
            for (int i = 0; c->epilogue.n > 0 && i < channels; i++) {
                float *plane = to + i * p->y_plane;
                hn_epilogue_row(&c->epilogue, s, plane, plane - y, p->y_plane, channel + i);
            }
        }
    }
    return TRUE;
}

const HnKernel hn_cpu_conv_small = {
    .name = "cpu.conv",
    .reject = small_reject,
    .prepare = small_prepare,
    .run = small_run,
    .release = small_release,
    .fuses = hn_epilogue_conv_fuses,
};
