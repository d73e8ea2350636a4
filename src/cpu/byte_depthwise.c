/*
 * QuantConv, QLinearConv and ConvInteger with a filter for each channel, channels last.
 */
#include "cpu/byte_depthwise.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/byte_conv.h"
#include "cpu/byte_product.h"

/* --- levels --------------------------------------------------------------------------------------------------------
 */

#define IVEC_avx2 __m256i
#define ILOAD_avx2(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define ISTORE_avx2(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define HN_DW_WIDTH_avx2 32
#define HN_DW_TAPS_avx2 2
#define HN_DW_AT_ONCE_avx2 2
#define HN_DW_SET_avx2 _mm256_set1_epi8
#define HN_DW_XOR_avx2 _mm256_xor_si256
#define HN_DW_DOT_avx2(sum, x, w) _mm256_add_epi32(sum, _mm256_madd_epi16(x, w))
#define HN_DW_INTERLEAVE_avx2(z, r)                                                                            \
    do {                                                                                                       \
        const __m256i none = _mm256_setzero_si256();                                                           \
        const __m256i low = _mm256_unpacklo_epi8((r)[0], (r)[1]), high = _mm256_unpackhi_epi8((r)[0], (r)[1]); \
        (z)[0] = _mm256_unpacklo_epi8(low, none);                                                              \
        (z)[1] = _mm256_unpackhi_epi8(low, none);                                                              \
        (z)[2] = _mm256_unpacklo_epi8(high, none);                                                             \
        (z)[3] = _mm256_unpackhi_epi8(high, none);                                                             \
    } while (0)

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline))

AVX2 INLINE __m256i load_avx2(const uint8_t *p, int n)
{
    if (n >= 32)
        return ILOAD_avx2(p);
    uint8_t copy[32] = { 0 };
    memcpy(copy, p, (gsize)n);
    return ILOAD_avx2(copy);
}

AVX2 INLINE void store_avx2(uint8_t *p, __m256i v, int n)
{
    if (n >= 32) {
        ISTORE_avx2(p, v);
        return;
    }
    uint8_t copy[32];
    ISTORE_avx2(copy, v);
    memcpy(p, copy, (gsize)n);
}
#define HN_DW_LOAD_avx2 load_avx2
#define HN_DW_STORE_avx2 store_avx2

AVX2 INLINE __m256i finish_avx2(const HnDepthwiseRow *d, const __m256i *sum)
{
    const HnByteOut *o = d->finish;
    const __m256i zero = _mm256_set1_epi16((short)o->zero), lo = _mm256_set1_epi16((short)((int)o->lo + o->zero));
    const __m256i hi = _mm256_set1_epi16((short)((int)o->hi + o->zero));
    __m256i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[j]), _mm256_loadu_ps(d->scale + 8 * j));
        if (d->shift != NULL)
            x = _mm256_add_ps(x, _mm256_loadu_ps(d->shift + 8 * j));
        v[j] = _mm256_cvtps_epi32(x);
    }
    const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), zero);
    const __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), zero);
    const __m256i p = _mm256_min_epi16(_mm256_max_epi16(a, lo), hi), q = _mm256_min_epi16(_mm256_max_epi16(b, lo), hi);
    return o->dtype == HN_I8 ? _mm256_packs_epi16(p, q) : _mm256_packus_epi16(p, q);
}
#define HN_DW_FINISH_avx2 finish_avx2

#define IVEC_avx512 __m512i
#define ILOAD_avx512(p) _mm512_loadu_si512(p)
#define ISTORE_avx512(p, v) _mm512_storeu_si512(p, v)
#define HN_DW_WIDTH_avx512 64
#define HN_DW_TAPS_avx512 2
#define HN_DW_AT_ONCE_avx512 4
#define HN_DW_SET_avx512 _mm512_set1_epi8
#define HN_DW_XOR_avx512 _mm512_xor_si512
#define HN_DW_DOT_avx512(sum, x, w) _mm512_add_epi32(sum, _mm512_madd_epi16(x, w))
#define HN_DW_INTERLEAVE_avx512(z, r)                                                                          \
    do {                                                                                                       \
        const __m512i none = _mm512_setzero_si512();                                                           \
        const __m512i low = _mm512_unpacklo_epi8((r)[0], (r)[1]), high = _mm512_unpackhi_epi8((r)[0], (r)[1]); \
        (z)[0] = _mm512_unpacklo_epi8(low, none);                                                              \
        (z)[1] = _mm512_unpackhi_epi8(low, none);                                                              \
        (z)[2] = _mm512_unpacklo_epi8(high, none);                                                             \
        (z)[3] = _mm512_unpackhi_epi8(high, none);                                                             \
    } while (0)

AVX512 INLINE __mmask64 first_bytes(int n)
{
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}
#define HN_DW_LOAD_avx512(p, n) _mm512_maskz_loadu_epi8(first_bytes(n), p)
#define HN_DW_STORE_avx512(p, v, n) _mm512_mask_storeu_epi8(p, first_bytes(n), v)

AVX512 INLINE __m512i finish_avx512(const HnDepthwiseRow *d, const __m512i *sum)
{
    const HnByteOut *o = d->finish;
    const __m512i zero = _mm512_set1_epi16((short)o->zero), lo = _mm512_set1_epi16((short)((int)o->lo + o->zero));
    const __m512i hi = _mm512_set1_epi16((short)((int)o->hi + o->zero));
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[j]), _mm512_loadu_ps(d->scale + 16 * j));
        if (d->shift != NULL)
            x = _mm512_add_ps(x, _mm512_loadu_ps(d->shift + 16 * j));
        v[j] = _mm512_cvtps_epi32(x);
    }
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
    const __m512i p = _mm512_min_epi16(_mm512_max_epi16(a, lo), hi), q = _mm512_min_epi16(_mm512_max_epi16(b, lo), hi);
    return o->dtype == HN_I8 ? _mm512_packs_epi16(p, q) : _mm512_packus_epi16(p, q);
}
#define HN_DW_FINISH_avx512 finish_avx512

#define IVEC_vnni __m512i
#define ILOAD_vnni ILOAD_avx512
#define ISTORE_vnni ISTORE_avx512
#define HN_DW_WIDTH_vnni 64
#define HN_DW_TAPS_vnni 4
#define HN_DW_AT_ONCE_vnni 4
#define HN_DW_SET_vnni _mm512_set1_epi8
#define HN_DW_XOR_vnni _mm512_xor_si512
#define HN_DW_DOT_vnni(sum, x, w) _mm512_dpbusd_epi32(sum, x, w)
#define HN_DW_INTERLEAVE_vnni(z, r)                                                                                \
    do {                                                                                                           \
        const __m512i low01 = _mm512_unpacklo_epi8((r)[0], (r)[1]), high01 = _mm512_unpackhi_epi8((r)[0], (r)[1]); \
        const __m512i low23 = _mm512_unpacklo_epi8((r)[2], (r)[3]), high23 = _mm512_unpackhi_epi8((r)[2], (r)[3]); \
        (z)[0] = _mm512_unpacklo_epi16(low01, low23);                                                              \
        (z)[1] = _mm512_unpackhi_epi16(low01, low23);                                                              \
        (z)[2] = _mm512_unpacklo_epi16(high01, high23);                                                            \
        (z)[3] = _mm512_unpackhi_epi16(high01, high23);                                                            \
    } while (0)
#define HN_DW_LOAD_vnni HN_DW_LOAD_avx512
#define HN_DW_STORE_vnni HN_DW_STORE_avx512
#define HN_DW_FINISH_vnni finish_avx512
#define HN_TARGET_vnni __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))

#define HN_LEVEL avx2
#include "cpu/byte_depthwise_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/byte_depthwise_loops.h"
#undef HN_LEVEL
#define HN_LEVEL vnni
#include "cpu/byte_depthwise_loops.h"
#undef HN_LEVEL

/* Plain C: one tap at a time, 16-bit weights; channels are in the same order as with vectors. */
#define PLAIN_WIDTH 16

static void dw_row_plain(const HnDepthwiseRow *d)
{
    const int16_t *w = (const int16_t *)(const void *)d->weights;
    for (int64_t o = 0; o < d->out; o++) {
        int32_t sum[PLAIN_WIDTH];
        memcpy(sum, d->begin, sizeof sum);
        for (int64_t kw = 0; kw < d->kernel_w; kw++)
            for (int64_t kh = 0; kh < d->kernel_h; kh++) {
                const int64_t at = d->first + o * d->stride + kw * d->dilation;
                const uint8_t *x = d->row[kh] != NULL && at >= 0 && at < d->in ? d->row[kh] + at * d->pitch : NULL;
                for (int c = 0; c < d->channels; c++)
                    sum[c] += (x != NULL ? x[c] ^ d->flip : d->pad) * w[(kw * d->kernel_h + kh) * PLAIN_WIDTH + c];
            }
        for (int c = 0; c < d->channels && d->sums == NULL; c++) {
            float v = (float)sum[c] * d->scale[c];
            v = d->shift != NULL ? v + d->shift[c] : v;
            v = v > d->finish->lo ? v : d->finish->lo;
            v = v < d->finish->hi ? v : d->finish->hi;
            d->y[o * d->y_pitch + c] = (uint8_t)((int)nearbyintf(v) + d->finish->zero);
        }
        if (d->sums != NULL)
            memcpy(d->sums + o * PLAIN_WIDTH, sum, sizeof sum);
    }
}

typedef struct {
    void (*row)(const HnDepthwiseRow *d);
    int width, taps; /* channels of a block; rows that are interleaved */
    int lanes;       /* of 16 channels, in which vector j has every fourth group of 4; 0: channels are in order */
} Level;

static const Level *level(void)
{
    static const Level levels[] = { { dw_row_plain, PLAIN_WIDTH, 1, 0 },
                                    { dw_row_avx2, HN_DW_WIDTH_avx2, HN_DW_TAPS_avx2, 2 },
                                    { dw_row_avx512, HN_DW_WIDTH_avx512, HN_DW_TAPS_avx512, 4 },
                                    { dw_row_vnni, HN_DW_WIDTH_vnni, HN_DW_TAPS_vnni, 4 } };
    const HnIsa isa = hn_cpu_isa();
    return &levels[isa >= HN_ISA_VNNI ? 3 : isa >= HN_ISA_AVX512 ? 2 : isa >= HN_ISA_AVX2 ? 1 : 0];
}

/* Where channel c of a block is among the sums. */
static int place_of(const Level *l, int c)
{
    return l->lanes == 0 ? c : c % 16 / 4 * l->lanes * 4 + c / 16 * 4 + c % 4;
}

/* --- the kernel ----------------------------------------------------------------------------------------------------
 */

#define STRETCH 32 /* outputs of a line at a time: what they see stays in the first cache */

typedef struct {
    HnByteProduct product; /* of groups of one column: what its sums begin with and become */
    const Level *level;
    HnWindowAxis h, w;
    int64_t batch, channels, blocks, groups;
    HnPack *packed;
    int32_t *begin; /* [blocks][width], in the order of sums */
    float *scale, *shift;
    uint8_t pad, flip;
    int threads;
    gsize staged, thread_bytes;
} Depthwise;

static gboolean plan_of(const HnStep *s, HnConvPlan *plan)
{
    const HnByteInputs *in = hn_byte_inputs(s);
    const HnTensor *x = hn_byte_input(s, in->x), *w = hn_byte_input(s, in->w);
    return hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, plan, NULL);
}

static const char *depthwise_reject(const HnStep *s)
{
    const HnByteInputs *in = hn_byte_inputs(s);
    const HnTensor *x = hn_byte_input(s, in->x), *w = hn_byte_input(s, in->w);
    HnConvPlan plan;
    if (x->ndim != 3 && x->ndim != 4)
        return "only 1 or 2 spatial axes";
    if (w->ndim < 1 || !plan_of(s, &plan))
        return "the window does not fit";
    if (plan.group < 8 || plan.in_channels != 1 || plan.out_channels != 1)
        return "no filter for each channel";
    if (plan.taps > 4096 || plan.axis[plan.n - 1].dilation * plan.axis[plan.n - 1].kernel > 4096 ||
        plan.axis[plan.n - 1].stride > 64)
        return "very large windows";
    return hn_byte_reject(s, w->dims[0]);
}

static void depthwise_release(HnStep *s)
{
    Depthwise *d = s->state;
    if (d == NULL)
        return;
    hn_pack_unref(d->packed);
    g_free(d->begin);
    g_free(d->scale);
    g_free(d->shift);
    hn_byte_product_clear(&d->product);
    g_free(d);
    s->state = NULL;
}

typedef struct {
    const Depthwise *d;
    const HnStep *s;
} Source;

/* [blocks][kernel_w][groups of taps][sums][taps]: bytes, or with one or two taps 16-bit numbers */
static void pack_weights(void *to, const HnTensor *t, gconstpointer data)
{
    (void)t;
    const Source *from = data;
    const Depthwise *d = from->d;
    const int width = d->level->width, taps = d->level->taps;
    const int64_t all = d->h.kernel * d->w.kernel;
    memset(to, 0, (gsize)(d->blocks * d->w.kernel * d->groups * width) * (taps == 1 ? 2 : 4));
    for (int64_t c = 0; c < d->channels; c++)
        for (int64_t k = 0; k < all; k++) {
            const int64_t kh = k / d->w.kernel, kw = k % d->w.kernel, block = c / width;
            const int64_t group = (block * d->w.kernel + kw) * d->groups + kh / taps;
            const int64_t at = (group * width + place_of(d->level, (int)(c % width))) * taps + kh % taps;
            const int v = hn_byte_weight(from->s, c * all + k, all, 0);
            if (taps == 4)
                ((int8_t *)to)[at] = (int8_t)v;
            else
                ((int16_t *)to)[at] = (int16_t)v;
        }
}

/* What sums begin with and are multiplied by, in the order of sums. */
static gboolean set_columns(Depthwise *d, HnStep *s, GError **error)
{
    HnByteProduct *p = &d->product;
    const int64_t taps = d->h.kernel * d->w.kernel, n = d->blocks * d->level->width;
    g_autofree int8_t *w = g_new(int8_t, (gsize)(d->channels * taps));
    for (int64_t i = 0; i < d->channels * taps; i++)
        w[i] = (int8_t)hn_byte_weight(s, i, taps, 0);
    p->n_groups = 1;
    p->out = d->channels;
    p->segs = 1;
    p->depth = taps;
    hn_byte_product_columns(p, s, w);
    d->begin = g_new0(int32_t, (gsize)n);
    d->scale = g_new0(float, (gsize)n);
    d->shift = g_new0(float, (gsize)n);
    for (int64_t c = 0; c < d->channels; c++) {
        const int64_t at = c / d->level->width * d->level->width + place_of(d->level, (int)(c % d->level->width));
        d->begin[at] = p->begin[c];
        d->scale[at] = p->scale[c];
        d->shift[at] = p->shift[c];
    }
    const Source from = { d, s };
    const gsize bytes = (gsize)(d->blocks * d->w.kernel * d->groups * d->level->width) * (d->level->taps == 1 ? 2 : 4);
    return hn_pack_own(s, hn_byte_inputs(s)->w, pack_weights, d->level->width * 8 + d->level->taps, bytes, &from,
                       &d->packed, error);
}

static gboolean depthwise_prepare(HnStep *s, GError **error)
{
    const HnByteInputs *in = hn_byte_inputs(s);
    const HnTensor *zero = hn_byte_input(s, in->x_zero), *x = hn_byte_input(s, in->x), *y = s->out[0].slot->tensor;
    HnConvPlan plan;
    Depthwise *d = g_new0(Depthwise, 1);
    s->state = d;
    plan_of(s, &plan);
    d->level = level();
    d->h = plan.n > 1 ? plan.axis[0] : (HnWindowAxis){ .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1 };
    d->w = plan.axis[plan.n - 1];
    d->batch = plan.batch;
    d->channels = plan.group;
    d->blocks = (d->channels + d->level->width - 1) / d->level->width;
    d->groups = (d->h.kernel + d->level->taps - 1) / d->level->taps;
    d->flip = x->dtype == HN_I8 ? 128 : 0;
    d->pad = (uint8_t)((zero != NULL ? hn_tensor_get_i64(zero, 0) : 0) + d->flip);
    d->threads = hn_cpu_threads_for(s, (double)y->n * (double)plan.taps / 2);
    const int64_t columns = (STRETCH - 1) * d->w.stride + (d->w.kernel - 1) * d->w.dilation + 1;
    d->staged = (gsize)(columns * d->groups * d->level->width * 4 + 63) / 64 * 64;
    d->thread_bytes = d->staged + (gsize)(STRETCH * d->level->width) * sizeof(int32_t) * 2 +
                      (gsize)(d->h.kernel * (int64_t)sizeof(void *) + 63) / 64 * 64;
    s->scratch_bytes = d->thread_bytes * (gsize)d->threads;
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    return set_columns(d, s, error);
}

/* Sums in their order become results of channels in order, by way of `in_order`. */
static void finish_sums(const Depthwise *d, const HnByteOut *o, const HnDepthwiseRow *r, int32_t *in_order, char *y,
                        gsize size, int64_t pitch, int64_t c0)
{
    const int cols = hn_byte_cols();
    for (int64_t i = 0; i < r->out; i++) {
        for (int c = 0; c < r->channels; c++)
            in_order[c] = r->sums[i * d->level->width + place_of(d->level, c)];
        for (int c = 0; c < r->channels; c += cols)
            hn_byte_finish(o, y + (gsize)(i * pitch + c) * size, pitch, in_order + c, 1, MIN(cols, r->channels - c),
                           c0 + c);
    }
}

/* Lines [lo, hi) of the result. */
static void run_lines(const HnStep *s, int part, int64_t lo, int64_t hi)
{
    const Depthwise *d = s->state;
    const HnWindowAxis *h = &d->h, *w = &d->w;
    const HnTensor *y = s->out[0].slot->tensor;
    const int width = d->level->width;
    const int64_t xp = hn_slot_pitch(s->in[0].slot), yp = hn_slot_pitch(s->out[0].slot);
    const gsize size = hn_dtype_size(y->dtype);
    HnByteOut out = d->product.finish;
    out.table = s->table;
    const gboolean through = size != 1 || out.table != NULL || !out.small; /* sums */
    char *scratch = (char *)s->scratch + (gsize)part * d->thread_bytes;
    int32_t *sums = (int32_t *)(void *)(scratch + d->staged), *in_order = sums + STRETCH * width;
    const uint8_t **row = (const uint8_t **)(void *)(in_order + STRETCH * width);
    const gsize packed = (gsize)(w->kernel * d->groups * width) * (d->level->taps == 1 ? 2 : 4);
    HnDepthwiseRow r = { .row = row,
                         .kernel_h = h->kernel,
                         .kernel_w = w->kernel,
                         .stride = w->stride,
                         .dilation = w->dilation,
                         .in = w->in,
                         .pitch = xp,
                         .pad = d->pad,
                         .flip = d->flip,
                         .staged = (uint8_t *)scratch,
                         .finish = &out,
                         .y_pitch = yp,
                         .sums = through ? sums : NULL };
    for (int64_t i = lo; i < hi; i++)
        for (int64_t b = 0; b < d->blocks; b++) {
            const uint8_t *x = (const uint8_t *)hn_cpu_data(&s->in[0]) + i / h->out * h->in * w->in * xp + b * width;
            for (int64_t k = 0; k < h->kernel; k++) {
                const int64_t line = i % h->out * h->stride - h->pad + k * h->dilation;
                row[k] = line >= 0 && line < h->in ? x + line * w->in * xp : NULL;
            }
            r.channels = (int)MIN(width, d->channels - b * width);
            r.weights = (const uint8_t *)hn_pack_data(d->packed, s, hn_byte_inputs(s)->w) + (gsize)b * packed;
            r.begin = d->begin + b * width;
            r.scale = d->scale + b * width;
            r.shift = out.shift != NULL ? d->shift + b * width : NULL;
            for (int64_t o = 0; o < w->out; o += STRETCH) {
                r.out = MIN(STRETCH, w->out - o);
                r.first = o * w->stride - w->pad;
                r.columns = (r.out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
                char *to = (char *)y->data + (gsize)((i * w->out + o) * yp + b * width) * size;
                r.y = (uint8_t *)to;
                d->level->row(&r);
                if (through)
                    finish_sums(d, &out, &r, in_order, to, size, yp, b * width);
            }
        }
}

static gboolean depthwise_run(HnStep *s, GError **error)
{
    (void)error;
    const Depthwise *d = s->state;
    const int64_t lines = d->batch * d->h.out;
    if (d->threads == 1) {
        run_lines(s, 0, 0, lines);
        return TRUE;
    }
#pragma omp parallel for num_threads(d->threads)
    for (int t = 0; t < d->threads; t++)
        run_lines(s, t, lines * t / d->threads, lines * (t + 1) / d->threads);
    return TRUE;
}

const HnKernel hn_cpu_byte_depthwise = {
    .name = "cpu.byte_depthwise",
    .reject = depthwise_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};
