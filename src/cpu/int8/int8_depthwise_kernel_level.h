/*
 * What the instruction levels of int8_depthwise_kernel_loops.h say differently: pairs of 16-bit numbers, quads of
 * bytes.
 */
#pragma once

#include <immintrin.h>

#include "cpu/int8/int8_depthwise_kernel.h"
#include "cpu/core/vec.h"

#define INLINE static inline __attribute__((always_inline))

/* --- pairs of 16-bit numbers ---------------------------------------------------------------------------------------
 */

#define HN_TARGET_pair __attribute__((target("avx2,fma,f16c")))
#define IVEC_pair __m256i
#define ILOAD_pair(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define GROUP_pair HN_INT8_DEPTH_PAIR
#define BLOCK_pair HN_INT8_DEPTH_PAIR_BLOCK

/* 8 bytes from each of two in turns, as 16 bits */
INLINE HN_TARGET_pair __m256i gather_pair(const uint8_t *const *from, const int n, const gboolean is_signed)
{
    (void)n;
    const __m128i both = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(const void *)from[0]),
                                           _mm_loadl_epi64((const __m128i *)(const void *)from[1]));
    return is_signed ? _mm256_cvtepi8_epi16(both) : _mm256_cvtepu8_epi16(both);
}

INLINE HN_TARGET_pair __m256i dot_pair(__m256i sum, __m256i x, __m256i w)
{
    __m256i v = _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
    __asm__("" : "+x"(v)); /* in this order: products put off would take more registers than there are */
    return v;
}

INLINE HN_TARGET_pair __m256i scaled_pair(const HnInt8DepthKernel *t, int64_t block, __m256i sum)
{
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(t->scale + block * BLOCK_pair));
    if (t->shift != NULL)
        v = _mm256_add_ps(v, _mm256_loadu_ps(t->shift + block * BLOCK_pair));
    return _mm256_cvtps_epi32(v);
}

INLINE HN_TARGET_pair void put(uint8_t *y, __m128i v)
{
    _mm_storel_epi64((__m128i *)(void *)y, v);
}

INLINE HN_TARGET_pair void put_high(uint8_t *y, __m128i v)
{
    put(y, _mm_unpackhi_epi64(v, v)); /* y is anywhere: a store of doubles would have to be aligned */
}

/* What becomes of the sums of n outputs. */
INLINE HN_TARGET_pair void tile_end_pair(const HnInt8DepthKernel *t, int64_t block, uint8_t *y, const int n,
                                         const __m256i *sum)
{
    if (t->sums != NULL) {
        HN_UNROLL
        for (int i = 0; i < n; i++)
            _mm256_storeu_si256((__m256i *)(void *)(t->sums + i * t->sums_pitch), sum[i]);
        return;
    }
    const gboolean is_signed = t->dtype == HN_I8;
    const __m256i zero = _mm256_set1_epi32((int)t->zero), lo = _mm256_set1_epi32((int)t->lo);
    const __m256i hi = _mm256_set1_epi32((int)t->hi);
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    y += MIN(block * BLOCK_pair, t->channels - BLOCK_pair);
    HN_UNROLL
    for (int i = 0; i < n; i += 4, y += 4 * t->y_pitch) {
        __m256i v[4];
        HN_UNROLL
        for (int j = 0; j < 4; j++)
            v[j] = i + j < n ? scaled_pair(t, block, sum[i + j]) : v[j - 1];
        const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), zero);
        const __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), zero);
        const __m256i all = is_signed ? _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(a, b), lo), hi)
                                      : _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(a, b), lo), hi);
        const __m256i turned = _mm256_permutevar8x32_epi32(all, in_order);
        const __m128i low = _mm256_castsi256_si128(turned), high = _mm256_extracti128_si256(turned, 1);
        put(y, low);
        if (n - i > 1)
            put_high(y + t->y_pitch, low);
        if (n - i > 2)
            put(y + 2 * t->y_pitch, high);
        if (n - i > 3)
            put_high(y + 3 * t->y_pitch, high);
    }
}

/* --- dot products of 4 bytes ---------------------------------------------------------------------------------------
 */

#define HN_TARGET_quad __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma,f16c")))
#define IVEC_quad __m512i
#define ILOAD_quad(p) _mm512_loadu_si512(p)
#define GROUP_quad HN_INT8_DEPTH_QUAD
#define BLOCK_quad HN_INT8_DEPTH_QUAD_BLOCK

/* 16 bytes from each of n, 3 or 4, in turns of 4; unsigned */
INLINE HN_TARGET_quad __m512i gather_quad(const uint8_t *const *from, const int n, const gboolean is_signed)
{
    static const uint8_t turns[64] = { 0,  16, 32, 48, 1,  17, 33, 49, 2,  18, 34, 50, 3,  19, 35, 51,
                                       4,  20, 36, 52, 5,  21, 37, 53, 6,  22, 38, 54, 7,  23, 39, 55,
                                       8,  24, 40, 56, 9,  25, 41, 57, 10, 26, 42, 58, 11, 27, 43, 59,
                                       12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63 };
    __m512i all = _mm512_zextsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)from[0]));
    all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i *)(const void *)from[1]), 1);
    all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i *)(const void *)from[2]), 2);
    if (n > 3)
        all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i *)(const void *)from[3]), 3);
    const __m512i in_turns = _mm512_permutexvar_epi8(_mm512_loadu_si512(turns), all);
    return is_signed ? _mm512_xor_si512(in_turns, _mm512_set1_epi8((char)128)) : in_turns;
}

INLINE HN_TARGET_quad __m512i dot_quad(__m512i sum, __m512i x, __m512i w)
{
    return _mm512_dpbusd_epi32(sum, x, w);
}

INLINE HN_TARGET_quad __m512i scaled_quad(const HnInt8DepthKernel *t, int64_t block, __m512i sum)
{
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(t->scale + block * BLOCK_quad));
    if (t->shift != NULL)
        v = _mm512_add_ps(v, _mm512_loadu_ps(t->shift + block * BLOCK_quad));
    return _mm512_cvtps_epi32(v);
}

INLINE HN_TARGET_quad void tile_end_quad(const HnInt8DepthKernel *t, int64_t block, uint8_t *y, const int n,
                                         const __m512i *sum)
{
    if (t->sums != NULL) {
        HN_UNROLL
        for (int i = 0; i < n; i++)
            _mm512_storeu_si512(t->sums + i * t->sums_pitch, sum[i]);
        return;
    }
    const gboolean is_signed = t->dtype == HN_I8;
    const __m512i zero = _mm512_set1_epi32((int)t->zero), lo = _mm512_set1_epi32((int)t->lo);
    const __m512i hi = _mm512_set1_epi32((int)t->hi);
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    y += MIN(block * BLOCK_quad, t->channels - BLOCK_quad);
    HN_UNROLL
    for (int i = 0; i < n; i += 4, y += 4 * t->y_pitch) {
        __m512i v[4];
        HN_UNROLL
        for (int j = 0; j < 4; j++)
            v[j] = i + j < n ? scaled_quad(t, block, sum[i + j]) : v[j - 1];
        __m512i a = _mm512_packs_epi32(v[0], v[1]), b = _mm512_packs_epi32(v[2], v[3]), all;
        if (t->plain) {
            all = is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
        } else {
            a = _mm512_adds_epi16(a, zero);
            b = _mm512_adds_epi16(b, zero);
            all = is_signed ? _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(a, b), lo), hi)
                            : _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), lo), hi);
        }
        const __m512i turned = _mm512_permutexvar_epi32(in_order, all);
        _mm_storeu_si128((__m128i *)(void *)y, _mm512_castsi512_si128(turned));
        if (n - i > 1)
            _mm_storeu_si128((__m128i *)(void *)(y + t->y_pitch), _mm512_extracti32x4_epi32(turned, 1));
        if (n - i > 2)
            _mm_storeu_si128((__m128i *)(void *)(y + 2 * t->y_pitch), _mm512_extracti32x4_epi32(turned, 2));
        if (n - i > 3)
            _mm_storeu_si128((__m128i *)(void *)(y + 3 * t->y_pitch), _mm512_extracti32x4_epi32(turned, 3));
    }
}

#undef INLINE
