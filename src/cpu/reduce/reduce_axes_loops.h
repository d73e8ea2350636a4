/*
 * Reductions, for reduce_axes.c at one instruction level: x is [n, inner] of rows `pitch` apart, y [inner] holds the
 * result so far; or, of pairs, x is [n, 2], y [n].
 */
#include <math.h>
#include <stdint.h>

#include "cpu/core/vecmath.h"

#define LANES 32 /* sums that do not wait for each other */

#define REDUCE(name, STEP, START)                                                                          \
    static HN_TARGET void HN_V(name)(float *restrict y, const float *restrict x, int64_t n, int64_t inner, \
                                     int64_t pitch)                                                        \
    {                                                                                                      \
        if (inner == 1 && pitch == 1) {                                                                    \
            float part[LANES], s = *y;                                                                     \
            int64_t i = 0;                                                                                 \
            for (int j = 0; j < LANES; j++)                                                                \
                part[j] = START;                                                                           \
            for (; i + LANES <= n; i += LANES)                                                             \
                for (int j = 0; j < LANES; j++)                                                            \
                    part[j] = STEP(part[j], x[i + j]);                                                     \
            for (; i + LANES / 4 <= n; i += LANES / 4)                                                     \
                for (int j = 0; j < LANES / 4; j++)                                                        \
                    part[j] = STEP(part[j], x[i + j]);                                                     \
            for (; i < n; i++)                                                                             \
                s = STEP(s, x[i]);                                                                         \
            for (int width = LANES / 2; width > 0; width /= 2)                                             \
                for (int j = 0; j < width; j++)                                                            \
                    part[j] = HN_V(name##_join)(part[j], part[j + width]);                                 \
            *y = HN_V(name##_join)(s, part[0]);                                                            \
            return;                                                                                        \
        }                                                                                                  \
        for (; n % 4 != 0; n--, x += pitch)                                                                \
            for (int64_t i = 0; i < inner; i++)                                                            \
                y[i] = STEP(y[i], x[i]);                                                                   \
        for (; n > 0; n -= 4, x += 4 * pitch) {                                                            \
            const float *restrict x1 = x + pitch, *restrict x2 = x1 + pitch, *restrict x3 = x2 + pitch;    \
            for (int64_t i = 0; i < inner; i++) {                                                          \
                float v = y[i];                                                                            \
                v = STEP(v, x[i]);                                                                         \
                v = STEP(v, x1[i]);                                                                        \
                v = STEP(v, x2[i]);                                                                        \
                y[i] = STEP(v, x3[i]);                                                                     \
            }                                                                                              \
        }                                                                                                  \
    }                                                                                                      \
    static HN_TARGET void HN_V(name##_pairs)(float *restrict y, const float *restrict x, int64_t n)        \
    {                                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                                    \
            y[i] = STEP(STEP(y[i], x[2 * i]), x[2 * i + 1]);                                               \
    }
#define JOIN(name, EXPR)                                              \
    static inline HN_TARGET float HN_V(name##_join)(float s, float v) \
    {                                                                 \
        return EXPR;                                                  \
    }

/* NaN stays */
#define LARGER(s, v) ((v) > (s) || (v) != (v) ? (v) : (s))
#define SMALLER(s, v) ((v) < (s) || (v) != (v) ? (v) : (s))
#define TIMES(s, v) ((s) * (v))
#define PLUS(s, v) ((s) + (v))
#define PLUS_SIZE(s, v) ((s) + fabsf(v))
#define PLUS_SQUARE(s, v) ((s) + (v) * (v))
JOIN(do_max, LARGER(s, v))
REDUCE(do_max, LARGER, -INFINITY)
JOIN(do_min, SMALLER(s, v))
REDUCE(do_min, SMALLER, INFINITY)
JOIN(do_sum, s + v)
REDUCE(do_sum, PLUS, 0)
JOIN(do_prod, s *v)
REDUCE(do_prod, TIMES, 1)
JOIN(do_sizes, s + v)
REDUCE(do_sizes, PLUS_SIZE, 0)
JOIN(do_squares, s + v)
REDUCE(do_squares, PLUS_SQUARE, 0)

/* y += e^(x - shift) */
static HN_TARGET void HN_V(do_powers)(float *restrict y, const float *restrict shift, const float *restrict x,
                                      int64_t n, int64_t inner, int64_t pitch)
{
    if (inner == 1 && pitch == 1) {
        float sum = 0;
        const float most = *shift;
        HN_SUM1(sum)
        for (int64_t i = 0; i < n; i++)
            sum += HN_V(exp)(x[i] - most);
        *y += sum;
        return;
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < inner; i++)
            y[i] += HN_V(exp)(x[k * pitch + i] - shift[i]);
}

#undef REDUCE
#undef JOIN
#undef LARGER
#undef SMALLER
#undef TIMES
#undef PLUS
#undef PLUS_SIZE
#undef PLUS_SQUARE
#undef LANES
