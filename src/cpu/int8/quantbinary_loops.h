/*
 * Rows of QuantAdd and QuantMul, for quantbinary.c at one instruction level. Signed bytes are flipped to unsigned ones.
 */
#include <stdint.h>

#include "cpu/core/cpu_level.h"
#include "cpu/int8/quantbinary.h"

#define ROUND 12582912.0f /* 1.5 * 2^23: adding it rounds to a whole number, halves to even */

/* to[i] = x[i] * by + plus */
static HN_TARGET void HN_V(scale_bytes)(float *restrict to, const uint8_t *restrict x, int64_t n, uint8_t flip,
                                        float by, float plus)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(int)(uint8_t)(x[i] ^ flip) * by + plus;
}

static HN_TARGET void HN_V(scale_numbers)(float *restrict to, const float *restrict x, int64_t n, float by, float plus)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] * by + plus;
}

#ifndef HN_NUMBERS_ONLY
/* y[i] = (x[i] * by + plus) + or * other[i] */
#define BYTES(name, OP)                                                                                             \
    static HN_TARGET void HN_V(name##_bytes)(uint8_t * y, const uint8_t *x, const float *restrict other, int64_t n, \
                                             const HnPairRow *p)                                                    \
    {                                                                                                               \
        const uint8_t flip = p->x_flip, y_flip = p->y_flip;                                                         \
        const float by = p->by, plus = p->plus, lo = p->lo, hi = p->hi;                                             \
        const int zero = p->zero;                                                                                   \
        HN_IVDEP                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                           \
            float v = ((float)(int)(uint8_t)(x[i] ^ flip) * by + plus) OP other[i];                                 \
            v = v > lo ? v : lo;                                                                                    \
            v = v < hi ? v : hi;                                                                                    \
            y[i] = (uint8_t)((int)((v + ROUND) - ROUND) + zero) ^ y_flip;                                           \
        }                                                                                                           \
    }
BYTES(sum, +)
BYTES(product, *)
#undef BYTES
#endif

/* The same as numbers */
#define NUMBERS(name, OP)                                                                                  \
    static HN_TARGET void HN_V(name##_numbers)(float *restrict y, const uint8_t *restrict x,               \
                                               const float *restrict other, int64_t n, const HnPairRow *p) \
    {                                                                                                      \
        const uint8_t flip = p->x_flip;                                                                    \
        const float by = p->by, plus = p->plus, lo = p->lo, hi = p->hi;                                    \
        for (int64_t i = 0; i < n; i++) {                                                                  \
            float v = ((float)(int)(uint8_t)(x[i] ^ flip) * by + plus) OP other[i];                        \
            v = lo > v ? lo : v;                                                                           \
            y[i] = hi < v ? hi : v;                                                                        \
        }                                                                                                  \
    }
NUMBERS(sum, +)
NUMBERS(product, *)

#undef ROUND
#undef NUMBERS
