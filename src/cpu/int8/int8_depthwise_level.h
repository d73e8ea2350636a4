/*
 * What the instruction levels of int8_depthwise_loops.h say differently.
 */
#pragma once

#include <immintrin.h>
#include <string.h>

#include "cpu/int8/int8_depthwise.h"

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline))

#define IVEC_avx512 __m512i
#define ILOAD_avx512(p) _mm512_loadu_si512(p)
#define ISTORE_avx512(p, v) _mm512_storeu_si512(p, v)
#define HN_DW_WIDTH_avx512 64
#define HN_DW_TAPS_avx512 2
#define HN_DW_OF_TWO_avx512 3
#define HN_DW_AT_ONCE_avx512 4
#define HN_DW_SET_avx512 _mm512_set1_epi8
#define HN_DW_XOR_avx512 _mm512_xor_si512
#define HN_DW_DOT_avx512(sum, x, w) _mm512_add_epi32(sum, _mm512_madd_epi16(x, w))
#define HN_DW_INTERLEAVE_avx512(z, r)                                                                          \
    do {                                                                                                       \
        const __m512i none = _mm512_setzero_si512();                                                           \
        const __m512i low = _mm512_unpacklo_epi8((r)[0], (r)[1]), high = _mm512_unpackhi_epi8((r)[0], (r)[1]); \
        (z)[0] = _mm512_unpacklo_epi8(low, none);                                                              \
        (z)[1] = _mm512_unpackhi_epi8(low, none);                                                              \
        (z)[2] = _mm512_unpacklo_epi8(high, none);                                                             \
        (z)[3] = _mm512_unpackhi_epi8(high, none);                                                             \
    } while (0)

AVX512 INLINE __mmask64 first_bytes(int n)
{
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}
#define HN_DW_LOAD_avx512(p, n, end) ((void)(end), _mm512_maskz_loadu_epi8(first_bytes(n), p))
#define HN_DW_STORE_avx512(p, v, n) _mm512_mask_storeu_epi8(p, first_bytes(n), v)

AVX512 INLINE __m512i finish_avx512(const HnDepthwiseRow *d, const __m512i *sum)
{
    const HnInt8Out *o = d->finish;
    const __m512i zero = _mm512_set1_epi16((short)o->zero), lo = _mm512_set1_epi16((short)((int)o->lo + o->zero));
    const __m512i hi = _mm512_set1_epi16((short)((int)o->hi + o->zero));
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[j]), _mm512_loadu_ps(d->scale + 16 * j));
        if (d->shift != NULL)
            x = _mm512_add_ps(x, _mm512_loadu_ps(d->shift + 16 * j));
        v[j] = _mm512_cvtps_epi32(x);
    }
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
    const __m512i p = _mm512_min_epi16(_mm512_max_epi16(a, lo), hi), q = _mm512_min_epi16(_mm512_max_epi16(b, lo), hi);
    return o->dtype == HN_I8 ? _mm512_packs_epi16(p, q) : _mm512_packus_epi16(p, q);
}
#define HN_DW_FINISH_avx512 finish_avx512

#define IVEC_vnni __m512i
#define ILOAD_vnni ILOAD_avx512
#define ISTORE_vnni ISTORE_avx512
#define HN_DW_WIDTH_vnni 64
#define HN_DW_TAPS_vnni 4
#define HN_DW_OF_TWO_vnni 3
#define HN_DW_AT_ONCE_vnni 4
#define HN_DW_SET_vnni _mm512_set1_epi8
#define HN_DW_XOR_vnni _mm512_xor_si512
#define HN_DW_DOT_vnni(sum, x, w) _mm512_dpbusd_epi32(sum, x, w)
#define HN_DW_INTERLEAVE_vnni(z, r)                                                                                \
    do {                                                                                                           \
        const __m512i low01 = _mm512_unpacklo_epi8((r)[0], (r)[1]), high01 = _mm512_unpackhi_epi8((r)[0], (r)[1]); \
        const __m512i low23 = _mm512_unpacklo_epi8((r)[2], (r)[3]), high23 = _mm512_unpackhi_epi8((r)[2], (r)[3]); \
        (z)[0] = _mm512_unpacklo_epi16(low01, low23);                                                              \
        (z)[1] = _mm512_unpackhi_epi16(low01, low23);                                                              \
        (z)[2] = _mm512_unpacklo_epi16(high01, high23);                                                            \
        (z)[3] = _mm512_unpackhi_epi16(high01, high23);                                                            \
    } while (0)
#define HN_DW_LOAD_vnni HN_DW_LOAD_avx512
#define HN_DW_STORE_vnni HN_DW_STORE_avx512
#define HN_DW_FINISH_vnni finish_avx512
#define HN_TARGET_vnni __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
