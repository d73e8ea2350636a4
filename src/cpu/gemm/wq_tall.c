#include "cpu/gemm/wq_tall.h"

#include <immintrin.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/core/vec.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline)) TARGET
#define LANES 16
#define COLS 32
#define PAIR (COLS * 2)                         /* integers of two k of a panel, side by side */
#define SEGMENT (HN_WQ_LONG_SEGMENT / 2 * PAIR) /* ... of a segment's */
#define KEEP(v) __asm__("" : "+v"(v))           /* sums stay in registers, in the order written */

gboolean hn_wq_has_tall(void)
{
    return hn_cpu_isa() >= HN_ISA_VNNI && hn_wq_cols() == COLS;
}

gsize hn_wq_tall_bytes(int64_t rows)
{
    return SEGMENT * sizeof(int16_t) + (gsize)(rows * COLS) * sizeof(float);
}

/* Zero points of 16 columns, each in both halves of a lane. */
INLINE __m512i doubled(const int8_t *zero)
{
    const __m512i v = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)zero));
    return _mm512_or_si512(_mm512_slli_epi32(v, 16), _mm512_and_si512(v, _mm512_set1_epi32(0xffff)));
}

/* So many groups of 8 bits, two columns' pairs a step of 32 bytes, without zero points. */
INLINE void widen_bytes(int16_t *to, const char *w, int64_t groups, __m512i z0, __m512i z1)
{
    for (int64_t i = 0; i < groups * HN_WQ_GROUP / 2; i++, to += PAIR, w += PAIR) {
        const __m512i a = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)w));
        const __m512i b = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(w + COLS)));
        _mm512_storeu_si512(to, _mm512_sub_epi16(a, z0));
        _mm512_storeu_si512(to + COLS, _mm512_sub_epi16(b, z1));
    }
}

INLINE void widen_nibbles(int16_t *to, const char *w, int64_t groups, __m512i z0, __m512i z1)
{
    const __m512i low = _mm512_set1_epi16(15);
    for (int64_t g = 0; g < groups; g++, w += COLS * HN_WQ_GROUP / 2) {
        __m512i a = _mm512_loadu_si512(w), b = _mm512_loadu_si512(w + COLS * HN_WQ_GROUP / 4);
        for (int i = 0; i < HN_WQ_GROUP / 2; i++, to += PAIR) {
            _mm512_storeu_si512(to, _mm512_sub_epi16(_mm512_and_si512(a, low), z0));
            _mm512_storeu_si512(to + COLS, _mm512_sub_epi16(_mm512_and_si512(b, low), z1));
            a = _mm512_srli_epi16(a, 4);
            b = _mm512_srli_epi16(b, 4);
        }
    }
}

static TARGET void widen(const HnWqForm *f, int16_t *to, const char *w, const int8_t *zero, int64_t groups)
{
    const __m512i all = _mm512_set1_epi16((short)f->zero);
    const __m512i z0 = zero != NULL ? doubled(zero) : all, z1 = zero != NULL ? doubled(zero + LANES) : all;
    if (f->bits == 4)
        widen_nibbles(to, w, groups, z0, z1);
    else
        widen_bytes(to, w, groups, z0, z1);
}

/* A segment's products of some rows, added to what sum[row][COLS] holds. */
typedef struct {
    const int16_t *w, *x; /* of the first row */
    int64_t x_pitch, pairs;
    const float *x_scale; /* of the first row, `segs` from row to row */
    int64_t segs;
    const float *scale; /* [COLS] of blocks; NULL: none */
    float *sum;
    gboolean first;   /* nothing is there yet */
    const char *next; /* what to bring closer meanwhile, `step` bytes for each pair */
    int64_t step;
} Tile;

/* `rows` is a constant after inlining. */
INLINE void tile(const Tile *t, const int rows)
{
    __m512i part[HN_WQ_TALL_ROWS][2];
    const int16_t *w = t->w, *x[HN_WQ_TALL_ROWS];
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        part[r][0] = part[r][1] = _mm512_setzero_si512();
        x[r] = t->x + r * t->x_pitch;
    }
    for (int64_t i = 0; i < t->pairs; i++, w += PAIR) {
        const __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + COLS);
        __builtin_prefetch(t->next + i * t->step, 0, 2);
        HN_UNROLL
        for (int r = 0; r < rows; r++) {
            int32_t two;
            memcpy(&two, x[r] + 2 * i, sizeof two);
            const __m512i v = _mm512_set1_epi32(two);
            part[r][0] = _mm512_dpwssd_epi32(part[r][0], v, w0);
            part[r][1] = _mm512_dpwssd_epi32(part[r][1], v, w1);
            KEEP(part[r][0]);
            KEEP(part[r][1]);
        }
    }
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        float *const sum = t->sum + r * COLS;
        __m512 by0 = _mm512_set1_ps(t->x_scale[r * t->segs]), by1 = by0;
        if (t->scale != NULL) {
            by0 = _mm512_mul_ps(by0, _mm512_loadu_ps(t->scale));
            by1 = _mm512_mul_ps(by1, _mm512_loadu_ps(t->scale + LANES));
        }
        const __m512 s0 = t->first ? _mm512_setzero_ps() : _mm512_loadu_ps(sum);
        const __m512 s1 = t->first ? _mm512_setzero_ps() : _mm512_loadu_ps(sum + LANES);
        _mm512_storeu_ps(sum, _mm512_fmadd_ps(_mm512_cvtepi32_ps(part[r][0]), by0, s0));
        _mm512_storeu_ps(sum + LANES, _mm512_fmadd_ps(_mm512_cvtepi32_ps(part[r][1]), by1, s1));
    }
}

#define TILE(n)                                \
    static TARGET void tile_##n(const Tile *t) \
    {                                          \
        tile(t, n);                            \
    }
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)

#define LEAST 6 /* rows of a tile, where there are HN_WQ_TALL_ROWS or more */
static void (*const tiles[])(const Tile *t) = { tile_6, tile_7, tile_8, tile_9, tile_10, tile_11, tile_12 };

/* Scale and bias of columns, unless blocks have scales of their own. */
static TARGET void finish(const HnWqKernel *t, const float *sum, int64_t rows, const float *scale)
{
    const __mmask16 m0 = (__mmask16)((1u << MIN(t->cols, LANES)) - 1);
    const __mmask16 m1 = (__mmask16)((1u << MAX(t->cols - LANES, 0)) - 1);
    __m512 b0 = _mm512_setzero_ps(), b1 = b0;
    if (t->bias != NULL) {
        b0 = _mm512_maskz_loadu_ps(m0, t->bias);
        b1 = _mm512_maskz_loadu_ps(m1, t->bias + LANES);
    }
    const __m512 one = _mm512_set1_ps(1), f0 = scale != NULL ? _mm512_loadu_ps(scale) : one;
    const __m512 f1 = scale != NULL ? _mm512_loadu_ps(scale + LANES) : one;
    float *c = t->c;
    for (int64_t r = 0; r < rows; r++, sum += COLS, c += t->c_pitch) {
        _mm512_mask_storeu_ps(c, m0, _mm512_fmadd_ps(_mm512_loadu_ps(sum), f0, b0));
        _mm512_mask_storeu_ps(c + LANES, m1, _mm512_fmadd_ps(_mm512_loadu_ps(sum + LANES), f1, b1));
    }
}

void hn_wq_tall(const HnWqKernel *t, int64_t rows, void *memory)
{
    const HnWqForm *const f = t->form;
    const int64_t strips = (rows + HN_WQ_TALL_ROWS - 1) / HN_WQ_TALL_ROWS;
    int16_t *const wide = memory;
    float *const sums = (float *)(void *)(wide + SEGMENT);
    const char *w = t->w;
    const float *scale = NULL;
    const int8_t *zero = NULL;
    for (int64_t s = 0; s < f->cut.segs; s++) {
        const int64_t groups = s < f->cut.segs - 1 ? f->cut.groups : f->cut.last;
        if (s == 0 || f->blocked) {
            scale = (const float *)(const void *)w;
            w += COLS * sizeof(float);
            zero = f->zeros ? (const int8_t *)w : NULL;
            w += f->zeros ? COLS : 0;
        }
        widen(f, wide, w, zero, groups);
        const int64_t bytes = groups * COLS * f->bits;
        w += bytes;
        for (int64_t i = 0; i < strips; i++) {
            const int64_t at = rows * i / strips, n = rows * (i + 1) / strips - at;
            tiles[n - LEAST](&(Tile){ .w = wide,
                                      .x = t->x.q + at * f->cut.padded + s * f->cut.groups * HN_WQ_GROUP,
                                      .x_pitch = f->cut.padded,
                                      .pairs = groups * HN_WQ_GROUP / 2,
                                      .x_scale = t->x.scale + at * f->cut.segs + s,
                                      .segs = f->cut.segs,
                                      .scale = f->blocked ? scale : NULL,
                                      .sum = sums + at * COLS,
                                      .first = s == 0,
                                      .next = w + bytes * i / strips,
                                      .step = (COLS * f->bits / 4 + strips - 1) / strips });
        }
    }
    finish(t, sums, rows, f->blocked ? NULL : scale);
}
