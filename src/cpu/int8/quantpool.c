/*
 * QuantAveragePool, channels last: the rows of channels that a window sees are added up.
 */
#include "op/quantpool.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "cpu/int8/int8_lut.h"
#include "cpu/core/cpu_kernel.h"
#include "op/quantlinear.h"

#define HN_LEVEL plain
#include "cpu/int8/quantpool_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/int8/quantpool_loops.h"
#undef HN_LEVEL

/* sum[c] += the bytes ^ flip of n rows, 0 < n <= 257 */
static void add_plain(int32_t *sum, const uint8_t *const *row, int64_t n, int64_t at, int64_t count, uint8_t flip)
{
    for (int64_t k = 0; k < n; k++)
        for (int64_t c = 0; c < count; c++)
            sum[c] += row[k][at + c] ^ flip;
}

#define INLINE_AVX2 static inline __attribute__((always_inline)) HN_TARGET_avx2

/* 16 bytes, or 8, as 16-bit numbers */
INLINE_AVX2 __m256i words_avx2(const uint8_t *x, __m128i flips, gboolean whole)
{
    const __m128i *at = (const __m128i *)(const void *)x;
    return _mm256_cvtepu8_epi16(_mm_xor_si128(whole ? _mm_loadu_si128(at) : _mm_loadl_epi64(at), flips));
}

INLINE_AVX2 void add_words_avx2(int32_t *sum, __m128i words)
{
    __m256i *to = (__m256i *)(void *)sum;
    _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), _mm256_cvtepu16_epi32(words)));
}

/* 16 channels, or 8, without the first `done` ones */
INLINE_AVX2 void add_block_avx2(int32_t *sum, const uint8_t *const *row, int64_t n, int64_t at, int64_t done,
                                __m128i flips, gboolean whole)
{
    const __m256i order = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m256i part = words_avx2(row[0] + at, flips, whole);
    for (int64_t k = 1; k < n; k++)
        part = _mm256_add_epi16(part, words_avx2(row[k] + at, flips, whole));
    part = _mm256_andnot_si256(_mm256_cmpgt_epi16(_mm256_set1_epi16((short)done), order), part);
    add_words_avx2(sum, _mm256_castsi256_si128(part));
    if (whole)
        add_words_avx2(sum + 8, _mm256_extracti128_si256(part, 1));
}

/* The same; the last block lies back so that it fits. */
static HN_TARGET_avx2 void add_avx2(int32_t *sum, const uint8_t *const *row, int64_t n, int64_t at, int64_t count,
                                    uint8_t flip)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    if (count < 8) {
        add_plain(sum, row, n, at, count, flip);
        return;
    }
    for (int64_t from = 0; from < count && count >= 16; from += 16) {
        const int64_t c = MIN(from, count - 16);
        add_block_avx2(sum + c, row, n, at + c, from - c, flips, TRUE);
    }
    for (int64_t from = 0; from < count && count < 16; from += 8) {
        const int64_t c = MIN(from, count - 8);
        add_block_avx2(sum + c, row, n, at + c, from - c, flips, FALSE);
    }
}

#define MOST_TAPS ((int64_t)1 << 22) /* of a window: sums fit into 32 bits */
#define ROWS 256                     /* added at a time */
#define CHANNELS 512                 /* at a time */

/* Of a window at one place along an axis. */
typedef struct {
    int64_t at;       /* where its first tap is, or would be */
    int64_t from, to; /* taps that lie in the source */
    int64_t held;     /* elements that count */
} Span;

typedef struct {
    HnWindowAxis axis[3];          /* the last ones are the step's, those before of size 1 */
    Span *span[3];                 /* [out] */
    int64_t batch, channels, outs; /* outputs of an image */
    float scale, lo, hi;
    int zero, x_zero;
    uint8_t flip;
    int threads;
    HnInt8Lut map; /* of HnStep.table */
} Pool;

static gboolean place(const HnStep *s, Pool *p)
{
    const HnTensor *x = hn_cpu_in(s, HN_MEAN_X);
    HnWindowAxis axis[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK];
    if (x->ndim < 3 || x->ndim > 5 || !hn_quant_pool_place(s->params, x->ndim, x->dims, axis, dims, NULL))
        return FALSE;
    hn_window_axes(x->ndim - 2, axis, 3, p->axis);
    p->batch = x->dims[0];
    p->channels = x->dims[1];
    p->outs = p->axis[0].out * p->axis[1].out * p->axis[2].out;
    return TRUE;
}

static gboolean is_positive(const HnTensor *t)
{
    return t == NULL || (isfinite(*(const float *)t->data) && *(const float *)t->data > 0);
}

static const char *pool_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, HN_MEAN_X);
    Pool p = { 0 };
    for (int i = HN_MEAN_X_SCALE; i < HN_MEAN_INPUTS; i++)
        if (hn_cpu_in(s, i) != NULL && (!s->in[i].slot->constant || hn_cpu_in(s, i)->n != 1))
            return "parameters that are known only at run time, or of another size";
    if (!is_positive(hn_cpu_in(s, HN_MEAN_X_SCALE)) || !is_positive(hn_cpu_in(s, HN_MEAN_Y_SCALE)))
        return "scales that are no numbers above 0";
    if (x->n == 0 || s->out[0].slot->tensor->n == 0)
        return "nothing to compute";
    if (!place(s, &p))
        return "only 1 to 3 spatial axes, and windows that fit";
    int64_t taps = 1;
    for (int i = 0; i < 3 && taps <= MOST_TAPS; i++)
        taps *= MAX(1, MIN(MOST_TAPS + 1, p.axis[i].kernel));
    return taps <= MOST_TAPS ? NULL : "very large windows";
}

static void set_spans(Pool *p, gboolean count_pad)
{
    for (int i = 0; i < 3; i++) {
        const HnWindowAxis *a = &p->axis[i];
        p->span[i] = g_new(Span, (gsize)a->out);
        for (int64_t o = 0; o < a->out; o++) {
            const int64_t at = o * a->stride - a->pad;
            p->span[i][o] = (Span){
                .at = at,
                .from = at >= 0 ? 0 : (-at + a->dilation - 1) / a->dilation,
                .to = a->in <= at ? 0 : MIN(a->kernel, (a->in - at + a->dilation - 1) / a->dilation),
                .held = hn_pool_held(a, o, count_pad),
            };
        }
    }
}

static gboolean pool_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnQuantPool *limits = s->params;
    const HnTensor *x = hn_cpu_in(s, HN_MEAN_X), *y = s->out[0].slot->tensor, *xz = hn_cpu_in(s, HN_MEAN_X_ZERO);
    const HnTensor *ys = hn_cpu_in(s, HN_MEAN_Y_SCALE), *yz = hn_cpu_in(s, HN_MEAN_Y_ZERO);
    Pool *p = g_new0(Pool, 1);
    s->state = p;
    place(s, p);
    set_spans(p, limits->pool.count_pad);
    p->flip = x->dtype == HN_I8 ? 128 : 0;
    p->x_zero = (xz != NULL ? (int)hn_tensor_get_i64(xz, 0) : 0) + p->flip;
    p->zero = yz != NULL ? (int)hn_tensor_get_i64(yz, 0) : 0;
    const float step = ys != NULL ? *(const float *)ys->data : 1;
    p->scale = *(const float *)hn_cpu_in(s, HN_MEAN_X_SCALE)->data / step;
    p->lo = limits->lo;
    p->hi = limits->hi;
    if (y->dtype != HN_F32) {
        const HnQuantProduct within = { .lo = p->lo, .hi = p->hi };
        const HnQuantBounds b = hn_quant_bounds(&within, y->dtype, step, p->zero);
        p->lo = b.lo;
        p->hi = b.hi;
    }
    double taps = 1;
    for (int i = 0; i < 3; i++)
        taps *= (double)p->axis[i].kernel;
    p->threads = hn_cpu_threads_for(s, (double)y->n * taps / 8);
    for (int i = HN_MEAN_X_SCALE; i < s->n_in; i++)
        s->in[i].unread = TRUE;
    s->in[HN_MEAN_X].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    return TRUE;
}

typedef struct {
    const Pool *p;
    const uint8_t *x; /* of the image */
    int64_t pitch, c, count;
    int64_t taps;
    double elements; /* that the sums are divided by */
    int32_t sum[CHANNELS];
    const uint8_t *row[ROWS];
} Window;

static void add_held(Window *w, int64_t n)
{
    if (n > 0)
        (hn_cpu_isa() >= HN_ISA_AVX2 ? add_avx2 : add_plain)(w->sum, w->row, n, w->c, w->count, w->p->flip);
    w->taps += n;
}

/* Sums over what the window of output o sees. */
static void add_window(Window *w, int64_t o)
{
    const Pool *p = w->p;
    const HnWindowAxis *a = p->axis;
    const int64_t line = o / a[2].out;
    const Span *z = &p->span[0][line / a[1].out], *y = &p->span[1][line % a[1].out], *x = &p->span[2][o % a[2].out];
    memset(w->sum, 0, (gsize)w->count * sizeof *w->sum);
    w->taps = 0;
    w->elements = (double)z->held * (double)y->held * (double)x->held;
    int64_t n = 0;
    for (int64_t d = z->from; d < z->to; d++)
        for (int64_t h = y->from; h < y->to; h++) {
            const int64_t first = ((z->at + d * a[0].dilation) * a[1].in + y->at + h * a[1].dilation) * a[2].in + x->at;
            for (int64_t k = x->from; k < x->to; k++) {
                w->row[n++] = w->x + (first + k * a[2].dilation) * w->pitch;
                if (n == ROWS) {
                    add_held(w, n);
                    n = 0;
                }
            }
        }
    add_held(w, n);
}

static void finish(const HnStep *s, const Window *w, char *y)
{
    /* with 256 bits at any level: loads of more than was stored at once would wait */
    const gboolean vectors = hn_cpu_isa() >= HN_ISA_AVX2;
    const Pool *p = w->p;
    const float by = w->elements > 0 ? p->scale / (float)w->elements : 0;
    const int32_t less = (int32_t)(w->taps * p->x_zero);
    if (s->out[0].slot->tensor->dtype == HN_F32) {
        (vectors ? means_numbers_avx2 : means_numbers_plain)((float *)(void *)y, w->sum, w->count, less, by, p->lo,
                                                             p->hi);
        return;
    }
    (vectors ? means_bytes_avx2 : means_bytes_plain)((uint8_t *)y, w->sum, w->count, less, by, p->lo, p->hi, p->zero);
    if (s->table != NULL)
        hn_int8_lut_rows(&p->map, (uint8_t *)y, 0, (uint8_t *)y, 0, 1, w->count);
}

/* Parts of CHANNELS channels of outputs: jobs [lo, hi). */
static void run_jobs(const HnStep *s, int64_t lo, int64_t hi)
{
    const Pool *p = s->state;
    const HnTensor *y = s->out[0].slot->tensor;
    const int64_t parts = (p->channels + CHANNELS - 1) / CHANNELS;
    const int64_t xp = hn_slot_pitch(s->in[HN_MEAN_X].slot), yp = hn_slot_pitch(s->out[0].slot);
    const int64_t pixels = p->axis[0].in * p->axis[1].in * p->axis[2].in;
    Window w = { .p = p, .pitch = xp };
    for (int64_t job = lo; job < hi; job++) {
        const int64_t at = job / parts, o = at % p->outs;
        w.c = job % parts * CHANNELS;
        w.count = MIN(CHANNELS, p->channels - w.c);
        w.x = (const uint8_t *)hn_cpu_data(&s->in[HN_MEAN_X]) + at / p->outs * pixels * xp;
        add_window(&w, o);
        finish(s, &w, (char *)y->data + (gsize)(at * yp + w.c) * hn_dtype_size(y->dtype));
    }
}

static gboolean pool_run(HnStep *s, GError **error)
{
    (void)error;
    Pool *p = s->state;
    hn_int8_lut_once(&p->map, s->table);
    const int64_t jobs = p->batch * p->outs * ((p->channels + CHANNELS - 1) / CHANNELS);
    if (p->threads == 1) {
        run_jobs(s, 0, jobs);
        return TRUE;
    }
#pragma omp parallel for num_threads(p->threads)
    for (int t = 0; t < p->threads; t++)
        run_jobs(s, jobs * t / p->threads, jobs * (t + 1) / p->threads);
    return TRUE;
}

static void pool_release(HnStep *s)
{
    Pool *p = s->state;
    for (int i = 0; p != NULL && i < 3; i++)
        g_free(p->span[i]);
    g_clear_pointer(&s->state, g_free);
}

static const HnKernel quantpool = {
    .name = "cpu.quantpool",
    .reject = pool_reject,
    .prepare = pool_prepare,
    .run = pool_run,
    .release = pool_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};

const HnKernel *const hn_cpu_quantaveragepool[] = { &quantpool, NULL };
