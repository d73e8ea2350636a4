#include "cpu/move/channel_copy.h"

#include <immintrin.h>
#include <string.h>

#include "cpu/core/strided_copy.h"
#include "cpu/core/cpu_level.h"

#define HN_LOOPS "cpu/move/channel_copy_loops.h"
#include "base/every_level.h"

gboolean hn_channel_copy_of(const HnSlot *slot, int axis)
{
    return (slot->tensor->dtype == HN_F32 || hn_dtype_size(slot->tensor->dtype) == 1) && slot->tensor->n > 0 &&
           hn_layout_is_last(slot->layout) && axis == 1;
}

HnChannelCopy *hn_channel_copy_prepare(HnStep *s, gboolean into, guint n)
{
    const HnTensor *whole = into ? s->out[0].slot->tensor : hn_cpu_in(s, 0);
    HnChannelCopy *c = g_malloc0(sizeof *c + n * sizeof *c->part);
    s->state = c;
    c->into = into;
    c->threads = hn_cpu_threads_for(s, 0);
    c->pixels = whole->n / whole->dims[1];
    c->size = hn_dtype_size(whole->dtype);
    c->n = n;
    for (int i = 0; i < (into ? s->n_in : 1); i++)
        s->in[i].want = hn_layout_last(hn_cpu_in(s, i));
    for (int k = 0; k < (into ? 1 : s->n_out); k++)
        s->out[k].slot->layout = hn_layout_last(s->out[k].slot->tensor);
    return c;
}

#define INLINE_AVX2 static inline __attribute__((always_inline)) HN_TARGET_avx2

/* The even or the odd ones of 32 bytes, in the words of what comes out. */
INLINE_AVX2 __m256i half_of(const uint8_t *x, gboolean odd)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return odd ? _mm256_srli_epi16(v, 8) : _mm256_and_si256(v, _mm256_set1_epi16(255));
}

INLINE_AVX2 void halve_bytes(uint8_t *y, int64_t yp, const uint8_t *x, int64_t xp, int64_t count, int64_t n,
                             gboolean odd)
{
    for (int64_t i = 0; i < n && count >= 32; i++, y += yp, x += xp)
        for (int64_t from = 0; from < count; from += 32) {
            const int64_t c = MIN(from, count - 32);
            const __m256i v = _mm256_packus_epi16(half_of(x + 2 * c, odd), half_of(x + 2 * c + 32, odd));
            _mm256_storeu_si256((__m256i *)(void *)(y + c), _mm256_permute4x64_epi64(v, 0xd8));
        }
    for (int64_t i = 0; i < n && count < 32; i++, y += yp, x += xp)
        for (int64_t from = 0; from < count; from += 16) {
            const int64_t c = MIN(from, count - 16);
            const __m256i v = half_of(x + 2 * c, odd);
            const __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);
            _mm_storeu_si128((__m128i *)(void *)(y + c), _mm_packus_epi16(low, high));
        }
}

/* Every other of 2 * count bytes of pixels, 16 at least are wanted; the last vector lies back so that it fits. */
static HN_TARGET_avx2 void pick_half(uint8_t *y, int64_t yp, const uint8_t *x, int64_t xp, int64_t count, int64_t n,
                                     gboolean odd)
{
    if (odd)
        halve_bytes(y, yp, x, xp, count, n, TRUE);
    else
        halve_bytes(y, yp, x, xp, count, n, FALSE);
}

/* `count` adjacent bytes of pixels, 16 at least; the last piece lies back so that it fits. */
static void copy_pieces(uint8_t *y, int64_t yp, const uint8_t *x, int64_t xp, int64_t count, int64_t n)
{
    for (int64_t i = 0; i < n; i++, y += yp, x += xp) {
        for (int64_t c = 0; c + 16 < count; c += 16)
            memcpy(y + c, x + c, 16);
        memcpy(y + count - 16, x + count - 16, 16);
    }
}

/* As pick_pixels(): `left` bytes are there from x on, and one before it where `before`. */
static void move_bytes(uint8_t *y, int64_t yp, const uint8_t *x, int64_t xp, int64_t step, int64_t count, int64_t n,
                       int64_t left, gboolean before)
{
    static void (*const pick[HN_LEVELS])(uint8_t *, int64_t, const uint8_t *, int64_t, int64_t, int64_t, int64_t) =
        HN_TABLE_OF_LEVELS(pick_bytes);
    const gboolean pairs = left >= 2 * count;                               /* both of them */
    if (step == 2 && xp == 2 * count && yp == count && (pairs || before)) { /* pixels are one long pixel */
        count *= n;
        n = 1;
    }
    if (step == 2 && count >= 16 && (pairs || before) && hn_cpu_level() > 0)
        pick_half(y, yp, pairs ? x : x - 1, xp, count, n, !pairs);
    else if (step != 1)
        pick[hn_cpu_level()](y, yp, x, xp, step, count, n);
    else if (count >= 16 && count <= 256)
        copy_pieces(y, yp, x, xp, count, n);
    else
        for (int64_t i = 0; i < n; i++)
            hn_copy_bytes(y + i * yp, x + i * xp, (size_t)count);
}

/* Pixels [lo, hi) of part k. */
static void move(const HnStep *s, guint k, int64_t lo, int64_t hi)
{
    static void (*const copy[HN_LEVELS])(float *, int64_t, const float *, int64_t, int64_t, int64_t) =
        HN_TABLE_OF_LEVELS(copy_pixels);
    static void (*const pick[HN_LEVELS])(float *, int64_t, const float *, int64_t, int64_t, int64_t, int64_t, int64_t,
                                         gboolean) = HN_TABLE_OF_LEVELS(pick_pixels);
    const HnChannelCopy *c = s->state;
    const HnPort *from = &s->in[c->into ? c->part[k].port : 0], *to = &s->out[c->into ? 0 : c->part[k].port];
    const int64_t xp = hn_slot_pitch(from->slot), yp = hn_slot_pitch(to->slot), first = c->part[k].first;
    const int64_t count = c->part[k].count, step = c->part[k].step;
    if (c->size == 1) {
        move_bytes((uint8_t *)hn_cpu_data(to) + lo * yp + (c->into ? first : 0), yp,
                   (const uint8_t *)hn_cpu_data(from) + lo * xp + (c->into ? 0 : first), xp, step, count, hi - lo,
                   from->slot->tensor->dims[1] - first, first > 0);
        return;
    }
    const float *x = (const float *)hn_cpu_data(from) + lo * xp + (c->into ? 0 : first);
    float *y = (float *)hn_cpu_data(to) + lo * yp + (c->into ? first : 0);
    int level = hn_cpu_level();
    while (level > 0 && count < 4 << level)
        level--;
    if (step == 1)
        copy[level](y, yp, x, xp, count, hi - lo);
    else
        pick[level](y, yp, x, xp, step, count, hi - lo, from->slot->tensor->dims[1] - first, first > 0);
}

static void run_part(const HnStep *s, int part)
{
    const HnChannelCopy *c = s->state;
    for (guint k = 0; k < c->n; k++) {
        const HnPort *port = c->into ? &s->in[c->part[k].port] : &s->out[c->part[k].port];
        if (!port->joined)
            move(s, k, c->pixels * part / c->threads, c->pixels * (part + 1) / c->threads);
    }
}

gboolean hn_channel_copy_run(HnStep *s, GError **error)
{
    (void)error;
    const HnChannelCopy *c = s->state;
    if (c->threads == 1) {
        run_part(s, 0);
        return TRUE;
    }
#pragma omp parallel for num_threads(c->threads)
    for (int k = 0; k < c->threads; k++)
        run_part(s, k);
    return TRUE;
}

/* A part of one channel, which counts as plain, stays apart. */
static HnPlace place_of(const HnStep *s, const HnSlot *slot, const HnSlot *whole, int port, gsize *offset)
{
    const HnChannelCopy *c = s->state;
    const guint k = c->n > 1 ? (guint)port : 0; /* a part for each port, or one alone */
    if (slot->layout == NULL || whole->layout == NULL || k >= c->n || c->part[k].port != port || c->part[k].step != 1)
        return HN_PLACE_NONE;
    *offset = (gsize)c->part[k].first * c->size;
    return HN_PLACE_PIXELS;
}

HnPlace hn_channel_copy_joins(const HnStep *s, int i, gsize *offset)
{
    return place_of(s, s->in[i].slot, s->out[0].slot, i, offset);
}

HnPlace hn_channel_copy_splits(const HnStep *s, int k, gsize *offset)
{
    return place_of(s, s->out[k].slot, s->in[0].slot, k, offset);
}
