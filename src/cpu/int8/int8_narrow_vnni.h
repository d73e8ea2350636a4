/*
 * Tiles of a panel's last columns with dot products of bytes, for int8_kernel.c: up to 24 of its 32 by a vector and
 * half a one, up to 8 by half a one. A half takes half the time.
 */
#pragma once

#include <immintrin.h>

#include "cpu/int8/int8_kernel.h"
#include "cpu/int8/int8_level.h"
#include "cpu/core/vec.h"

#define NARROW static inline __attribute__((always_inline)) HN_TARGET_vnni
#define B_STEP (HN_INT8_MAX_COLS * HN_INT8_GROUP)
#define PER_BASE 3 /* rows that are addressed from one register */
#define LOAD_HALF(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))

/* rows and three (a vector in front of the half) are constants after inlining. No group could saturate. */
NARROW void narrow_tile(const HnInt8Kernel *t, const int rows, const gboolean three)
{
    const int bases = (rows + PER_BASE - 1) / PER_BASE, first = three ? HN_INT8_LANES_vnni : 0;
    const int64_t step = t->step;
    const int8_t *b = t->b;
    __m512i sum[HN_INT8_MAX_ROWS];
    __m256i half[HN_INT8_MAX_ROWS];
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        sum[r] = _mm512_loadu_si512(t->begin);
        half[r] = LOAD_HALF(t->begin + first);
    }
    for (int64_t s = 0; s < t->segs; s++) {
        const uint8_t *base[4];
        HN_UNROLL
        for (int i = 0; i < bases; i++)
            base[i] = t->a + t->seg_at[s] + i * PER_BASE * step;
        for (int64_t g = t->groups; g > 0; g--, b += B_STEP) {
            const __m512i b0 = _mm512_loadu_si512(b);
            const __m256i b1 = LOAD_HALF(b + first * HN_INT8_GROUP);
            HN_UNROLL
            for (int r = 0; r < rows; r++) {
                int32_t four;
                memcpy(&four, base[r / PER_BASE] + r % PER_BASE * step, sizeof four);
                const __m512i v = _mm512_set1_epi32(four);
                if (three)
                    sum[r] = _mm512_dpbusd_epi32(sum[r], v, b0);
                half[r] = _mm256_dpbusd_epi32(half[r], three ? _mm512_castsi512_si256(v) : _mm256_set1_epi32(four), b1);
            }
            HN_UNROLL
            for (int i = 0; i < bases; i++)
                base[i] += HN_INT8_GROUP;
        }
    }
    HN_UNROLL
    for (int r = 0; r < rows; r++) { /* what the half leaves of its vector is 0 */
        if (three)
            _mm512_storeu_si512(t->c + r * HN_INT8_MAX_COLS, sum[r]);
        _mm512_storeu_si512(t->c + r * HN_INT8_MAX_COLS + first, _mm512_zextsi256_si512(half[r]));
    }
}

#define NARROW_TILE(n)                                               \
    HN_TARGET_vnni static void narrow_one_##n(const HnInt8Kernel *t) \
    {                                                                \
        narrow_tile(t, n, FALSE);                                    \
    }                                                                \
    HN_TARGET_vnni static void narrow_two_##n(const HnInt8Kernel *t) \
    {                                                                \
        narrow_tile(t, n, TRUE);                                     \
    }
NARROW_TILE(7)
NARROW_TILE(8)
NARROW_TILE(9)
NARROW_TILE(10)
NARROW_TILE(11)
NARROW_TILE(12)

#undef NARROW
#undef B_STEP
#undef PER_BASE
#undef LOAD_HALF
#undef NARROW_TILE
