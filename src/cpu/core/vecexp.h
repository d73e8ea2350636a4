/*
 * Powers of e of whole vectors at one instruction level: the exponent is clamped by single instructions, where
 * compilers make several of a loop's comparisons, and 2^k is a shift of the sum that rounds to k. Some units in the
 * last place off; NaN comes through.
 */
#include "cpu/core/vec.h"

#define HN_VPOWER                                                                                      \
    HN_JOIN(HN_VPOWER, HN_LEVEL) /* of k + 127 in a float's last bits: 2^k; 0 and infinity at the ends \
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

/* 1 + e^-v, by which 1 is divided for sigmoid and swish */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_logistic)(HN_VEC v)
{
    HN_VEC scale;
    const HN_VEC less = HN_VMAX(HN_VSET(-87.0f), HN_VMIN(HN_VSET(88.8f), HN_VSET(0) - v));
    const HN_VEC p = HN_V(vec_exp_parts)(less, &scale);
    return HN_VFMA(p, scale, HN_VSET(1));
}

/* v times the normal distribution's share below v: what |v| times the share below -|v| leaves of it, or of 0. That
 * share is half of 1 - erf(t), t = |v| / sqrt(2), as e^(-t R(t)), and 0 beyond t = 7.6. R is a polynomial about the
 * middle, where its terms stay small; its numbers contain the factors of t and of powers of 2. */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_gelu)(HN_VEC v)
{
    static const float share[] = { -0.00295612845f, -0.00155398797f, 0.00496808486f, -0.00305897184f,
                                   0.0061169737f,   -0.0169028398f,  0.0316689312f,  -0.0543707162f,
                                   0.0924591497f,   -0.155851275f,   -3.60833502f,   -4.3971796f };
    static const float power[] = { 0.00133988773f, 0.00961843692f, 0.0555033237f, 0.240226477f, 0.693147182f, 1.0f };
    const HN_VEC round = HN_VSET(12583038.0f); /* 1.5 * 2^23 + 126 */
    const HN_VEC a = HN_VMAX(v, HN_VSET(0) - v), c = HN_VMIN(HN_VSET(10.75f), a);
    const HN_VEC u = HN_VFMA(c, HN_VSET(0.186080732f), HN_VSET(-1));
    HN_VEC r = HN_VSET(0.00173375115f), q = HN_VSET(0.000153534173f);
    HN_UNROLL
    for (int i = 0; i < 12; i++)
        r = HN_VFMA(r, u, HN_VSET(share[i]));
    const HN_VEC z = HN_VMUL(c, r), shifted = z + round, f = z - (shifted - round);
    HN_UNROLL
    for (int i = 0; i < 6; i++)
        q = HN_VFMA(q, f, HN_VSET(power[i]));
    const HN_VEC near = HN_VMAX(HN_VSET(0), HN_VMUL(HN_VSET(10.75f) - a, HN_VSET(0x1p60f))); /* 0 beyond 10.75 */
    const HN_VEC y = HN_VMIN(near, HN_VMUL(q, HN_VPOWER(shifted)));
    return HN_VFNMA(HN_VMAX(c, HN_VSET(0) - v), y, HN_VMAX(HN_VSET(0), v)); /* NaN of minus infinity */
}
