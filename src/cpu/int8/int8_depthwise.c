/*
 * QuantConv, QLinearConv and ConvInteger with a filter for each channel, or groups of few channels, channels last.
 *
 * Tiles of int8_depthwise_kernel.h read columns where they are, and do so for most windows; what is left, and plain C,
 * goes by rows, which are copied with the taps of a group side by side.
 */
#include "cpu/int8/int8_depthwise.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/int8/int8_conv.h"
#include "cpu/int8/int8_depthwise_kernel.h"
#include "cpu/int8/int8_gemm.h"

/* --- levels --------------------------------------------------------------------------------------------------------
 */

#define HN_LEVEL avx512
#include "cpu/int8/int8_depthwise_loops.h"
#undef HN_LEVEL
#define HN_LEVEL vnni
#include "cpu/int8/int8_depthwise_loops.h"
#undef HN_LEVEL

/* --- few channels: 16 of them with four taps fill a vector ---------------------------------------------------------
 */

#define VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma,f16c")))
#define NARROW 16
#define NARROW_AT_ONCE 8 /* outputs */

/* Columns of four lines, each `step` bytes apart or the same everywhere. */
VBMI INLINE void stage_columns(uint8_t *to, const uint8_t *const *row, const int64_t *step, int64_t columns,
                               int64_t next, __mmask16 mask, const gboolean whole, uint8_t flip)
{
    const __m512i flips = _mm512_set1_epi8((char)flip);
    uint8_t order[64];
    for (int i = 0; i < 64; i++)
        order[i] = (uint8_t)(i % 4 * 16 + i / 4);
    const __m512i turn = _mm512_loadu_si512(order);
    const uint8_t *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    for (int64_t i = 0; i < columns; i++, to += next, a += step[0], b += step[1], c += step[2], d += step[3]) {
        __m256i low, high;
        if (whole) {
            low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)),
                                          _mm_loadu_si128((const __m128i *)(const void *)b), 1);
            high = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)c)),
                                           _mm_loadu_si128((const __m128i *)(const void *)d), 1);
        } else {
            low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_maskz_loadu_epi8(mask, a)),
                                          _mm_maskz_loadu_epi8(mask, b), 1);
            high = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_maskz_loadu_epi8(mask, c)),
                                           _mm_maskz_loadu_epi8(mask, d), 1);
        }
        const __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        _mm512_storeu_si512(to, _mm512_permutexvar_epi8(turn, _mm512_xor_si512(all, flips)));
    }
}

VBMI static void stage_narrow(const HnDepthwiseRow *d)
{
    const int64_t groups = d->groups;
    const int64_t from = CLAMP(-d->first, 0, d->columns), to = CLAMP(d->in - d->first, from, d->columns);
    const __mmask16 mask = (__mmask16)((1u << d->channels) - 1);
    uint8_t pad[NARROW];
    memset(pad, d->pad ^ d->flip, sizeof pad);
    for (int64_t g = 0; g < groups; g++) {
        const uint8_t *row[4], *none[4] = { pad, pad, pad, pad };
        int64_t step[4];
        const int64_t still[4] = { 0, 0, 0, 0 };
        for (int64_t t = 0; t < 4; t++) {
            const uint8_t *line = g * 4 + t < d->seen ? d->row[g * 4 + t] : NULL;
            row[t] = line != NULL ? line + (d->first + from) * d->pitch : pad;
            step[t] = line != NULL ? d->pitch : 0;
        }
        uint8_t *at = d->staged + g * 64;
        stage_columns(at, none, still, from, groups * 64, mask, TRUE, d->flip);
        if (d->channels == NARROW)
            stage_columns(at + from * groups * 64, row, step, to - from, groups * 64, mask, TRUE, d->flip);
        else
            stage_columns(at + from * groups * 64, row, step, to - from, groups * 64, mask, FALSE, d->flip);
        stage_columns(at + to * groups * 64, none, still, d->columns - to, groups * 64, mask, TRUE, d->flip);
    }
}

/* n outputs of `lines` lines, constants after inlining; n is 1 or a multiple of 4. */
VBMI INLINE void some_narrow(const HnDepthwiseRow *d, int64_t o, const int n, const int lines)
{
    const HnInt8Out *out = d->finish;
    const int64_t groups = d->groups, column = groups * 64;
    const uint8_t *w = d->weights;
    __m512i sum[2][NARROW_AT_ONCE];
    HN_UNROLL
    for (int i = 0; i < n * lines; i++)
        sum[i / n][i % n] = _mm512_loadu_si512(d->begin);
    for (int64_t k = 0; k < d->kernel_w; k++) {
        const uint8_t *x = d->staged + (o * d->stride + k * d->dilation) * column;
        for (int64_t g = 0; g < groups; g++, w += 64, x += 64) {
            const __m512i v = _mm512_loadu_si512(w), u = lines > 1 ? _mm512_loadu_si512(w + d->weights_line) : v;
            HN_UNROLL
            for (int i = 0; i < n; i++) {
                const __m512i at = _mm512_loadu_si512(x + i * d->stride * column);
                sum[0][i] = _mm512_dpbusd_epi32(sum[0][i], at, v);
                if (lines > 1)
                    sum[1][i] = _mm512_dpbusd_epi32(sum[1][i], at, u);
            }
        }
    }
    if (d->sums != NULL) {
        HN_UNROLL
        for (int i = 0; i < n * lines; i++)
            _mm512_storeu_si512(d->sums + i / n * d->sums_line + (o + i % n) * NARROW, sum[i / n][i % n]);
        return;
    }
    const __m512i zero = _mm512_set1_epi16((short)out->zero), lo = _mm512_set1_epi16((short)((int)out->lo + out->zero));
    const __m512i hi = _mm512_set1_epi16((short)((int)out->hi + out->zero));
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512 scale = _mm512_loadu_ps(d->scale);
    const __m512 shift = d->shift != NULL ? _mm512_loadu_ps(d->shift) : _mm512_set1_ps(-0.0f);
    const __mmask16 mask = (__mmask16)((1u << d->channels) - 1);
    HN_UNROLL
    for (int i = 0; i<n * lines; i += n> 1 ? 4 : 1) {
        const __m512i *of = sum[i / n] + i % n;
        __m512i v[4];
        HN_UNROLL
        for (int j = 0; j < 4; j++)
            v[j] =
                _mm512_cvtps_epi32(_mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(of[n > 1 ? j : 0]), scale), shift));
        const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
        const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
        const __m512i p = _mm512_min_epi16(_mm512_max_epi16(a, lo), hi),
                      q = _mm512_min_epi16(_mm512_max_epi16(b, lo), hi);
        const __m512i y = _mm512_permutexvar_epi32(in_order, out->dtype == HN_I8 ? _mm512_packs_epi16(p, q)
                                                                                 : _mm512_packus_epi16(p, q));
        uint8_t *to = d->y + i / n * d->y_line + (o + i % n) * d->y_pitch;
        _mm_mask_storeu_epi8(to, mask, _mm512_castsi512_si128(y));
        if (n > 1) {
            _mm_mask_storeu_epi8(to + d->y_pitch, mask, _mm512_extracti32x4_epi32(y, 1));
            _mm_mask_storeu_epi8(to + 2 * d->y_pitch, mask, _mm512_extracti32x4_epi32(y, 2));
            _mm_mask_storeu_epi8(to + 3 * d->y_pitch, mask, _mm512_extracti32x4_epi32(y, 3));
        }
    }
}

VBMI static void dw_row_narrow(const HnDepthwiseRow *d)
{
    stage_narrow(d);
    int64_t o = 0;
    if (d->lines > 1) {
        for (; o + NARROW_AT_ONCE <= d->out; o += NARROW_AT_ONCE)
            some_narrow(d, o, NARROW_AT_ONCE, 2);
        for (; o + 4 <= d->out; o += 4)
            some_narrow(d, o, 4, 2);
        for (; o < d->out; o++)
            some_narrow(d, o, 1, 2);
        return;
    }
    for (; o + NARROW_AT_ONCE <= d->out; o += NARROW_AT_ONCE)
        some_narrow(d, o, NARROW_AT_ONCE, 1);
    for (; o + 4 <= d->out; o += 4)
        some_narrow(d, o, 4, 1);
    for (; o < d->out; o++)
        some_narrow(d, o, 1, 1);
}

/* Plain C: one tap at a time, 16-bit weights; channels are in the same order as with vectors. */
#define PLAIN_WIDTH 16

static void dw_row_plain(const HnDepthwiseRow *d)
{
    const int16_t *w = (const int16_t *)(const void *)d->weights;
    for (int64_t o = 0; o < d->out; o++) {
        int32_t sum[PLAIN_WIDTH];
        memcpy(sum, d->begin, sizeof sum);
        for (int64_t kw = 0; kw < d->kernel_w; kw++)
            for (int64_t kh = 0; kh < d->seen; kh++) {
                const int64_t at = d->first + o * d->stride + kw * d->dilation;
                const uint8_t *x = d->row[kh] != NULL && at >= 0 && at < d->in ? d->row[kh] + at * d->pitch : NULL;
                for (int c = 0; c < d->channels; c++)
                    sum[c] += (x != NULL ? x[c] ^ d->flip : d->pad) * w[(kw * d->seen + kh) * PLAIN_WIDTH + c];
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
    void (*row)(const HnDepthwiseRow *d); /* NULL: tiles */
    int width, taps;                      /* channels of a block; rows that are interleaved */
    int lanes; /* of 16 channels, in which vector j has every fourth group of 4; 0: channels are in order */
} Level;

#define LONG_STRETCH 256       /* outputs of a line that tiles compute at a time */
#define MAX_POINTERS (1 << 17) /* to columns of the source */

/* Columns that a stretch of tiles sees, lines from the window's first to its last. */
static int64_t tile_columns(const HnWindowAxis *w)
{
    return (MIN(LONG_STRETCH, w->out) - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
}

static int64_t row_span(const HnWindowAxis *h)
{
    return (h->kernel - 1) * h->dilation + 1;
}

/* For so many channels and such a window: narrow vectors do less for each, but there are fewer that nobody needs. */
static const Level *level(int64_t channels, const HnWindowAxis *h, const HnWindowAxis *w)
{
    static const struct {
        Level level;
        double cost, begin; /* of a block's output, estimated; of its line */
        HnIsa least, most;
    } levels[] = {
        { { dw_row_plain, PLAIN_WIDTH, 1, 0 }, 1e6, 0, HN_ISA_NONE, HN_ISA_AVX2 },
        { { NULL, HN_INT8_DEPTH_PAIR_BLOCK, HN_INT8_DEPTH_PAIR, 0 }, 0.2, 0, HN_ISA_AVX2, HN_ISA_AMX },
        { { dw_row_avx512, HN_DW_WIDTH_avx512, HN_DW_TAPS_avx512, 4 }, 1.4, 0, HN_ISA_AVX512, HN_ISA_AVX512 },
        { { NULL, HN_INT8_DEPTH_QUAD_BLOCK, HN_INT8_DEPTH_QUAD, 0 }, 0.2, 0, HN_ISA_VNNI, HN_ISA_AMX },
        { { dw_row_narrow, NARROW, 4, 0 }, 0.21, 1.5, HN_ISA_VNNI, HN_ISA_AMX },
        { { dw_row_vnni, HN_DW_WIDTH_vnni, HN_DW_TAPS_vnni, 4 }, 1, 0, HN_ISA_VNNI, HN_ISA_AMX }
    };
    const HnIsa isa = hn_cpu_isa();
    const Level *best = NULL;
    double least = 0;
    const gboolean known = hn_int8_depth_known(h->kernel, w->kernel, w->stride, w->dilation);
    const gboolean vbmi = __builtin_cpu_supports("avx512vbmi"), fits = row_span(h) < MAX_POINTERS / tile_columns(w);
    /* tiles read columns where they are: the others copy each of them, of which an output has `stride` */
    const double of_tiles = (known ? 1 : 1.6) * (w->stride > 1 ? 0.7 : 1);
    for (guint i = 0; i < G_N_ELEMENTS(levels); i++) {
        const Level *l = &levels[i].level;
        const double each = levels[i].cost * (l->row == NULL ? of_tiles : 1) + levels[i].begin / (double)w->out;
        const double cost = each * (double)((channels + l->width - 1) / l->width);
        const gboolean quads = l->row == NULL && l->taps == HN_INT8_DEPTH_QUAD;
        if (isa < levels[i].least || isa > levels[i].most || (best != NULL && cost >= least))
            continue;
        if (l->row == NULL && (!fits || channels < l->width))
            continue;
        if ((quads && !known) || ((quads || l->row == dw_row_narrow) && !vbmi))
            continue;
        best = l;
        least = cost;
    }
    return best;
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
    HnInt8Gemm product; /* of groups of one column: what its sums begin with and become */
    const Level *level;
    HnWindowAxis h, w;
    int64_t batch, channels, blocks, groups;
    int64_t each; /* channels of a group: 1, or few and no more outputs */
    HnPack *packed;
    int32_t *begin; /* [blocks][width], in the order of sums */
    float *scale, *shift;
    uint8_t pad, flip;
    int lines;                 /* of outputs at a time */
    const HnInt8DepthFn *tile; /* by outputs less 1; NULL: rows */
    uint8_t *padding;          /* [channels], for tiles */
    int threads;
    gsize staged, thread_bytes;
} Depthwise;

static const char *depthwise_reject(const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *w = hn_int8_input(s, in->w);
    HnConvPlan plan;
    if (x->ndim != 3 && x->ndim != 4)
        return "only 1 or 2 spatial axes";
    if (w->ndim < 1 || !hn_int8_conv_plan(s, &plan))
        return "the window does not fit";
    if (plan.group < 8 || plan.in_channels != 1 || plan.out_channels != 1)
        return "no filter for each channel";
    if (plan.taps > 4096 || plan.axis[plan.n - 1].dilation * plan.axis[plan.n - 1].kernel > 4096 ||
        plan.axis[plan.n - 1].stride > 64)
        return "very large windows";
    return hn_int8_reject(s, w->dims[0]);
}

/* For instructions and windows that hn_int8_group_tiles() has been made for. */
static const Level of_groups = { NULL, HN_INT8_DEPTH_QUAD_BLOCK, HN_INT8_DEPTH_QUAD, 0 };

static const char *group_reject(const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *w = hn_int8_input(s, in->w);
    HnConvPlan plan;
    if (hn_cpu_isa() < HN_ISA_VNNI || !__builtin_cpu_supports("avx512vbmi"))
        return "no such instructions";
    if (x->ndim != 4 || w->ndim < 1 || !hn_int8_conv_plan(s, &plan))
        return "only 2 spatial axes";
    const HnWindowAxis *h = &plan.axis[0], *a = &plan.axis[1];
    if (plan.group < 2 || plan.in_channels != plan.out_channels ||
        plan.group * plan.in_channels < HN_INT8_DEPTH_QUAD_BLOCK)
        return "no groups, or of other outputs than inputs";
    if (row_span(h) >= MAX_POINTERS / tile_columns(a) ||
        hn_int8_group_tiles(plan.in_channels, h->kernel, a->kernel, a->stride, a->dilation, FALSE) == NULL)
        return "no tiles for such windows or groups";
    return hn_int8_reject(s, w->dims[0]);
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
    g_free(d->padding);
    hn_int8_gemm_clear(&d->product);
    g_free(d);
    s->state = NULL;
}

typedef struct {
    const Depthwise *d;
    const HnStep *s;
} Source;

/* Of weights that are multiplied at a time. */
static int64_t tile_groups(const Depthwise *d)
{
    if (d->each > 1)
        return d->h.kernel * d->w.kernel * d->each / HN_INT8_DEPTH_QUAD;
    return hn_int8_depth_groups(d->level->taps, d->h.kernel, d->w.kernel);
}

/* Bytes of a block's weights for one line. */
static gsize block_bytes(const Depthwise *d)
{
    if (d->tile != NULL)
        return (gsize)(tile_groups(d) * d->level->width) * 4; /* of two 16-bit numbers or four bytes */
    return (gsize)(d->w.kernel * d->groups * d->level->width) * (d->level->taps == 1 ? 2 : 4);
}

/* The first channel of a block: the last one of tiles lies back. */
static int64_t block_begin(const Depthwise *d, int64_t block)
{
    const int64_t at = block * d->level->width;
    return d->tile != NULL ? MIN(at, d->channels - d->level->width) : at;
}

/* [blocks][groups of taps][channels][taps]: of two taps 16-bit numbers, of four bytes */
static void pack_tiles(void *to, const HnTensor *t, gconstpointer data)
{
    (void)t;
    const Source *from = data;
    const Depthwise *d = from->d;
    const HnInt8Weights weights = hn_int8_weights(from->s);
    const int64_t all = d->h.kernel * d->w.kernel, groups = tile_groups(d);
    const int width = d->level->width, taps = d->level->taps;
    int64_t n = 0;
    for (int64_t b = 0; b < d->blocks; b++)
        for (int64_t i = 0; i < groups; i++) {
            int64_t of[HN_INT8_DEPTH_QUAD];
            hn_int8_depth_group(taps, d->h.kernel, d->w.kernel, i, of);
            for (int k = 0; k < width * taps; k++, n++) {
                const int64_t tap = of[k % taps], at = (block_begin(d, b) + k / taps) * all + tap;
                const int v = tap >= 0 ? hn_int8_weight(&weights, at, all, 0) : 0;
                if (taps == HN_INT8_DEPTH_QUAD)
                    ((int8_t *)to)[n] = (int8_t)v;
                else
                    ((int16_t *)to)[n] = (int16_t)v;
            }
        }
}

/* [blocks][rows][each / 4][columns of the window][channels][4] */
static void pack_groups(void *to, const HnTensor *t, gconstpointer data)
{
    (void)t;
    const Source *from = data;
    const Depthwise *d = from->d;
    const HnInt8Weights weights = hn_int8_weights(from->s);
    const int64_t rows = d->h.kernel, columns = d->w.kernel, parts = d->each / HN_INT8_DEPTH_QUAD;
    const int64_t all = rows * columns, four = HN_INT8_DEPTH_QUAD, width = d->level->width;
    int8_t *next = to;
    for (int64_t b = 0; b < d->blocks; b++)
        for (int64_t i = 0; i < rows * parts * columns; i++)
            for (int64_t k = 0; k < width * four; k++) {
                const int64_t tap = i / (parts * columns) * columns + i % columns;
                const int64_t out = block_begin(d, b) + k / four, in = i / columns % parts * four + k % four;
                *next++ = (int8_t)hn_int8_weight(&weights, (out * d->each + in) * all + tap, d->each * all, 0);
            }
}

/* [blocks][lines][kernel_w][groups of taps][sums][taps]: bytes, or with one or two taps 16-bit numbers */
static void pack_weights(void *to, const HnTensor *t, gconstpointer data)
{
    (void)t;
    const Source *from = data;
    const Depthwise *d = from->d;
    const HnInt8Weights weights = hn_int8_weights(from->s);
    const int width = d->level->width, taps = d->level->taps;
    const int64_t all = d->h.kernel * d->w.kernel;
    memset(to, 0, (gsize)(d->blocks * d->lines) * block_bytes(d));
    for (int64_t c = 0; c < d->channels; c++)
        for (int64_t k = 0; k < all * d->lines; k++) {
            const int64_t line = k / all, kh = k % all / d->w.kernel + line, kw = k % d->w.kernel;
            const int64_t group = ((c / width * d->lines + line) * d->w.kernel + kw) * d->groups + kh / taps;
            const int64_t at = (group * width + place_of(d->level, (int)(c % width))) * taps + kh % taps;
            const int v = hn_int8_weight(&weights, c * all + k % all, all, 0);
            if (taps == 4)
                ((int8_t *)to)[at] = (int8_t)v;
            else
                ((int16_t *)to)[at] = (int16_t)v;
        }
}

/* What sums begin with and are multiplied by, in the order of sums. */
static gboolean set_columns(Depthwise *d, HnStep *s, GError **error)
{
    HnInt8Gemm *p = &d->product;
    const int64_t taps = d->h.kernel * d->w.kernel * d->each, n = d->blocks * d->level->width;
    g_autofree int8_t *w = g_new(int8_t, (gsize)(d->channels * taps));
    const HnInt8Weights weights = hn_int8_weights(s);
    for (int64_t i = 0; i < d->channels * taps; i++)
        w[i] = (int8_t)hn_int8_weight(&weights, i, taps, 0);
    p->n_groups = 1;
    p->out = d->channels;
    p->segs = 1;
    p->depth = taps;
    hn_int8_gemm_columns(p, s, w);
    d->begin = g_new0(int32_t, (gsize)n);
    d->scale = g_new0(float, (gsize)n);
    d->shift = g_new0(float, (gsize)n);
    /* pairs are of signed bytes as they are */
    const int32_t *begin = d->tile != NULL && d->level->taps == HN_INT8_DEPTH_PAIR ? p->begin_signed : p->begin;
    for (int64_t i = 0; i < n; i++) {
        const int64_t block = i / d->level->width, c = block_begin(d, block) + i % d->level->width;
        if (c >= d->channels)
            break;
        const int64_t at = block * d->level->width + place_of(d->level, (int)(i % d->level->width));
        d->begin[at] = begin[c];
        d->scale[at] = p->scale[c];
        d->shift[at] = p->shift[c];
    }
    const Source from = { d, s };
    const guint64 how = (guint64)((d->level->width * 8 + d->level->taps) * 4 + d->lines) + (d->each > 1 ? 2048 : 0);
    return hn_pack_own(s, hn_int8_inputs(s)->w,
                       d->each > 1       ? pack_groups
                       : d->tile != NULL ? pack_tiles
                                         : pack_weights,
                       hn_int8_variant(s, how), (gsize)(d->blocks * d->lines) * block_bytes(d), &from, &d->packed,
                       error);
}

/* Scratch memory of a thread: of rows what they see, sums twice, sums in order, lines; of tiles pointers and sums. */
static void set_scratch(Depthwise *d)
{
    const gsize number = sizeof(int32_t), pointer = sizeof(void *);
    const int64_t columns = (STRETCH - 1) * d->w.stride + (d->w.kernel - 1) * d->w.dilation + 1;
    if (d->tile != NULL) {
        d->staged = (gsize)((row_span(&d->h) + 1) * tile_columns(&d->w)) * pointer;
        d->thread_bytes = d->staged + (gsize)row_span(&d->h) * sizeof(int64_t) + (gsize)d->h.kernel * pointer +
                          HN_INT8_DEPTH_NX * HN_INT8_MAX_COLS * number;
    } else {
        d->staged = (gsize)(columns * d->groups * d->level->width * 4 + 63) / 64 * 64;
        d->thread_bytes =
            d->staged + (gsize)(STRETCH * d->level->width) * number * 3 + (gsize)(d->h.kernel + 1) * pointer;
    }
    d->thread_bytes = (d->thread_bytes + 63) / 64 * 64;
}

static gboolean depthwise_prepare(HnStep *s, GError **error)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *zero = hn_int8_input(s, in->x_zero), *x = hn_int8_input(s, in->x), *y = s->out[0].slot->tensor;
    HnConvPlan plan;
    Depthwise *d = g_new0(Depthwise, 1);
    s->state = d;
    hn_int8_conv_plan(s, &plan);
    d->h = plan.n > 1 ? plan.axis[0] : hn_window_one();
    d->w = plan.axis[plan.n - 1];
    d->batch = plan.batch;
    d->each = plan.in_channels;
    d->channels = plan.group * d->each;
    d->level = d->each > 1 ? &of_groups : level(d->channels, &d->h, &d->w);
    d->blocks = (d->channels + d->level->width - 1) / d->level->width;
    d->groups = (d->h.kernel + d->level->taps - 1) / d->level->taps;
    /* a second line where a tap is free for it */
    d->lines = d->h.stride == 1 && d->h.dilation == 1 && d->h.kernel < d->groups * d->level->taps ? 2 : 1;
    if (d->each > 1)
        d->tile = hn_int8_group_tiles(d->each, d->h.kernel, d->w.kernel, d->w.stride, d->w.dilation, x->dtype == HN_I8);
    else if (d->level->row == NULL)
        d->tile = hn_int8_depth_tiles(d->level->taps, d->h.kernel, d->w.kernel, d->w.stride, d->w.dilation,
                                      x->dtype == HN_I8);
    d->lines = d->tile != NULL ? 1 : d->lines;
    d->flip = x->dtype == HN_I8 ? 128 : 0;
    d->pad = (uint8_t)((zero != NULL ? hn_tensor_get_i64(zero, 0) : 0) + d->flip);
    d->threads = hn_cpu_threads_for(s, (double)y->n * (double)(plan.taps * d->each) / 2);
    if (d->tile != NULL) {
        d->padding = g_malloc((gsize)d->channels);
        memset(d->padding, d->pad ^ d->flip, (gsize)d->channels);
    }
    set_scratch(d);
    s->scratch_bytes = d->thread_bytes * (gsize)d->threads;
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    return set_columns(d, s, error);
}

/* Sums of a line in their order become results of channels in order, by way of `in_order`. */
static void finish_sums(const Depthwise *d, const HnInt8Out *o, const HnDepthwiseRow *r, const int32_t *sums,
                        int32_t *in_order, char *y, gsize size, int64_t c0)
{
    const int cols = hn_int8_cols();
    for (int64_t i = 0; i < r->out; i++) {
        for (int c = 0; c < r->channels; c++)
            in_order[c] = sums[i * d->level->width + place_of(d->level, c)];
        for (int c = 0; c < r->channels; c += cols)
            hn_int8_finish(o, y + (gsize)(i * r->y_pitch + c) * size, r->y_pitch, in_order + c, 1,
                           MIN(cols, r->channels - c), c0 + c);
    }
}

/* Lines [lo, hi) of the result. */
static void run_lines(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Depthwise *d = s->state;
    const HnWindowAxis *h = &d->h, *w = &d->w;
    const HnTensor *y = s->out[0].slot->tensor;
    const int width = d->level->width;
    const int64_t xp = hn_slot_pitch(s->in[0].slot), yp = hn_slot_pitch(s->out[0].slot);
    const gsize size = hn_dtype_size(y->dtype);
    const HnInt8Out out = d->product.finish;
    const gboolean through = size != 1 || !out.small; /* sums */
    char *scratch = (char *)s->scratch + (gsize)thread * d->thread_bytes;
    int32_t *sums = (int32_t *)(void *)(scratch + d->staged), *in_order = sums + 2 * STRETCH * width;
    const uint8_t **row = (const uint8_t **)(void *)(in_order + STRETCH * width);
    HnDepthwiseRow r = { .row = row,
                         .groups = d->groups,
                         .kernel_w = w->kernel,
                         .stride = w->stride,
                         .dilation = w->dilation,
                         .in = w->in,
                         .pitch = xp,
                         .end = (const uint8_t *)hn_cpu_data(&s->in[0]) + (d->batch * h->in * w->in - 1) * xp +
                                d->channels,
                         .pad = d->pad,
                         .flip = d->flip,
                         .staged = (uint8_t *)scratch,
                         .weights_line = (int64_t)block_bytes(d),
                         .finish = &out,
                         .y_pitch = yp,
                         .y_line = w->out * yp,
                         .sums = through ? sums : NULL,
                         .sums_line = STRETCH * width };
    for (int64_t i = lo; i < hi; i += r.lines) {
        r.lines = (int)MIN(MIN(d->lines, hi - i), h->out - i % h->out);
        r.seen = h->kernel + r.lines - 1;
        for (int64_t b = 0; b < d->blocks; b++) {
            const uint8_t *x = (const uint8_t *)hn_cpu_data(&s->in[0]) + i / h->out * h->in * w->in * xp + b * width;
            for (int64_t k = 0; k < r.seen; k++) {
                const int64_t line = i % h->out * h->stride - h->pad + k * h->dilation;
                row[k] = line >= 0 && line < h->in ? x + line * w->in * xp : NULL;
            }
            r.channels = (int)MIN(width, d->channels - b * width);
            r.weights = (const uint8_t *)hn_pack_data(d->packed, s, hn_int8_inputs(s)->w) +
                        (gsize)(b * d->lines) * block_bytes(d);
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
                for (int l = 0; l < r.lines; l++) {
                    uint8_t *line = r.y + l * r.y_line;
                    if (!through && out.map != NULL)
                        hn_int8_lut_rows(out.map, line, yp, line, yp, r.out, r.channels);
                    if (through)
                        finish_sums(d, &out, &r, sums + l * r.sums_line, in_order, to + (gsize)(l * r.y_line) * size,
                                    size, b * width);
                }
            }
        }
    }
}

/* --- by tiles ------------------------------------------------------------------------------------------------------
 */

#define STRIP_BYTES (24 << 10) /* of source rows that a row of outputs looks at: stays in the first cache */
#define STRIP_LEAST 8          /* blocks */

/* A stretch of the source: pointers to its columns, or to padding, of the rows that lines of outputs looked at last. */
typedef struct {
    const Depthwise *d;
    const uint8_t *x;
    int64_t pitch, first, columns;
    const uint8_t **column;     /* [row_span()][columns], and of a row of padding */
    int64_t *line;              /* [row_span()]: whose columns they are; -1: nobody's */
    const uint8_t *const **row; /* [rows of the window] */
} Rows;

static void point(const Rows *r, int64_t line, const uint8_t **at)
{
    const int64_t in = r->d->w.in;
    const int64_t begin = line >= 0 ? CLAMP(-r->first, 0, r->columns) : r->columns;
    const int64_t end = line >= 0 ? CLAMP(in - r->first, begin, r->columns) : r->columns;
    for (int64_t i = 0; i < begin; i++)
        at[i] = r->d->padding;
    const uint8_t *x = begin < end ? r->x + (line * in + r->first + begin) * r->pitch : NULL;
    for (int64_t i = begin; i < end; i++, x += r->pitch)
        at[i] = x;
    for (int64_t i = end; i < r->columns; i++)
        at[i] = r->d->padding;
}

/* Outputs from column o of the result on. */
static void begin_rows(Rows *r, int64_t o, int64_t n)
{
    const HnWindowAxis *w = &r->d->w;
    const int64_t span = row_span(&r->d->h);
    r->first = o * w->stride - w->pad;
    r->columns = (n - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    for (int64_t k = 0; k < span; k++)
        r->line[k] = -1;
    point(r, -1, r->column + span * r->columns);
}

static void find_rows(Rows *r, int64_t line)
{
    const HnWindowAxis *h = &r->d->h;
    const int64_t span = row_span(h), image = line / h->out;
    int64_t at = (line - image * h->out) * h->stride - h->pad;
    for (int64_t k = 0; k < h->kernel; k++, at += h->dilation) {
        const int64_t of = image * h->in + at;
        const int64_t slot = at >= 0 && at < h->in ? (guint32)at % (guint32)span : span; /* short divisions are fast */
        r->row[k] = r->column + slot * r->columns;
        if (slot < span && r->line[slot] != of) {
            point(r, of, r->column + slot * r->columns);
            r->line[slot] = of;
        }
    }
}

/* Outputs through sums, tile by tile and block by block. */
static void tile_sums(const Depthwise *d, const HnInt8DepthKernel *t, int64_t n, const HnInt8Out *o, char *y,
                      gsize size)
{
    HnInt8DepthKernel one = *t;
    one.tiles = 1;
    for (int64_t i = 0; i < t->tiles; i++, one.column += n * d->w.stride, y += (gsize)(n * t->y_pitch) * size)
        for (one.first = t->first; one.first < t->end; one.first = one.end) {
            one.end = one.first + 1;
            d->tile[n - 1](&one);
            const int64_t c = block_begin(d, one.first);
            hn_int8_finish(o, y + (gsize)c * size, t->y_pitch, t->sums, n, d->level->width, c);
        }
}

/* n outputs of a line. */
static void run_packed(const Depthwise *d, HnInt8DepthKernel *t, int64_t outputs, const HnInt8Out *out, char *y,
                       gsize size)
{
    for (int64_t o = 0, n; o < outputs; o += n * t->tiles) {
        n = MIN(HN_INT8_DEPTH_NX, outputs - o);
        t->tiles = n == HN_INT8_DEPTH_NX ? (outputs - o) / HN_INT8_DEPTH_NX : 1;
        t->column = o * d->w.stride;
        t->y = (uint8_t *)y + (gsize)(o * t->y_pitch) * size;
        if (t->sums != NULL)
            tile_sums(d, t, n, out, (char *)t->y, size);
        else
            d->tile[n - 1](t);
    }
}

/* Lines [lo, hi) of the result. */
static void run_tile_lines(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Depthwise *d = s->state;
    const HnTensor *y = s->out[0].slot->tensor;
    const int64_t yp = hn_slot_pitch(s->out[0].slot);
    const gsize size = hn_dtype_size(y->dtype);
    const HnInt8Out out = d->product.finish;
    char *scratch = (char *)s->scratch + (gsize)thread * d->thread_bytes;
    Rows r = { .d = d, .x = hn_cpu_data(&s->in[0]), .pitch = hn_slot_pitch(s->in[0].slot) };
    r.column = (const uint8_t **)(void *)scratch;
    r.line = (int64_t *)(void *)(scratch + d->staged);
    r.row = (const uint8_t *const **)(void *)(r.line + row_span(&d->h));
    int32_t *sums = (int32_t *)(void *)(r.row + d->h.kernel);
    const gboolean through = size != 1 || !out.small;
    HnInt8DepthKernel t = { .row = r.row,
                            .rows = (int)d->h.kernel,
                            .k = (int)d->w.kernel,
                            .stride = (int)d->w.stride,
                            .dilation = (int)d->w.dilation,
                            .channels = d->channels,
                            .weights = hn_pack_data(d->packed, s, hn_int8_inputs(s)->w),
                            .groups = tile_groups(d),
                            .begin = d->begin,
                            .scale = d->scale,
                            .shift = out.shift != NULL ? d->shift : NULL,
                            .y_pitch = yp,
                            .sums = through ? sums : NULL,
                            .sums_pitch = hn_int8_cols() };
    if (!through)
        hn_int8_depth_end(&t, &out);
    const int64_t seen = d->h.kernel * MIN(d->w.in, LONG_STRETCH * d->w.stride);
    const int64_t strip = MAX(STRIP_BYTES / (seen * d->level->width), STRIP_LEAST);
    for (int64_t o = 0, n; o < d->w.out; o += n) {
        n = MIN(LONG_STRETCH, d->w.out - o);
        begin_rows(&r, o, n);
        for (t.first = 0; t.first < d->blocks; t.first = t.end) {
            t.end = d->blocks - t.first < strip * 3 / 2 ? d->blocks : t.first + strip;
            const int64_t c = block_begin(d, t.first), end = block_begin(d, t.end - 1) + d->level->width;
            for (int64_t i = lo; i < hi; i++) {
                char *line = (char *)y->data + (gsize)((i * d->w.out + o) * yp) * size;
                find_rows(&r, i);
                run_packed(d, &t, n, &out, line, size);
                if (!through && out.map != NULL)
                    hn_int8_lut_rows(out.map, (uint8_t *)line + c, yp, (uint8_t *)line + c, yp, n, end - c);
            }
        }
    }
}

static gboolean depthwise_run(HnStep *s, GError **error)
{
    (void)error;
    Depthwise *d = s->state;
    hn_int8_gemm_exchange(&d->product, &d->product.finish, s);
    hn_parallel_for(d->batch * d->h.out, d->threads, d->tile != NULL ? run_tile_lines : run_lines, s);
    return TRUE;
}

const HnKernel hn_cpu_int8_depthwise = {
    .name = "cpu.int8_depthwise",
    .reject = depthwise_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};

const HnKernel hn_cpu_int8_group = {
    .name = "cpu.int8_group",
    .reject = group_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};
