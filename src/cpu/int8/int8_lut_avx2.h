/*
 * 32 bytes exchanged in a register.
 */
#pragma once

#include <immintrin.h>

#include "cpu/int8/int8_lut.h"

#define HN_MAP_AVX2 __attribute__((target("avx2")))

/* 32 bytes by the steps of a table: those up to the one that x is among, behind which it is negative and picks 0. */
HN_MAP_AVX2 static inline __attribute__((always_inline)) __m256i hn_map_look_up(const uint8_t *steps, __m256i x)
{
    const __m256i next = _mm256_set1_epi8(16);
    __m256i y = _mm256_setzero_si256(), upper = _mm256_xor_si256(x, _mm256_set1_epi8((char)128));
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++, x = _mm256_subs_epi8(x, next), upper = _mm256_subs_epi8(upper, next)) {
        const __m128i *at = (const __m128i *)(const void *)steps + k;
        const __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128(at));
        const __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128(at + 8));
        y = _mm256_xor_si256(y, _mm256_shuffle_epi8(low, x));
        y = _mm256_xor_si256(y, _mm256_shuffle_epi8(high, upper));
    }
    return y;
}

typedef struct {
    __m256i by, plus, minus, low, x_flip, y_flip, lo, hi;
    __m128i shift;
} HnMapLine;

HN_MAP_AVX2 static inline __attribute__((always_inline)) HnMapLine hn_map_line(const HnInt8Line *l)
{
    return (HnMapLine){
        .by = _mm256_set1_epi16((short)l->by),
        .plus = _mm256_set1_epi16((short)l->plus),
        .minus = _mm256_set1_epi16((short)l->minus),
        .low = _mm256_set1_epi8((char)l->low),
        .x_flip = _mm256_set1_epi8((char)l->x_flip),
        .y_flip = _mm256_set1_epi8((char)l->y_flip),
        .lo = _mm256_set1_epi8((char)l->lo),
        .hi = _mm256_set1_epi8((char)l->hi),
        .shift = _mm_cvtsi32_si128(l->shift),
    };
}

HN_MAP_AVX2 static inline __attribute__((always_inline)) __m256i hn_map_half(const HnMapLine *l, __m256i a)
{
    const __m256i sum = _mm256_adds_epu16(_mm256_mulhi_epu16(a, l->by), l->plus);
    return _mm256_srl_epi16(_mm256_subs_epu16(sum, l->minus), l->shift);
}

HN_MAP_AVX2 static inline __attribute__((always_inline)) __m256i hn_map_compute(const HnMapLine *l, __m256i x)
{
    x = _mm256_xor_si256(x, l->x_flip);
    const __m256i y = _mm256_packus_epi16(hn_map_half(l, _mm256_unpacklo_epi8(l->low, x)),
                                          hn_map_half(l, _mm256_unpackhi_epi8(l->low, x)));
    return _mm256_xor_si256(_mm256_min_epu8(_mm256_max_epu8(y, l->lo), l->hi), l->y_flip);
}
