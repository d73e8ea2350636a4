/*
 * What spd.c does with each element, at one level of instructions.
 */
#include <stdint.h>

#include "base/level.h"

/* The sum of n products. */
HN_TARGET static double HN_V(dot)(const double *restrict a, const double *restrict b, int64_t n)
{
    double sum = 0;
    HN_SUM1(sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* y -= sum over m rows x of t[i] * x[i]; rows are `ld` apart. */
HN_TARGET static void HN_V(subtract)(double *restrict y, const double *restrict x, int64_t ld, const double *restrict t,
                                     int64_t m, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const double *a = x + i * ld, *b = a + ld, *c = b + ld, *d = c + ld;
        const double p = t[i], q = t[i + 1], r = t[i + 2], s = t[i + 3];
        HN_IVDEP
        for (int64_t j = 0; j < n; j++)
            y[j] -= (p * a[j] + q * b[j]) + (r * c[j] + s * d[j]);
    }
    for (; i < m; i++) {
        const double *a = x + i * ld;
        const double p = t[i];
        HN_IVDEP
        for (int64_t j = 0; j < n; j++)
            y[j] -= p * a[j];
    }
}
