/*
 * MaxPool of bytes, channels last: vectors are channels.
 */
#include <immintrin.h>

#include "cpu/int8/int8_conv.h"
#include "cpu/int8/int8_lut.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/core/cpu_level.h"
#include "op/pool.h"

typedef struct {
    HnWindowAxis axis[2]; /* height, width */
    int64_t most;         /* taps along an axis */
    int64_t from, to;     /* columns whose windows see the source only */
    gsize line_bytes;     /* of the source, without gaps */
    gsize part_bytes;     /* scratch of a thread: taps, and two such lines */
    int threads;
    HnInt8Lut map; /* of HnStep.table */
} Pool;

/* y[i][c] = the largest of from[k][i * step + c], k < n, for `pixels` pixels of `count` channels, which lie y_pitch
 * apart in y; n >= 1. */
typedef void (*MostFn)(uint8_t *y, int64_t y_pitch, const uint8_t *const *from, int64_t n, int64_t step, int64_t pixels,
                       int64_t count);
#define MOST \
    (uint8_t * y, int64_t y_pitch, const uint8_t *const *from, int64_t n, int64_t step, int64_t pixels, int64_t count)

static inline __attribute__((always_inline)) void most_bytes(uint8_t *y, int64_t y_pitch, const uint8_t *const *from,
                                                             int64_t n, int64_t step, int64_t pixels, int64_t count,
                                                             uint8_t flip)
{
    for (int64_t i = 0; i < pixels; i++, y += y_pitch)
        for (int64_t c = 0; c < count; c++) {
            uint8_t most = from[0][i * step + c] ^ flip;
            for (int64_t k = 1; k < n; k++) {
                const uint8_t v = from[k][i * step + c] ^ flip;
                most = v > most ? v : most;
            }
            y[c] = most ^ flip;
        }
}

#define DEFINE_PLAIN(name, flip)                                    \
    static void name##_plain MOST                                   \
    {                                                               \
        most_bytes(y, y_pitch, from, n, step, pixels, count, flip); \
    }
DEFINE_PLAIN(most_unsigned, 0)
DEFINE_PLAIN(most_signed, 128)

#define LOAD64(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define LOAD128(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD256(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE64(p, v) _mm_storel_epi64((__m128i *)(void *)(p), v)
#define STORE128(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define STORE256(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)

/* Vectors of WIDTH channels, of which there are as many; the last one lies back so that it fits. */
#define VECTORS(WIDTH, TYPE, LOAD, MAX, STORE)            \
    for (int64_t i = 0; i < pixels; i++, y += y_pitch)    \
        for (int64_t at = 0; at < count; at += WIDTH) {   \
            const int64_t c = MIN(at, count - WIDTH);     \
            TYPE v = LOAD(from[0] + i * step + c);        \
            for (int64_t k = 1; k < n; k++)               \
                v = MAX(v, LOAD(from[k] + i * step + c)); \
            STORE(y + c, v);                              \
        }

/* Windows of 2 and 3 taps have loops of their own: their sources stay in registers. */
#define TAPS(name)                                                                                                \
    {                                                                                                             \
        if (n == 3)                                                                                               \
            name##_of(y, y_pitch, (const uint8_t *const[]){ from[0], from[1], from[2] }, 3, step, pixels, count); \
        else if (n == 2)                                                                                          \
            name##_of(y, y_pitch, (const uint8_t *const[]){ from[0], from[1] }, 2, step, pixels, count);          \
        else                                                                                                      \
            name##_of(y, y_pitch, from, n, step, pixels, count);                                                  \
    }

#define DEFINE_MOST(name, flip, MAX128, MAX256, MAX512)                                          \
    static inline __attribute__((always_inline, target("avx2"))) void name##_avx2_of MOST        \
    {                                                                                            \
        if (count >= 32)                                                                         \
            VECTORS(32, __m256i, LOAD256, MAX256, STORE256)                                      \
        else if (count >= 16)                                                                    \
            VECTORS(16, __m128i, LOAD128, MAX128, STORE128)                                      \
        else if (count >= 8)                                                                     \
            VECTORS(8, __m128i, LOAD64, MAX128, STORE64)                                         \
        else                                                                                     \
            most_bytes(y, y_pitch, from, n, step, pixels, count, flip);                          \
    }                                                                                            \
    __attribute__((target("avx2"))) static void name##_avx2 MOST TAPS(name##_avx2) static inline \
        __attribute__((always_inline, target("avx512f,avx512bw"))) void name##_avx512_of MOST    \
    {                                                                                            \
        VECTORS(64, __m512i, _mm512_loadu_si512, MAX512, _mm512_storeu_si512)                    \
    }                                                                                            \
    __attribute__((target("avx512f,avx512bw"))) static void name##_avx512 MOST                   \
    {                                                                                            \
        if (count < 64)                                                                          \
            name##_avx2(y, y_pitch, from, n, step, pixels, count);                               \
        else                                                                                     \
            TAPS(name##_avx512)                                                                  \
    }
DEFINE_MOST(most_unsigned, 0, _mm_max_epu8, _mm256_max_epu8, _mm512_max_epu8)
DEFINE_MOST(most_signed, 128, _mm_max_epi8, _mm256_max_epi8, _mm512_max_epi8)

static MostFn most_of(HnDtype dtype)
{
    static const MostFn fns[2][3] = { { most_unsigned_plain, most_unsigned_avx2, most_unsigned_avx512 },
                                      { most_signed_plain, most_signed_avx2, most_signed_avx512 } };
    return fns[dtype == HN_I8][hn_cpu_level()];
}

static gboolean place(const HnStep *s, HnWindowAxis *axis)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    HnWindowAxis all[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK];
    if (!hn_pool_place(s->params, x->ndim, x->dims, all, dims, NULL))
        return FALSE;
    hn_window_axes(x->ndim - 2, all, 2, axis);
    return TRUE;
}

/* First tap of the window at o that lies in the source, and the one behind the last. */
static void taps_of(const HnWindowAxis *a, int64_t o, int64_t *from, int64_t *to)
{
    const int64_t begin = o * a->stride - a->pad;
    *from = begin >= 0 ? 0 : (-begin + a->dilation - 1) / a->dilation;
    *to = a->in <= begin ? 0 : MIN(a->kernel, (a->in - begin + a->dilation - 1) / a->dilation);
}

static gboolean sees_source(const HnWindowAxis *a)
{
    for (int64_t o = 0; o < a->out; o++) {
        int64_t from, to;
        taps_of(a, o, &from, &to);
        if (from >= to)
            return FALSE;
    }
    return TRUE;
}

static const char *pool_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    HnWindowAxis axis[2];
    if (x->dtype != HN_U8 && x->dtype != HN_I8)
        return "only bytes";
    if (!hn_cpu_wants_only(s, 1))
        return "indices are wanted";
    if (x->ndim != 3 && x->ndim != 4)
        return "only 1 or 2 spatial axes";
    if (x->n == 0 || s->out[0].slot->tensor->n == 0)
        return "nothing to compute";
    if (!place(s, axis))
        return "the window does not fit";
    return sees_source(&axis[0]) && sees_source(&axis[1]) ? NULL : "windows that see padding only";
}

static gboolean pool_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    Pool *p = g_new0(Pool, 1);
    s->state = p;
    place(s, p->axis);
    const HnWindowAxis *h = &p->axis[0], *w = &p->axis[1];
    p->most = MAX(MIN(h->kernel, h->in), MIN(w->kernel, w->in));
    p->to = w->out;
    for (int64_t o = 0, from, to; o < w->out; o++) {
        taps_of(w, o, &from, &to);
        if (from > 0)
            p->from = o + 1;
        else if (to < w->kernel)
            p->to = MIN(p->to, o);
    }
    p->from = MIN(p->from, p->to);
    p->threads = hn_cpu_threads_for(s, (double)y->n * (double)p->most / 8);
    p->line_bytes = ((gsize)(w->in * x->dims[1]) + 63) / 64 * 64;
    p->part_bytes = ((gsize)p->most * sizeof(void *) + 63) / 64 * 64 + 2 * p->line_bytes;
    s->scratch_bytes = p->part_bytes * (gsize)p->threads;
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    return TRUE;
}

typedef struct {
    const Pool *p;
    MostFn most;
    int64_t channels, pitch, y_pitch; /* pitch: from pixel to pixel of the line */
    const uint8_t **tap;
    uint8_t *spare; /* a line */
} Line;

/* Windows [from, to) of a line, which have the same taps [first, last). */
static void pool_windows(const Line *l, uint8_t *y, const uint8_t *line, int64_t from, int64_t to, int64_t first,
                         int64_t last)
{
    const HnWindowAxis *w = &l->p->axis[1];
    const int64_t c = l->channels, n = last - first, step = w->stride * l->pitch;
    line += (from * w->stride - w->pad + first * w->dilation) * l->pitch;
    y += from * l->y_pitch;
    for (int64_t k = 0; k < n; k++)
        l->tap[k] = line + k * w->dilation * l->pitch;
    if (step == c && l->y_pitch == c) { /* one behind the other */
        l->most(y, 0, l->tap, n, 0, 1, (to - from) * c);
        return;
    }
    if (c >= 8 || l->pitch != c || to - from < 2) {
        l->most(y, l->y_pitch, l->tap, n, step, to - from, c);
        return;
    }
    l->most(l->spare, 0, l->tap, n, 0, 1, (to - from - 1) * step + c); /* of every pixel, wanted or not */
    for (int64_t i = 0; i < to - from; i++)
        for (int64_t k = 0; k < c; k++)
            y[i * l->y_pitch + k] = l->spare[i * step + k];
}

/* Rows [lo, hi) of the result: lines of the source become one, windows along it the result. */
static void pool_rows(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Pool *p = s->state;
    const HnWindowAxis *h = &p->axis[0], *w = &p->axis[1];
    const int64_t channels = hn_cpu_in(s, 0)->dims[1], xp = hn_slot_pitch(s->in[0].slot);
    uint8_t *scratch = (uint8_t *)s->scratch + (gsize)thread * p->part_bytes;
    uint8_t *join = scratch + p->part_bytes - p->line_bytes;
    Line l = {
        .p = p,
        .most = most_of(hn_cpu_in(s, 0)->dtype),
        .channels = channels,
        .y_pitch = hn_slot_pitch(s->out[0].slot),
        .tap = (const uint8_t **)(gpointer)scratch,
        .spare = join - p->line_bytes,
    };
    for (int64_t i = lo; i < hi; i++) {
        const uint8_t *x = (const uint8_t *)hn_cpu_data(&s->in[0]) + i / h->out * h->in * w->in * xp;
        uint8_t *y = (uint8_t *)hn_cpu_data(&s->out[0]) + i * w->out * l.y_pitch;
        int64_t from, to;
        taps_of(h, i % h->out, &from, &to);
        const uint8_t *line = x + (i % h->out * h->stride - h->pad + from * h->dilation) * w->in * xp;
        l.pitch = xp;
        if (to - from > 1) {
            for (int64_t k = from; k < to; k++)
                l.tap[k - from] = line + (k - from) * h->dilation * w->in * xp;
            if (xp == channels)
                l.most(join, 0, l.tap, to - from, 0, 1, w->in * channels);
            else
                l.most(join, channels, l.tap, to - from, xp, w->in, channels);
            line = join;
            l.pitch = channels;
        }
        for (int64_t o = 0; o < w->out; o++) {
            if (o == p->from && p->to > p->from) {
                pool_windows(&l, y, line, p->from, p->to, 0, w->kernel);
                o = p->to - 1;
                continue;
            }
            taps_of(w, o, &from, &to);
            pool_windows(&l, y, line, o, o + 1, from, to);
        }
        if (s->table != NULL)
            hn_int8_lut_rows(&p->map, y, l.y_pitch, y, l.y_pitch, w->out, channels);
    }
}

static gboolean pool_run(HnStep *s, GError **error)
{
    (void)error;
    Pool *p = s->state;
    hn_int8_lut_once(&p->map, s->table);
    hn_parallel_for(hn_cpu_in(s, 0)->dims[0] * p->axis[0].out, p->threads, pool_rows, s);
    return TRUE;
}

const HnKernel hn_cpu_int8_maxpool = {
    .name = "cpu.int8_maxpool",
    .reject = pool_reject,
    .prepare = pool_prepare,
    .run = pool_run,
    .release = hn_cpu_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};
