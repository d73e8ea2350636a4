/*
 * Loops of Add, Sub, Mul and Div for binary.c at one instruction level. The result may lie on an operand.
 */
#include <stdint.h>

#include "cpu/core/cpu_level.h"

/* same: elements in pairs; right: y is one number, left: x is. The last two: y, or x, holds one row of n elements for
 * all of m rows. */
#define DEFINE_FNS(name, OP)                                                                                      \
    static HN_TARGET void HN_V(name##_same)(const float *x, const float *y, float *z, int64_t m, int64_t n)       \
    {                                                                                                             \
        HN_IVDEP                                                                                                  \
        for (int64_t i = 0; i < m * n; i++)                                                                       \
            z[i] = x[i] OP y[i];                                                                                  \
    }                                                                                                             \
    static HN_TARGET void HN_V(name##_right)(const float *x, const float *y, float *z, int64_t m, int64_t n)      \
    {                                                                                                             \
        const float b = *y;                                                                                       \
        HN_IVDEP                                                                                                  \
        for (int64_t i = 0; i < m * n; i++)                                                                       \
            z[i] = x[i] OP b;                                                                                     \
    }                                                                                                             \
    static HN_TARGET void HN_V(name##_left)(const float *x, const float *y, float *z, int64_t m, int64_t n)       \
    {                                                                                                             \
        const float a = *x;                                                                                       \
        HN_IVDEP                                                                                                  \
        for (int64_t i = 0; i < m * n; i++)                                                                       \
            z[i] = a OP y[i];                                                                                     \
    }                                                                                                             \
    static HN_TARGET void HN_V(name##_rows_right)(const float *x, const float *y, float *z, int64_t m, int64_t n) \
    {                                                                                                             \
        for (; m > 0; m--, x += n, z += n) {                                                                      \
            HN_IVDEP                                                                                              \
            for (int64_t i = 0; i < n; i++)                                                                       \
                z[i] = x[i] OP y[i];                                                                              \
        }                                                                                                         \
    }                                                                                                             \
    static HN_TARGET void HN_V(name##_rows_left)(const float *x, const float *y, float *z, int64_t m, int64_t n)  \
    {                                                                                                             \
        for (; m > 0; m--, y += n, z += n) {                                                                      \
            HN_IVDEP                                                                                              \
            for (int64_t i = 0; i < n; i++)                                                                       \
                z[i] = x[i] OP y[i];                                                                              \
        }                                                                                                         \
    }

DEFINE_FNS(add, +)
DEFINE_FNS(sub, -)
DEFINE_FNS(mul, *)
DEFINE_FNS(div, /)
#undef DEFINE_FNS
