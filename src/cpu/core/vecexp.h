/*
 * Powers of e of whole vectors at one instruction level: the exponent is clamped by single instructions, where
 * compilers make several of a loop's comparisons, and 2^k is a shift of the sum that rounds to k. Some units in the
 * last place off; NaN comes through.
 */
#include "cpu/core/vec.h"

#define HN_VPOWER HN_JOIN(HN_VPOWER, HN_LEVEL) /* of k + 127 in a float's last bits: 2^k; 0 and infinity at the ends \
                                                */
#define HN_VPOWER_plain(v) _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(v), 23))
#define HN_VPOWER_avx2(v) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v), 23))
#define HN_VPOWER_avx512(v) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), 23))

/* e^v = the result * *scale, for -88.3 < v < 89: scale is 0 below -87.7 and infinite above 88.4 */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_exp_parts)(HN_VEC v, HN_VEC *scale)
{
    const HN_VEC round = HN_VSET(12583039.0f); /* 1.5 * 2^23 + 127 */
    const HN_VEC shifted = HN_VFMA(v, HN_VSET(1.44269504f), round), k = shifted - round;
    const HN_VEC r = HN_VFMA(k, HN_VSET(2.12194440e-4f), HN_VFNMA(k, HN_VSET(0.693359375f), v)); /* v - k * ln2 */
    HN_VEC p = HN_VFMA(HN_VSET(0.00139504862f), r, HN_VSET(0.00836888786f));
    p = HN_VFMA(p, r, HN_VSET(0.0416662059f));
    p = HN_VFMA(p, r, HN_VSET(0.166665189f));
    p = HN_VFMA(p, r, HN_VSET(0.5f));
    *scale = HN_VPOWER(shifted);
    return HN_VFMA(HN_VMUL(p, r), r, r) + HN_VSET(1);
}

/* e^v for v <= 0, and 0 where that is next to nothing */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_exp_share)(HN_VEC v)
{
    HN_VEC scale;
    const HN_VEC p = HN_V(vec_exp_parts)(HN_VMAX(HN_VSET(-88.2f), v), &scale);
    return HN_VMUL(p, scale);
}

/* 1 + e^-v, by which 1 or v is divided for sigmoid or swish */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_logistic)(HN_VEC v)
{
    HN_VEC scale;
    const HN_VEC less = HN_VMAX(HN_VSET(-87.0f), HN_VMIN(HN_VSET(88.8f), HN_VSET(0) - v));
    const HN_VEC p = HN_V(vec_exp_parts)(less, &scale);
    return HN_VFMA(p, scale, HN_VSET(1));
}
