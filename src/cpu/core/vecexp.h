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

/* v / 2 (1 + tanh(u)) is v / (1 + e^(-2 u)), u = sqrt(2/pi) (v + 0.044715 v^3): no difference of 1 and almost 1. */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_gelu_tanh)(HN_VEC v)
{
    const HN_VEC twice = HN_VMUL(HN_VFMA(HN_VMUL(v, v), HN_VSET(0.0713548162f), HN_VSET(1.59576912f)), v);
    return v / HN_V(vec_logistic)(twice);
}

#define LINE(a, v, b) HN_VFMA(HN_VSET(a), v, HN_VSET(b))

/* v times the normal distribution's share below v: what |v| times the share below -|v| leaves of it, or of 0. That
 * share is half of 1 - erf(t), t = |v| / sqrt(2), as e^(-t R(t)), and 0 beyond t = 7.6. R is a polynomial about the
 * middle, where its terms stay small; its numbers contain the factors of t and of powers of 2. */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_gelu)(HN_VEC v)
{
    const HN_VEC round = HN_VSET(12583038.0f); /* 1.5 * 2^23 + 126 */
    const HN_VEC a = HN_VMAX(v, HN_VSET(0) - v), c = HN_VMIN(HN_VSET(10.75f), a);
    const HN_VEC u = HN_VFMA(c, HN_VSET(0.186080732f), HN_VSET(-1)), u2 = HN_VMUL(u, u), u4 = HN_VMUL(u2, u2);
    /* pairs of terms, and pairs of these: few instructions wait for one another. The largest two terms come last */
    const HN_VEC r4 = HN_VFMA(LINE(0.0316689312f, u, -0.0543707162f), u2, LINE(0.0924591497f, u, -0.155851275f));
    const HN_VEC r8 = HN_VFMA(LINE(0.00496808486f, u, -0.00305897184f), u2, LINE(0.0061169737f, u, -0.0169028398f));
    const HN_VEC r12 = HN_VFMA(HN_VSET(0.00173375115f), u2, LINE(-0.00295612845f, u, -0.00155398797f));
    const HN_VEC r =
        HN_VFMA(HN_VFMA(r12, HN_VMUL(u4, u4), HN_VFMA(r8, u4, r4)), u2, LINE(-3.60833502f, u, -4.3971796f));
    const HN_VEC z = HN_VMUL(c, r), shifted = z + round, f = z - (shifted - round), f2 = HN_VMUL(f, f);
    const HN_VEC q4 = HN_VFMA(HN_VSET(0.000153534173f), f2, LINE(0.00133988773f, f, 0.00961843692f));
    const HN_VEC q2 = HN_VFMA(q4, f2, LINE(0.0555033237f, f, 0.240226477f));
    const HN_VEC q = HN_VFMA(q2, f2, LINE(0.693147182f, f, 1.0f));
    const HN_VEC near = HN_VMAX(HN_VSET(0), HN_VMUL(HN_VSET(10.75f) - a, HN_VSET(0x1p60f))); /* 0 beyond 10.75 */
    const HN_VEC y = HN_VMIN(near, HN_VMUL(q, HN_VPOWER(shifted)));
    return HN_VFNMA(HN_VMAX(c, HN_VSET(0) - v), y, HN_VMAX(HN_VSET(0), v)); /* NaN of minus infinity */
}

#undef LINE
