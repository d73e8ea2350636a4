/*
 * Rows of a program that no other kernel has, for program.c at one instruction level: truth values are 0 and 1.
 */
#include <stdint.h>

#include "cpu/core/cpu_level.h"

#define ROW(name, EXPR)                                                                                        \
    static HN_TARGET void HN_V(name)(void *to, const void *left, const void *right, int64_t n, int sx, int sy) \
    {                                                                                                          \
        const float *x = left, *y = right;                                                                     \
        float *z = to;                                                                                         \
        if (sx != 0 && sy == 0) {                                                                              \
            const float q = y[0];                                                                              \
            HN_IVDEP for (int64_t i = 0; i < n; i++)                                                           \
            {                                                                                                  \
                const float p = x[i];                                                                          \
                z[i] = EXPR;                                                                                   \
            }                                                                                                  \
            return;                                                                                            \
        }                                                                                                      \
        if (sx == 0) {                                                                                         \
            const float p = x[0];                                                                              \
            HN_IVDEP for (int64_t i = 0; i < n; i++)                                                           \
            {                                                                                                  \
                const float q = y[sy != 0 ? i : 0];                                                            \
                z[i] = EXPR;                                                                                   \
            }                                                                                                  \
            return;                                                                                            \
        }                                                                                                      \
        HN_IVDEP for (int64_t i = 0; i < n; i++)                                                               \
        {                                                                                                      \
            const float p = x[i], q = y[i];                                                                    \
            z[i] = EXPR;                                                                                       \
        }                                                                                                      \
    }
ROW(equal, p == q ? 1.0f : 0.0f)
ROW(greater, p > q ? 1.0f : 0.0f)
ROW(greaterorequal, p >= q ? 1.0f : 0.0f)
ROW(less, p < q ? 1.0f : 0.0f)
ROW(lessorequal, p <= q ? 1.0f : 0.0f)
ROW(both, p *q)
ROW(either, p > q ? p : q)
ROW(one_of, p == q ? 0.0f : 1.0f)
#undef ROW

static HN_TARGET void HN_V(negate)(const float *x, float *y, int64_t n, float a, float b)
{
    (void)a;
    (void)b;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = 1.0f - x[i];
}

static HN_TARGET void HN_V(truth)(const float *x, float *y, int64_t n, float a, float b)
{
    (void)a;
    (void)b;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] != 0 ? 1.0f : 0.0f;
}

/* z = c ? x : y */
static HN_TARGET void HN_V(choose)(float *z, const float *c, const float *x, const float *y, int64_t n, int sc, int sx,
                                   int sy)
{
    if (sc == 0) {
        const float *from = c[0] != 0 ? x : y;
        const int step = c[0] != 0 ? sx : sy;
        HN_IVDEP
        for (int64_t i = 0; i < n; i++)
            z[i] = from[step != 0 ? i : 0];
    } else if (sx != 0 && sy != 0) {
        HN_IVDEP
        for (int64_t i = 0; i < n; i++) {
            const float yes = x[i], no = y[i];
            z[i] = c[i] != 0 ? yes : no;
        }
    } else if (sx != 0) {
        const float no = y[0];
        HN_IVDEP
        for (int64_t i = 0; i < n; i++) {
            const float yes = x[i];
            z[i] = c[i] != 0 ? yes : no;
        }
    } else {
        const float yes = x[0];
        HN_IVDEP
        for (int64_t i = 0; i < n; i++) {
            const float no = y[sy != 0 ? i : 0];
            z[i] = c[i] != 0 ? yes : no;
        }
    }
}
