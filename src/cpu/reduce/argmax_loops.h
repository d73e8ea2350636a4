/*
 * The extreme of each column and its place, for argmax.c at one instruction level.
 */
#include <math.h>
#include <stdint.h>

#include "cpu/core/cpu_level.h"

/* Row after row; what is extreme already is `best[i]` at row at[i]. Of equal numbers the first stays, with LAST the
 * last one; TAKEN is what is more extreme and neither is a NaN, which nothing but a NaN follows. */
#define COLUMNS(name, LAST, TAKEN)                                                                                 \
    static HN_TARGET void HN_V(name)(const float *restrict x, int64_t rows, int64_t pitch, int64_t n,              \
                                     float *restrict best, int32_t *restrict at)                                   \
    {                                                                                                              \
        for (int64_t k = 1; k < rows; k++) {                                                                       \
            const float *restrict row = x + k * pitch;                                                             \
            for (int64_t i = 0; i < n; i++) {                                                                      \
                const float v = row[i], b = best[i];                                                               \
                const int is_nan = v != v, was_nan = b != b;                                                       \
                const int take = (LAST) ? is_nan | ((TAKEN) & (was_nan ^ 1)) : (is_nan | (TAKEN)) & (was_nan ^ 1); \
                best[i] = take ? v : b;                                                                            \
                at[i] = take ? (int32_t)k : at[i];                                                                 \
            }                                                                                                      \
        }                                                                                                          \
    }
COLUMNS(first_most, 0, v > b)
COLUMNS(last_most, 1, v >= b)
COLUMNS(first_least, 0, v < b)
COLUMNS(last_least, 1, v <= b)
#undef COLUMNS
