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

#if HN_LANES == 16
/* e^v is the result * 2^k of the whole number k below v / ln2, whose product with ln2's first part is exact. */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_exp_rest)(HN_VEC v, HN_VEC *k)
{
    const HN_VEC t = HN_VMUL(v, HN_VSET(1.44269504f));
    *k = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const HN_VEC r = HN_VFMA(*k, HN_VSET(1.90465421e-9f), HN_VFNMA(*k, HN_VSET(0.693147182f), v));
    HN_VEC p = HN_VFMA(HN_VSET(0.0116693731f), r, HN_VSET(0.0390626378f));
    p = HN_VFMA(p, r, HN_VSET(0.167554915f));
    p = HN_VFMA(p, r, HN_VSET(0.499870837f));
    p = HN_VFMA(p, r, HN_VSET(1.00000596f));
    return HN_VFMA(p, r, HN_VSET(1));
}

/* e^v: beyond these bounds it is 0 or infinity. */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_exp)(HN_VEC v)
{
    HN_VEC k;
    const HN_VEC p = HN_V(vec_exp_rest)(HN_VMAX(HN_VSET(-104.5f), HN_VMIN(HN_VSET(89.5f), v)), &k);
    return _mm512_scalef_ps(p, k);
}
#endif

/* e^v for v <= 0, and 0 where that is next to nothing */
#if HN_LANES == 16
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_exp_share)(HN_VEC v)
{
    HN_VEC k;
    const HN_VEC p = HN_V(vec_exp_rest)(v, &k);
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(v, HN_VSET(-87.3f), _CMP_NLT_UQ), p, k);
}
#else
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_exp_share)(HN_VEC v)
{
    HN_VEC scale;
    const HN_VEC p = HN_V(vec_exp_parts)(HN_VMAX(HN_VSET(-88.2f), v), &scale);
    return HN_VMUL(p, scale);
}
#endif

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
 * share is half of 1 - erf(t), t = |v| / sqrt(2), and 0 beyond t = 7.6. */
#if HN_LANES == 16
/* A table's number for the last 4 bits of each element of `at`. */
#define PICK(at, ...) _mm512_permutexvar_ps(_mm512_castps_si512(at), _mm512_setr_ps(__VA_ARGS__))

/* The share is 2^z, z a polynomial about the nearest of 16 places, and 2^z that of the nearest sixteenth, whose bits
 * are in a table less what the shift adds to them, times a polynomial. */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(vec_gelu)(HN_VEC v)
{
    const HN_VEC round = HN_VSET(12582912.0f), sixteenths = HN_VSET(786432.0f); /* 1.5 * 2^23, 1.5 * 2^19 */
    const HN_VEC a = HN_VMAX(v, HN_VSET(0) - v), c = HN_VMIN(HN_VSET(10.75f), v);
    const HN_VEC at = HN_VFMA(a, HN_VSET(1.4418604f), round);
    const HN_VEC d = HN_VFNMA(at - round, HN_VSET(0.6935484f), a);
    HN_VEC z = PICK(at, 0.00680948095f, 0.00565495156f, 0.00369657786f, 0.00224101497f, 0.00134497578f, 0.000821490656f,
                    0.000516130589f, 0.000334551965f, 0.000223601834f, 0.000153787129f, 0.000108569169f,
                    7.84735603e-05f, 5.79326879e-05f, 4.35870861e-05f, 3.33566677e-05f, 2.5921152e-05f);
    z = HN_VFMA(z, d,
                PICK(at, -0.0523806289f, -0.0345908962f, -0.0216721017f, -0.013579648f, -0.00871266238f,
                     -0.00577222882f, -0.00395366969f, -0.00279458752f, -0.0020324178f, -0.00151605799f,
                     -0.00115646527f, -0.000899716455f, -0.000712237321f, -0.000572556339f, -0.000466592406f,
                     -0.000384893618f));
    z = HN_VFMA(z, d,
                PICK(at, -0.459229976f, -0.549028099f, -0.606433213f, -0.642275274f, -0.664956212f, -0.679727316f,
                     -0.689671636f, -0.696588695f, -0.701547146f, -0.705198944f, -0.707953513f, -0.710075438f,
                     -0.711740673f, -0.713069081f, -0.714144349f, -0.715025902f));
    z = HN_VFMA(z, d,
                PICK(at, -1.15110385f, -1.85470593f, -2.65917611f, -3.52714872f, -4.43493748f, -5.36824179f,
                     -6.31842041f, -7.28013563f, -8.24999237f, -9.22576237f, -10.2059383f, -11.1894712f, -12.1756144f,
                     -13.1638231f, -14.1536894f, -15.144908f));
    z = HN_VFMA(z, d,
                PICK(at, -1.0f, -2.0351491f, -3.59586191f, -5.73825884f, -8.4974947f, -11.8958044f, -15.9476423f,
                     -20.6627178f, -26.0477695f, -32.1076164f, -38.8458099f, -46.2650146f, -54.3672905f, -63.1542473f,
                     -72.6271667f, -82.7870941f));
    const HN_VEC near = z + sixteenths, f = z - (near - sixteenths);
    const __m512i bits = _mm512_castps_si512(near);
    const __m512i of = _mm512_permutexvar_epi32(
        bits, _mm512_setr_epi32(0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532, 0x3f75fed7,
                                0x3f75583f, 0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c, 0x3f7744fd, 0x3f78ccdf,
                                0x3f7ac0c7, 0x3f7d257d));
    const HN_VEC power = _mm512_castsi512_ps(_mm512_add_epi32(of, _mm512_slli_epi32(bits, 19)));
    const HN_VEC q = HN_VFMA(LINE(0.05550595f, f, 0.240234286f), f, HN_VSET(0.693147182f));
    const __mmask16 some = _mm512_cmp_ps_mask(a, HN_VSET(10.75f), _CMP_LT_OQ);
    const HN_VEC y = _mm512_maskz_mul_ps(some, HN_VFMA(q, f, HN_VSET(1)), power);
    return HN_VFNMA(HN_VMAX(c, HN_VSET(0) - v), y, HN_VMAX(HN_VSET(0), v)); /* NaN of minus infinity */
}
#undef PICK
#else
/* As e^(-t R(t)): R is a polynomial about the middle, where its terms stay small; its numbers contain the factors of t
 * and of powers of 2. */
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
#endif

#undef LINE
