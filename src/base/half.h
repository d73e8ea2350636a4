/*
 * Small floating-point formats: IEEE half (f16), bfloat16, the five 8-bit ones and the 4-bit one of ONNX.
 *
 * Values travel as their bits. Every conversion rounds to nearest, ties to even, straight from its source (no double
 * rounding), keeps subnormals, and turns NaN into a quiet NaN. The rounding mode must be the default one.
 */
#pragma once

#include <glib.h>
#include <stdint.h>
#include <string.h>

G_BEGIN_DECLS

static inline uint32_t hn_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float hn_f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float hn_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, em = h & 0x7fff;
    if (em < 0x0400) /* zero and subnormals: em * 2^-24 */
        return hn_f32_from_bits(sign | hn_f32_bits((float)em * 0x1p-24f));
    if (em < 0x7c00) /* bias 15 -> 127 */
        return hn_f32_from_bits(sign | ((em << 13) + (112u << 23)));
    return hn_f32_from_bits(sign | 0x7f800000 | em << 13 | (em > 0x7c00 ? 0x00400000 : 0));
}

static inline uint16_t hn_f16_from_f32(float x)
{
    uint32_t u = hn_f32_bits(x), abs = u & 0x7fffffff;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (abs > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (abs >> 13 & 0x3ff));
    if (abs >= 0x477ff000) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00);
    if (abs < 0x38800000) /* below 2^-14: the unit in the last place of 0.5f is 2^-24, so the sum rounds as needed */
        return (uint16_t)(sign | (hn_f32_bits(hn_f32_from_bits(abs) + 0.5f) - 0x3f000000));
    abs += 0xfff + (abs >> 13 & 1);
    return (uint16_t)(sign | ((abs >> 13) - (112u << 10)));
}

static inline uint16_t hn_f16_from_f64(double x)
{
    uint64_t u, abs;
    memcpy(&u, &x, sizeof u);
    abs = u & INT64_MAX;
    uint16_t sign = (uint16_t)(u >> 48 & 0x8000);
    if (abs > 0x7ff0000000000000)
        return (uint16_t)(sign | 0x7e00 | (abs >> 42 & 0x3ff));
    if (abs >= 0x40effe0000000000) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00);
    if (abs < 0x3f10000000000000) { /* below 2^-14: the unit in the last place of 2^28 is 2^-24 */
        double y;
        memcpy(&y, &abs, sizeof y);
        y += 0x1p28;
        memcpy(&abs, &y, sizeof abs);
        return (uint16_t)(sign | (abs - 0x41b0000000000000));
    }
    abs += 0x1ffffffffff + (abs >> 42 & 1);
    return (uint16_t)(sign | ((abs >> 42) - (1008u << 10)));
}

static inline float hn_bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    return hn_f32_from_bits((u & 0x7fffffff) > 0x7f800000 ? u | 0x00400000 : u);
}

static inline uint16_t hn_bf16_from_f32(float x)
{
    uint32_t u = hn_f32_bits(x);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

uint16_t hn_bf16_from_f64(double x);

/* n values; dst and src do not overlap */
void hn_f16_to_f32_n(float *dst, const uint16_t *src, size_t n);
void hn_f16_from_f32_n(uint16_t *dst, const float *src, size_t n);
void hn_bf16_to_f32_n(float *dst, const uint16_t *src, size_t n);
void hn_bf16_from_f32_n(uint16_t *dst, const float *src, size_t n);

typedef enum {
    HN_SMALL_E4M3FN,   /* 8 bits: largest 448, one NaN per sign, no infinity */
    HN_SMALL_E4M3FNUZ, /* 8 bits: largest 240, NaN is 0x80, neither infinity nor -0 */
    HN_SMALL_E5M2,     /* 8 bits: largest 57344, infinities and NaNs as in IEEE formats */
    HN_SMALL_E5M2FNUZ, /* 8 bits: largest 57344, NaN is 0x80, neither infinity nor -0 */
    HN_SMALL_E8M0,     /* 8 bits: powers of two from 2^-127 to 2^127, NaN is 0xff; no sign, no zero */
    HN_SMALL_E2M1,     /* 4 bits, in the low half of the byte: 0 0.5 1 1.5 2 3 4 6 and their negatives */
} HnSmallFloat;

float hn_small_to_f32(HnSmallFloat format, uint8_t bits);

/*
 * What does not fit becomes the largest finite value where saturate is set (always for E2M1), otherwise infinity or
 * NaN, whichever the format has; NaN is -0 in E2M1. Not for E8M0.
 */
uint8_t hn_small_from_f64(HnSmallFloat format, double x, gboolean saturate);

typedef enum {
    HN_E8M0_UP,      /* to the next power of two, away from zero */
    HN_E8M0_DOWN,    /* towards zero */
    HN_E8M0_NEAREST, /* ties up */
} HnE8m0Round;

/* E8M0 has no sign: it takes the magnitude. Out of range, zero too: the nearest end if saturate is set, else NaN. */
uint8_t hn_e8m0_from_f64(double x, HnE8m0Round round, gboolean saturate);

G_END_DECLS
