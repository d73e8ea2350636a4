/*
 * hn_square_LEVEL(v): as many vectors as one has lanes, rows of a square, become its columns.
 */
#pragma once

#include "cpu/core/vec.h"

static inline __attribute__((always_inline)) void hn_square_plain(__m128 *v)
{
    _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
}

static inline __attribute__((always_inline)) HN_TARGET_avx2 void hn_square_avx2(__m256 *v)
{
    __m256 t[8];
    HN_UNROLL for (int k = 0; k < 8; k += 4) /* in each half, squares of four */
    {
        const __m256 a = _mm256_unpacklo_ps(v[k], v[k + 1]), b = _mm256_unpackhi_ps(v[k], v[k + 1]);
        const __m256 c = _mm256_unpacklo_ps(v[k + 2], v[k + 3]), d = _mm256_unpackhi_ps(v[k + 2], v[k + 3]);
        t[k] = _mm256_shuffle_ps(a, c, 0x44);
        t[k + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[k + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[k + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    HN_UNROLL for (int k = 0; k < 4; k++)
    {
        v[k] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x20);
        v[k + 4] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x31);
    }
}

static inline __attribute__((always_inline)) HN_TARGET_avx512 void hn_square_avx512(__m512 *v)
{
    __m512 t[16];
    HN_UNROLL for (int k = 0; k < 16; k += 4)
    {
        const __m512 a = _mm512_unpacklo_ps(v[k], v[k + 1]), b = _mm512_unpackhi_ps(v[k], v[k + 1]);
        const __m512 c = _mm512_unpacklo_ps(v[k + 2], v[k + 3]), d = _mm512_unpackhi_ps(v[k + 2], v[k + 3]);
        t[k] = _mm512_shuffle_ps(a, c, 0x44);
        t[k + 1] = _mm512_shuffle_ps(a, c, 0xee);
        t[k + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[k + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    HN_UNROLL for (int k = 0; k < 4; k++) /* quarters change places */
    {
        const __m512 a = _mm512_shuffle_f32x4(t[k], t[k + 4], 0x88), b = _mm512_shuffle_f32x4(t[k], t[k + 4], 0xdd);
        const __m512 c = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0x88);
        const __m512 d = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0xdd);
        v[k] = _mm512_shuffle_f32x4(a, c, 0x88);
        v[k + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        v[k + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        v[k + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}
