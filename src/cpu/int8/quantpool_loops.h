/*
 * Sums of rows as means, for quantpool.c at one instruction level.
 */
#include <stdint.h>

#include "cpu/core/cpu_level.h"

#define ROUND 12582912.0f /* 1.5 * 2^23: adding it rounds to a whole number, halves to even */

/* (sum[c] - less) * by in bounds, as bytes; of few elements, so that all of that fits */
static HN_TARGET void HN_V(means_bytes)(uint8_t *restrict y, const int32_t *restrict sum, int64_t n, int32_t less,
                                        float by, float lo, float hi, int zero)
{
    for (int64_t i = 0; i < n; i++) {
        float v = (float)(sum[i] - less) * by;
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        y[i] = (uint8_t)((int)((v + ROUND) - ROUND) + zero);
    }
}

static HN_TARGET void HN_V(means_numbers)(float *restrict y, const int32_t *restrict sum, int64_t n, int32_t less,
                                          float by, float lo, float hi)
{
    for (int64_t i = 0; i < n; i++) {
        float v = (float)(sum[i] - less) * by;
        v = lo > v ? lo : v;
        y[i] = hi < v ? hi : v;
    }
}

#undef ROUND
