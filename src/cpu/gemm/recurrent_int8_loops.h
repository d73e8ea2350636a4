/* Rows of floats as integers, and integers of sums as floats, for recurrent_int8.c at one instruction level. */
#include <glib.h>
#include <stdint.h>

#include "cpu/core/cpu_level.h"

#define LANES 16

/* The range of x, and of what is in range[2] already. */
static HN_TARGET void HN_V(range)(const float *x, int64_t n, float *range)
{
    float lo[LANES], hi[LANES];
    for (int j = 0; j < LANES; j++) {
        lo[j] = range[0];
        hi[j] = range[1];
    }
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            lo[j] = x[i + j] < lo[j] ? x[i + j] : lo[j];
            hi[j] = x[i + j] > hi[j] ? x[i + j] : hi[j];
        }
    for (; i < n; i++) {
        lo[0] = x[i] < lo[0] ? x[i] : lo[0];
        hi[0] = x[i] > hi[0] ? x[i] : hi[0];
    }
    for (int j = 0; j < LANES; j++) {
        range[0] = lo[j] < range[0] ? lo[j] : range[0];
        range[1] = hi[j] > range[1] ? hi[j] : range[1];
    }
}

/* Halves to even: what is added has no place for a fraction. */
#define ROUND_ROW(T, name, less)                                                                 \
    static HN_TARGET void HN_V(name)(void *to, const float *x, int64_t n, float scale, int zero) \
    {                                                                                            \
        T *y = to;                                                                               \
        const float lo = (float)-zero, hi = (float)(255 - zero);                                 \
        for (int64_t i = 0; i < n; i++) {                                                        \
            float v = x[i] / scale;                                                              \
            v = v > lo ? v : lo;                                                                 \
            v = v < hi ? v : hi;                                                                 \
            y[i] = (T)((int)((v + 12582912.0f) - 12582912.0f) + (less));                         \
        }                                                                                        \
    }
ROUND_ROW(uint8_t, round_bytes, zero)
ROUND_ROW(int16_t, round_pairs, 0)

static HN_TARGET void HN_V(add)(float *to, const int32_t *sums, const float *scale, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += (float)sums[i] * (by * scale[i]);
}

static HN_TARGET void HN_V(begin)(int32_t *to, const int32_t *sums, int by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = by * sums[i];
}

#undef ROUND_ROW
#undef LANES
