/*
 * Sums of rows of few elements at one instruction level, for reduce.c: n is a constant of each loop, so that compilers
 * make vectors of rows.
 */
#include <stdint.h>

#include "cpu/core/cpu_level.h"

static inline __attribute__((always_inline)) HN_TARGET void HN_V(few_of)(float *restrict y, const float *restrict x,
                                                                         int64_t rows, const int64_t n)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = x[i * n];
        for (int64_t k = 1; k < n; k++)
            sum += x[i * n + k];
        y[i] = sum;
    }
}

/* x is [rows, n], 2 <= n <= FEW, y [rows]. */
static HN_TARGET void HN_V(sum_few)(float *restrict y, const float *restrict x, int64_t rows, int64_t n)
{
    switch (n) {
    case 2:
        HN_V(few_of)(y, x, rows, 2);
        break;
    case 3:
        HN_V(few_of)(y, x, rows, 3);
        break;
    default:
        HN_V(few_of)(y, x, rows, 4);
        break;
    }
}
