/*
 * Rows of QuantizeLinear and DequantizeLinear, for quantize.c at one instruction level: n elements with one scale and
 * zero point, or with one each.
 */
#include <glib.h>
#include <stdint.h>

#include "cpu/core/cpu_level.h"

/* Halves to even: what is added has no place for a fraction. */
#define ROUNDED(v) ((int)(((v) + 12582912.0f) - 12582912.0f))

/* With one scale pieces are multiplied by its reciprocal. That is off by less than 2^-14 where results lie within 255
 * steps: only a quotient that is nearly between two whole numbers can come out as another one, and then the piece is
 * divided. */
#define PIECE 256
#define QUANTIZE(T, lowest, highest)                                                                                 \
    static HN_TARGET void HN_V(quantize_##T)(void *to, const float *x, const float *s, const void *zeros, int64_t n, \
                                             gboolean each)                                                          \
    {                                                                                                                \
        T *y = to;                                                                                                   \
        const T *z = zeros;                                                                                          \
        if (each) {                                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                                        \
                const int zero = z != NULL ? z[i] : 0;                                                               \
                const float lo = (float)((lowest)-zero), hi = (float)((highest)-zero);                               \
                float v = x[i] / s[i];                                                                               \
                v = v > lo ? v : lo;                                                                                 \
                v = v < hi ? v : hi;                                                                                 \
                y[i] = (T)(ROUNDED(v) + zero);                                                                       \
            }                                                                                                        \
            return;                                                                                                  \
        }                                                                                                            \
        const int zero = z != NULL ? *z : 0;                                                                         \
        const float lo = (float)((lowest)-zero), hi = (float)((highest)-zero), scale = *s, by = 1 / scale;           \
        for (int64_t first = 0, m; first < n; first += m) {                                                          \
            m = n - first < PIECE ? n - first : PIECE;                                                               \
            int near = 0;                                                                                            \
            for (int64_t i = first; i < first + m; i++) {                                                            \
                float v = x[i] * by;                                                                                 \
                v = v > lo ? v : lo;                                                                                 \
                v = v < hi ? v : hi;                                                                                 \
                const float whole = (v + 12582912.0f) - 12582912.0f, off = __builtin_fabsf(v - whole);               \
                near |= off >= 0.4995f;                                                                              \
                y[i] = (T)((int)whole + zero);                                                                       \
            }                                                                                                        \
            if (near == 0 && by < 1e30f)                                                                             \
                continue;                                                                                            \
            for (int64_t i = first; i < first + m; i++) {                                                            \
                float v = x[i] / scale;                                                                              \
                v = v > lo ? v : lo;                                                                                 \
                v = v < hi ? v : hi;                                                                                 \
                y[i] = (T)(ROUNDED(v) + zero);                                                                       \
            }                                                                                                        \
        }                                                                                                            \
    }
QUANTIZE(uint8_t, 0, UINT8_MAX)
QUANTIZE(int8_t, INT8_MIN, INT8_MAX)

/* W holds the difference of two T exactly. */
#define DEQUANTIZE(T, W)                                                                                      \
    static HN_TARGET void HN_V(dequantize_##T)(float *y, const void *from, const float *s, const void *zeros, \
                                               int64_t n, gboolean each)                                      \
    {                                                                                                         \
        const T *x = from, *z = zeros;                                                                        \
        if (each) {                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                   \
                y[i] = (float)((W)x[i] - (W)(z != NULL ? z[i] : 0)) * s[i];                                   \
            return;                                                                                           \
        }                                                                                                     \
        const W zero = (W)(z != NULL ? *z : 0);                                                               \
        const float scale = *s;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                       \
            y[i] = (float)((W)x[i] - zero) * scale;                                                           \
    }
DEQUANTIZE(uint8_t, int32_t)
DEQUANTIZE(int8_t, int32_t)
DEQUANTIZE(int32_t, double)

/* Least and greatest of x and 0 */
static HN_TARGET void HN_V(find_range)(const float *x, int64_t n, float *least, float *most)
{
    float lo[16] = { 0 }, hi[16] = { 0 };
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) {
            lo[j] = x[i + j] < lo[j] ? x[i + j] : lo[j];
            hi[j] = x[i + j] > hi[j] ? x[i + j] : hi[j];
        }
    for (; i < n; i++) {
        lo[0] = x[i] < lo[0] ? x[i] : lo[0];
        hi[0] = x[i] > hi[0] ? x[i] : hi[0];
    }
    for (int j = 1; j < 16; j++) {
        lo[0] = lo[j] < lo[0] ? lo[j] : lo[0];
        hi[0] = hi[j] > hi[0] ? hi[j] : hi[0];
    }
    *least = lo[0];
    *most = hi[0];
}

#undef ROUNDED
#undef PIECE
#undef QUANTIZE
#undef DEQUANTIZE
