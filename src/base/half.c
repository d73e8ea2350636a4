#include "base/half.h"

#include <math.h>

#include "base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

uint16_t hn_bf16_from_f64(double x)
{
    /* to f32 first, rounding to odd: the last bit remembers that something was cut off, so the second rounding is safe
     */
    float f = (float)x;
    uint32_t u = hn_f32_bits(f);
    if (!isnan(x) && (double)f != x && !(u & 1))
        u = fabs((double)f) > fabs(x) ? u - 1 : u + 1;
    return hn_bf16_from_f32(hn_f32_from_bits(u));
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static size_t f16_to_f32_f16c(float *dst, const uint16_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + i))));
    return i;
}

__attribute__((target("avx,f16c"))) static size_t f16_from_f32_f16c(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#endif

void hn_f16_to_f32_n(float *dst, const uint16_t *src, size_t n)
{
    size_t i = 0;
#if defined(__x86_64__)
    if (n >= 16 && hn_cpu_isa() >= HN_ISA_AVX2)
        i = f16_to_f32_f16c(dst, src, n);
#endif
    for (; i < n; i++)
        dst[i] = hn_f16_to_f32(src[i]);
}

void hn_f16_from_f32_n(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;
#if defined(__x86_64__)
    if (n >= 16 && hn_cpu_isa() >= HN_ISA_AVX2)
        i = f16_from_f32_f16c(dst, src, n);
#endif
    for (; i < n; i++)
        dst[i] = hn_f16_from_f32(src[i]);
}

void hn_bf16_to_f32_n(float *dst, const uint16_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = hn_bf16_to_f32(src[i]);
}

void hn_bf16_from_f32_n(uint16_t *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = hn_bf16_from_f32(src[i]);
}

/* One sign bit, then exponent, then mantissa; codes are magnitudes. */
typedef struct {
    int width;        /* bits in all */
    int mantissa;     /* bits */
    int bias;         /* of the exponent */
    uint8_t largest;  /* code of the largest finite value */
    uint8_t overflow; /* what an infinity or a value too large becomes without saturation */
    uint8_t nan;
    gboolean unsigned_zero; /* neither -0 nor a sign on NaN */
} Small;

static const Small small_formats[] = {
    [HN_SMALL_E4M3FN] = { 8, 3, 7, 0x7e, 0x7f, 0x7f, FALSE },
    [HN_SMALL_E4M3FNUZ] = { 8, 3, 8, 0x7f, 0x80, 0x80, TRUE },
    [HN_SMALL_E5M2] = { 8, 2, 15, 0x7b, 0x7c, 0x7e, FALSE },
    [HN_SMALL_E5M2FNUZ] = { 8, 2, 16, 0x7f, 0x80, 0x80, TRUE },
    [HN_SMALL_E2M1] = { 4, 1, 1, 0x07, 0x07, 0x08, FALSE },
};

float hn_small_to_f32(HnSmallFloat format, uint8_t bits)
{
    if (format == HN_SMALL_E8M0)
        return bits == 0xff ? NAN : ldexpf(1.0f, bits - 127);
    const Small *f = &small_formats[format];
    unsigned sign = bits >> (f->width - 1) & 1, code = bits & ((1u << (f->width - 1)) - 1);
    if (f->unsigned_zero && sign && !code)
        return NAN;
    if (code > f->largest)
        return format == HN_SMALL_E5M2 && code == f->overflow ? (sign ? -INFINITY : INFINITY) : NAN;
    int exponent = (int)(code >> f->mantissa), m = (int)(code & ((1u << f->mantissa) - 1));
    if (exponent)
        m += 1 << f->mantissa;
    else
        exponent = 1;
    float x = ldexpf((float)m, exponent - f->bias - f->mantissa);
    return sign ? -x : x;
}

uint8_t hn_small_from_f64(HnSmallFloat format, double x, gboolean saturate)
{
    g_assert(format != HN_SMALL_E8M0);
    const Small *f = &small_formats[format];
    uint8_t sign = signbit(x) ? (uint8_t)(1u << (f->width - 1)) : 0;
    if (isnan(x))
        return format == HN_SMALL_E2M1 || f->unsigned_zero ? f->nan : f->nan | sign;

    double a = fabs(x);
    unsigned code = f->largest + 1u;
    if (a < 0x1p20) {
        /* exponent of a, not below that of the smallest normal value; q counts units in the last place */
        int e, least = 1 - f->bias;
        frexp(a, &e);
        e = a == 0 ? least : MAX(e - 1, least);
        unsigned q = (unsigned)nearbyint(ldexp(a, f->mantissa - e));
        code = ((unsigned)(e - least) << f->mantissa) + q;
    }
    if (code > f->largest) {
        if (!saturate && format != HN_SMALL_E2M1)
            return f->unsigned_zero ? f->overflow : f->overflow | sign;
        code = f->largest;
    }
    return f->unsigned_zero && !code ? 0 : (uint8_t)code | sign;
}

uint8_t hn_e8m0_from_f64(double x, HnE8m0Round round, gboolean saturate)
{
    double a = fabs(x);
    if (isnan(x))
        return 0xff;
    if (a == 0)
        return saturate ? 0 : 0xff;
    if (isinf(a))
        return saturate ? 0xfe : 0xff;
    int e;
    double m = 2 * frexp(a, &e); /* a = m * 2^(e-1), 1 <= m < 2 */
    e += 127 - 1;
    if ((round == HN_E8M0_UP && m > 1) || (round == HN_E8M0_NEAREST && m >= 1.5))
        e++;
    if (e < 0 || e > 0xfe)
        return !saturate ? 0xff : e < 0 ? 0 : 0xfe;
    return (uint8_t)e;
}
