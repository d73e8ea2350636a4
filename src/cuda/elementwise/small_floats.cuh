/*
 * Floats of 8 and 4 bits, as base/half.h describes them.
 */
#pragma once

#include <stdint.h>

/* One sign bit, then exponent, then mantissa; codes are magnitudes. */
struct HnSmall {
    int width, mantissa, bias; /* bits in all, of the mantissa; of the exponent */
    int largest;               /* code of the largest finite number */
    int overflow, nan;         /* what a number too large becomes without saturation; NaN */
    bool unsigned_zero;        /* neither -0 nor a sign on NaN */
    bool infinite;             /* `overflow` is infinity, else NaN */
    bool saturates;            /* in any case; NaN is -0 */
};
constexpr HnSmall hn_e4m3fn = { 8, 3, 7, 0x7e, 0x7f, 0x7f, false, false, false };
constexpr HnSmall hn_e4m3fnuz = { 8, 3, 8, 0x7f, 0x80, 0x80, true, false, false };
constexpr HnSmall hn_e5m2 = { 8, 2, 15, 0x7b, 0x7c, 0x7e, false, true, false };
constexpr HnSmall hn_e5m2fnuz = { 8, 2, 16, 0x7f, 0x80, 0x80, true, false, false };
constexpr HnSmall hn_e2m1 = { 4, 1, 1, 0x07, 0x07, 0x08, false, false, true };

__device__ inline float hn_small_to_f32(const HnSmall f, uint32_t bits)
{
    const uint32_t sign = bits >> (f.width - 1) & 1, code = bits & ((1u << (f.width - 1)) - 1);
    if ((f.unsigned_zero && sign && code == 0) || (int)code > f.largest)
        return f.infinite && (int)code == f.overflow ? (sign ? -INFINITY : INFINITY) : __int_as_float(0x7fc00000);
    int exponent = (int)(code >> f.mantissa), m = (int)(code & ((1u << f.mantissa) - 1));
    if (exponent > 0)
        m += 1 << f.mantissa;
    else
        exponent = 1;
    const float x = (float)m * __int_as_float((127 + exponent - f.bias - f.mantissa) << 23);
    return sign ? -x : x;
}

__device__ inline uint8_t hn_small_from_f64(const HnSmall f, double x, bool saturate)
{
    const int64_t bits = __double_as_longlong(x);
    const int sign = bits < 0 ? 1 << (f.width - 1) : 0;
    if (x != x)
        return (uint8_t)(f.saturates || f.unsigned_zero ? f.nan : f.nan | sign);
    const double a = fabs(x);
    int code = f.largest + 1;
    if (a < 0x1p20) {
        /* exponent of a, not below that of the smallest normal number; q counts units in the last place */
        const int least = 1 - f.bias, own = (int)(bits >> 52 & 0x7ff) - 1023, e = own > least ? own : least;
        const int q = (int)rint(a * __longlong_as_double((int64_t)(1023 + f.mantissa - e) << 52));
        code = ((e - least) << f.mantissa) + q;
    }
    if (code > f.largest) {
        if (!saturate && !f.saturates)
            return (uint8_t)(f.unsigned_zero ? f.overflow : f.overflow | sign);
        code = f.largest;
    }
    return (uint8_t)(f.unsigned_zero && code == 0 ? 0 : code | sign);
}

/* Powers of two from 2^-127 on. */
__device__ inline float hn_e8m0_to_f32(uint8_t bits)
{
    return __int_as_float(bits == 0xff ? 0x7fc00000 : bits == 0 ? 0x00400000 : (int)bits << 23);
}

enum { HN_CUDA_UP, HN_CUDA_DOWN, HN_CUDA_NEAREST }; /* HnE8m0Round */

__device__ inline uint8_t hn_e8m0_from_f64(double x, int round, bool saturate)
{
    const double a = fabs(x);
    const int64_t bits = __double_as_longlong(a), mantissa = bits & 0xfffffffffffff;
    if (x != x)
        return 0xff;
    if (a == 0)
        return saturate ? 0 : 0xff;
    int e = (int)(bits >> 52) - 1023 + 127;
    if (a == INFINITY)
        return saturate ? 0xfe : 0xff;
    e += (round == HN_CUDA_UP && mantissa != 0) || (round == HN_CUDA_NEAREST && mantissa >> 51 != 0);
    if (e < 0 || e > 0xfe)
        return !saturate ? 0xff : e < 0 ? 0 : 0xfe;
    return (uint8_t)e;
}
