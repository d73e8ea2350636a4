/*
 * Functions of one f32, written without branches so that a loop over them becomes vectors. Included for each
 * instruction level (cpu/core/cpu_level.h). Errors are some units in the last place; NaN comes through; infinities give
 * what C's functions do.
 */
#include "cpu/core/cpu_level.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline HN_TARGET

INLINE float HN_V(as_float)(int32_t i)
{
    float f;
    memcpy(&f, &i, sizeof f);
    return f;
}

INLINE int32_t HN_V(as_int)(float f)
{
    int32_t i;
    memcpy(&i, &f, sizeof i);
    return i;
}

/* 2^k for -127 < k < 128; something for what NaN makes of k */
INLINE float HN_V(power)(int32_t k)
{
    return HN_V(as_float)((int32_t)(((uint32_t)k + 127u) << 23));
}

/* v = k * ln2 + r with |r| <= ln2 / 2: k as it sums up in the last bits of a float, and e^r - 1. */
INLINE float HN_V(exp_parts)(float v, int32_t *k)
{
    const float shifted = HN_FMA(v, 1.44269504f, 12582912.0f); /* 1.5 * 2^23 */
    const float whole = shifted - 12582912.0f;
    *k = HN_V(as_int)(shifted) - 0x4b400000;
    float r = HN_FMA(whole, -0.693359375f, v);
    r = HN_FMA(whole, 2.12194440e-4f, r);
    float q = 0.00139504862f;
    q = HN_FMA(q, r, 0.00836888786f);
    q = HN_FMA(q, r, 0.0416662059f);
    q = HN_FMA(q, r, 0.166665189f);
    q = HN_FMA(q, r, 0.5f);
    return HN_FMA(q * r, r, r);
}

INLINE float HN_V(exp)(float v)
{
    int32_t k;
    v = v > 89.0f ? 89.0f : v;
    v = v < -104.0f ? -104.0f : v;
    const float p = HN_V(exp_parts)(v, &k) + 1.0f;
    const int32_t half = k >> 1; /* 2^k in two steps: it may be beyond the range of numbers where the product is not */
    return p * HN_V(power)(half) * HN_V(power)(k - half);
}

/* For v <= 88 only; e^-88 for what is less: a cheaper one, for sums of powers that are 1 at most. */
INLINE float HN_V(exp_small)(float v)
{
    int32_t k;
    v = v < -87.0f ? -87.0f : v;
    const float p = HN_V(exp_parts)(v, &k) + 1.0f;
    return p * HN_V(power)(k);
}

/* e^v for v <= 0, and 0 where that is next to nothing */
INLINE float HN_V(exp_share)(float v)
{
    const float y = HN_V(exp_small)(v);
    return v < -87.0f ? 0.0f : y;
}

/* e^v - 1 for v <= 0 */
INLINE float HN_V(expm1_negative)(float v)
{
    int32_t k;
    v = v < -87.0f ? -87.0f : v;
    const float p = HN_V(exp_parts)(v, &k), scale = HN_V(power)(k);
    return HN_FMA(p, scale, scale - 1.0f);
}

INLINE float HN_V(log)(float v)
{
    const float x = v < FLT_MIN ? v * 0x1p25f : v;
    /* sqrt(1/2): the fraction is between it and its double. Unsigned: of negative numbers it wraps, to no harm */
    const int32_t i = (int32_t)((uint32_t)HN_V(as_int)(x) - 0x3f3504f3u);
    const float e = (float)(i >> 23) - (v < FLT_MIN ? 25.0f : 0.0f);
    const float f = HN_V(as_float)((i & 0x7fffff) + 0x3f3504f3) - 1.0f;
    const float z = f * f;
    float p = 0.0691544718f;
    p = HN_FMA(p, f, -0.117899335f);
    p = HN_FMA(p, f, 0.118730084f);
    p = HN_FMA(p, f, -0.123843307f);
    p = HN_FMA(p, f, 0.142186518f);
    p = HN_FMA(p, f, -0.166692516f);
    p = HN_FMA(p, f, 0.200022269f);
    p = HN_FMA(p, f, -0.249999866f);
    p = HN_FMA(p, f, 0.333333104f);
    p = p * f * z;
    p = HN_FMA(e, -2.12194440e-4f, p);
    p = HN_FMA(z, -0.5f, p);
    float y = HN_FMA(e, 0.693359375f, p + f);
    y = v > FLT_MAX ? v : y;
    y = v == 0 ? -INFINITY : y;
    return v >= 0 ? y : NAN;
}

/* log(1 + u) for 0 <= u <= 1 */
INLINE float HN_V(log1p)(float u)
{
    const float y = 1.0f + u;
    return HN_V(log)(y) + (u - (y - 1.0f)) / y;
}

/* A quotient of polynomials up to 8, where 1 is some 2e-7 away; below 3.5e-7 off, relative. */
INLINE float HN_V(tanh)(float v)
{
    v = v > 8.0f ? 8.0f : v;
    v = v < -8.0f ? -8.0f : v;
    const float z = v * v;
    float p = 1.52309614e-08f, q = 8.52267078e-07f;
    p = HN_FMA(p, z, 2.1895059e-05f);
    q = HN_FMA(q, z, 0.000341133185f);
    p = HN_FMA(p, z, 0.00357162254f);
    q = HN_FMA(q, z, 0.0261645354f);
    p = HN_FMA(p, z, 0.13444519f);
    q = HN_FMA(q, z, 0.467778474f);
    p = HN_FMA(p, z, 1.0f);
    q = HN_FMA(q, z, 1.0f);
    return v * p / q;
}

INLINE float HN_V(sigmoid)(float v)
{
    return 1.0f / (1.0f + HN_V(exp)(-v));
}

/* A quotient of polynomials up to 3.9, and 1 beyond; below 4e-7 off, relative. */
INLINE float HN_V(erf)(float v)
{
    const float t = v > 3.9f ? 3.9f : v < -3.9f ? -3.9f : v, z = t * t;
    float p = 2.06644722e-06f, q = 3.82695835e-05f;
    p = HN_FMA(p, z, 0.000285058981f);
    q = HN_FMA(q, z, 0.0011573626f);
    p = HN_FMA(p, z, 0.00373830856f);
    q = HN_FMA(q, z, 0.0149142072f);
    p = HN_FMA(p, z, 0.052667968f);
    q = HN_FMA(q, z, 0.11381869f);
    p = HN_FMA(p, z, 0.189666256f);
    q = HN_FMA(q, z, 0.50142014f);
    p = HN_FMA(p, z, 1.12837911f);
    q = HN_FMA(q, z, 1.0f);
    const float y = t * p / q;
    return v >= 3.9f || y > 1.0f ? 1.0f : v <= -3.9f || y < -1.0f ? -1.0f : y;
}

/* The derivative of v Phi(v), Phi(v) + v phi(v), within 3e-7: with one power for both (M. Abramowitz, I. A. Stegun,
 * "Handbook of mathematical functions", 1964, 7.1.26). */
INLINE float HN_V(gelu_slope)(float v)
{
    const float c = v > 14.0f ? 14.0f : v < -14.0f ? -14.0f : v, z = 0.707106781f * (c < 0 ? -c : c);
    const float t = 1.0f / HN_FMA(z, 0.3275911f, 1.0f), e = HN_V(exp_small)(-z * z);
    float p = HN_FMA(t, 0.530702715f, -0.726576014f); /* half of the formula's numbers */
    p = HN_FMA(p, t, 0.710706871f);
    p = HN_FMA(p, t, -0.142248368f);
    p = HN_FMA(p, t, 0.127414796f);
    p = p * t * e;
    return HN_FMA(0.398942280f * c, e, v < 0 ? p : 1.0f - p);
}

/* The derivative of v s, s = 1 / (1 + e^-2u), u = sqrt(2/pi) (v + 0.044715 v^3): s + 2 v u' s (1 - s). Beyond 10, s is
 * 0 or 1. */
INLINE float HN_V(gelu_tanh_slope)(float v)
{
    const float c = v > 10.0f ? 10.0f : v < -10.0f ? -10.0f : v, z = c * c, a = c < 0 ? -c : c;
    const float e = HN_V(exp_small)(-a * HN_FMA(z, 0.0713548162f, 1.59576912f)), more = 1.0f / (1.0f + e);
    const float less = e * more; /* of 1 and s the smaller share, without a difference */
    return HN_FMA(c * HN_FMA(z, 0.214064449f, 1.59576912f), more * less, v < 0 ? less : more);
}

INLINE float HN_V(softplus)(float v)
{
    const float e = HN_V(log1p)(HN_V(exp)(v < 0 ? v : -v));
    return v > 0 ? v + e : e;
}

/* v tanh(log(1 + w)) with w = e^v is v (w^2 + 2 w) / (w^2 + 2 w + 2) */
INLINE float HN_V(mish)(float v)
{
    const float w = HN_V(exp)(v > 20.0f ? 20.0f : v), q = w * (w + 2.0f);
    return v * (q / (q + 2.0f));
}

/* Sine or cosine (quarter 1) of an angle below 2^30. */
INLINE float HN_V(sine)(float v, int32_t quarter)
{
    const double n = ((double)v * 0.63661977236758134308 + 0x1.8p52) - 0x1.8p52;
    const float r = (float)((double)v - n * 1.57079632679489661923);
    const int32_t k = (int32_t)n + quarter;
    const float z = r * r;
    float s = 2.71812175e-06f, c = -2.72084764e-07f;
    s = HN_FMA(s, z, -0.000198393151f);
    s = HN_FMA(s, z, 0.00833332933f);
    s = HN_FMA(s, z, -0.166666666f);
    s = HN_FMA(s * z, r, r);
    c = HN_FMA(c, z, 2.47994989e-05f);
    c = HN_FMA(c, z, -0.00138888837f);
    c = HN_FMA(c, z, 0.0416666666f);
    c = HN_FMA(c * z, z, HN_FMA(z, -0.5f, 1.0f));
    const float y = (k & 1) != 0 ? c : s;
    return (k & 2) != 0 ? -y : y;
}

#undef INLINE
