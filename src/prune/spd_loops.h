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

/* The same for four rows of y and t at a time, which are `ldy` and `ldt` apart. */
HN_TARGET static void HN_V(subtract4)(double *restrict y, int64_t ldy, const double *restrict x, int64_t ld,
                                      const double *restrict t, int64_t ldt, int64_t m, int64_t n)
{
    double *restrict y0 = y, *restrict y1 = y + ldy, *restrict y2 = y + 2 * ldy, *restrict y3 = y + 3 * ldy;
    int64_t i = 0;
    for (; i + 2 <= m; i += 2) {
        const double *a = x + i * ld, *b = a + ld;
        const double p0 = t[i], q0 = t[i + 1], p1 = t[ldt + i], q1 = t[ldt + i + 1];
        const double p2 = t[2 * ldt + i], q2 = t[2 * ldt + i + 1], p3 = t[3 * ldt + i], q3 = t[3 * ldt + i + 1];
        HN_IVDEP
        for (int64_t j = 0; j < n; j++) {
            y0[j] -= p0 * a[j] + q0 * b[j];
            y1[j] -= p1 * a[j] + q1 * b[j];
            y2[j] -= p2 * a[j] + q2 * b[j];
            y3[j] -= p3 * a[j] + q3 * b[j];
        }
    }
    for (; i < m; i++) {
        const double *a = x + i * ld;
        HN_IVDEP
        for (int64_t j = 0; j < n; j++) {
            y0[j] -= t[i] * a[j];
            y1[j] -= t[ldt + i] * a[j];
            y2[j] -= t[2 * ldt + i] * a[j];
            y3[j] -= t[3 * ldt + i] * a[j];
        }
    }
}
