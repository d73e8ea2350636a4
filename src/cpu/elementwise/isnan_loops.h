/*
 * Bits of numbers compared, for isnan.c at one instruction level.
 */
#include <stdint.h>

#include "cpu/core/cpu_level.h"

#define LOOPS(T, U, LEAST)                                                                                           \
    static HN_TARGET void HN_V(nan_##T)(const void *x, uint8_t *restrict y, int64_t n)                               \
    {                                                                                                                \
        const U *v = x;                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                              \
            y[i] = (U)(v[i] << 1) > LEAST;                                                                           \
    }                                                                                                                \
    static HN_TARGET void HN_V(inf_##T)(const void *x, uint8_t *restrict y, int64_t n, uint64_t mask, uint64_t bits) \
    {                                                                                                                \
        const U *v = x;                                                                                              \
        const U m = (U)mask, b = (U)bits;                                                                            \
        for (int64_t i = 0; i < n; i++)                                                                              \
            y[i] = (v[i] & m) == b;                                                                                  \
    }
LOOPS(f32, uint32_t, 0xff000000u) /* infinity without its sign, shifted */
LOOPS(f64, uint64_t, 0xffe0000000000000u)
#undef LOOPS
