/*
 * Inputs to values at points, and sums at points to sums of outputs, at one instruction level, for int8_winograd.c.
 * Sums wrap around.
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL avx2
#endif
#include "cpu/int8/int8_winograd.h"
#include "cpu/core/vec.h"

#define LANES HN_LANES
#define NINTH 0x38e38e39u /* times 9 that is 1 modulo 2^32 */
typedef uint32_t HN_V(Sums) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t HN_V(Ints) __attribute__((vector_size(4 * LANES)));
#define SUMS HN_V(Sums)

typedef int16_t HN_V(Words) __attribute__((vector_size(4 * LANES), aligned(2), may_alias));
#define WORDS HN_V(Words)
#define IN_LANES (2 * LANES)

/* Bytes as words. */
#define LOAD_WORDS HN_JOIN(LOAD_WORDS, HN_LEVEL)
#define LOAD_WORDS_avx2(x, flip)       \
    (Words_avx2) _mm256_cvtepu8_epi16( \
        _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(x)), _mm_set1_epi8((char)(flip))))
#define LOAD_WORDS_avx512(x, flip)       \
    (Words_avx512) _mm512_cvtepu8_epi16( \
        _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(x)), _mm256_set1_epi8((char)(flip))))

/* Values at the points along one axis. */
#define IN4(t0, t1, t2, t3, t4, t5, d0, d1, d2, d3, d4, d5)                                      \
    {                                                                                            \
        const WORDS b = d4 - (d2 << 2), a = d3 - (d1 << 2), e = d4 - d2, f = d3 - d1, g = f + f; \
        t0 = ((d0 - d2) << 2) + e;                                                               \
        t1 = b + a;                                                                              \
        t2 = b - a;                                                                              \
        t3 = e + g;                                                                              \
        t4 = e - g;                                                                              \
        t5 = (d5 - d3) - (g + g);                                                                \
    }

/* Whole vectors of a tile's channels; returns how many channels that are. */
static HN_TARGET int64_t HN_V(byte_inputs)(int16_t *v, int64_t plane, const uint8_t *const *x, int64_t channels,
                                           uint8_t flip)
{
    int64_t at = 0;
    for (; at + IN_LANES <= channels; at += IN_LANES) {
        WORDS t[6][6];
        int16_t *to = v + at;
        HN_UNROLL
        for (int j = 0; j < 6; j++) {
            const WORDS d0 = LOAD_WORDS(x[j] + at, flip), d1 = LOAD_WORDS(x[6 + j] + at, flip);
            const WORDS d2 = LOAD_WORDS(x[12 + j] + at, flip), d3 = LOAD_WORDS(x[18 + j] + at, flip);
            const WORDS d4 = LOAD_WORDS(x[24 + j] + at, flip), d5 = LOAD_WORDS(x[30 + j] + at, flip);
            IN4(t[0][j], t[1][j], t[2][j], t[3][j], t[4][j], t[5][j], d0, d1, d2, d3, d4, d5)
        }
        HN_UNROLL
        for (int i = 0; i < 6; i++, to += 6 * plane) {
            WORDS p[6];
            IN4(p[0], p[1], p[2], p[3], p[4], p[5], t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5])
            HN_UNROLL
            for (int j = 0; j < 6; j++)
                *(WORDS *)(to + j * plane) = p[j];
        }
    }
    return at;
}

/* 24 times the outputs along one axis; of the point at infinity the weights are 12 times theirs, of others 24 times. */
#define OUT4(y0, y1, y2, y3, m0, m1, m2, m3, m4, m5)                       \
    {                                                                      \
        const SUMS ae = m1 + m2, ao = m1 - m2, be = m3 + m4, bo = m3 - m4; \
        const SUMS two = bo + bo;                                          \
        y0 = m0 + (ae + be);                                               \
        y1 = ao + two;                                                     \
        y2 = ae + (be << 2);                                               \
        y3 = (ao + (two << 2)) + (m5 + m5);                                \
    }

static HN_TARGET void HN_V(byte_outputs)(const HnInt8Outputs *o)
{
    for (int at = 0; at < (o->whole ? 2 : 1) * LANES; at += LANES) {
        SUMS t[4][6];
        const int32_t *m = o->m + at;
        HN_UNROLL
        for (int j = 0; j < 6; j++, m += o->plane) {
            const SUMS m0 = *(const SUMS *)m, m1 = *(const SUMS *)(m + 6 * o->plane);
            const SUMS m2 = *(const SUMS *)(m + 12 * o->plane), m3 = *(const SUMS *)(m + 18 * o->plane);
            const SUMS m4 = *(const SUMS *)(m + 24 * o->plane), m5 = *(const SUMS *)(m + 30 * o->plane);
            OUT4(t[0][j], t[1][j], t[2][j], t[3][j], m0, m1, m2, m3, m4, m5)
        }
        const SUMS begin = *(const SUMS *)(o->begin + at);
        int32_t *c = o->c + at;
        HN_UNROLL
        for (int i = 0; i < 4; i++, c += o->line) {
            SUMS y[4];
            OUT4(y[0], y[1], y[2], y[3], t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5])
            HN_UNROLL
            for (int j = 0; j < 4; j++) /* 24 * 24 = 64 * 9: what is left without the 9 is 64 times the sum */
                *(SUMS *)(c + 2 * j * LANES) = begin + (SUMS)((HN_V(Ints))(y[j] * NINTH) >> 6);
        }
    }
}

#undef SUMS
#undef OUT4
#undef WORDS
#undef IN_LANES
#undef IN4
#undef LOAD_WORDS
#undef LOAD_WORDS_avx2
#undef LOAD_WORDS_avx512
#undef LANES
#undef NINTH
