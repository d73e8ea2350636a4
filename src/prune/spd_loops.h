/*
 * What spd.c does with each element, at one level of instructions.
 */
#include <stdint.h>

#include "base/level.h"

#define HN_TILE_plain 8 /* columns whose sums stay in registers, for four rows */
#define HN_TILE_avx2 12
#define HN_TILE_avx512 24
#define TILE HN_JOIN(HN_TILE, HN_LEVEL)

/* The sum of n products. */
HN_TARGET static double HN_V(dot)(const double *restrict a, const double *restrict b, int64_t n)
{
    double sum = 0;
    HN_SUM1(sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* y[n] -= t[m] x[m, n]; rows of x are `ld` apart. */
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

/* y[4][TILE] -= t[4][m] x[m, TILE] */
HN_TARGET static void HN_V(subtract_tile)(double *const *y, const double *restrict x, const double *const *t, int64_t m)
{
    double a[TILE], b[TILE], c[TILE], d[TILE];
    const double *restrict p = t[0], *restrict q = t[1], *restrict r = t[2], *restrict s = t[3];
    for (int j = 0; j < TILE; j++) {
        a[j] = y[0][j];
        b[j] = y[1][j];
        c[j] = y[2][j];
        d[j] = y[3][j];
    }
    for (int64_t i = 0; i < m; i++) {
        const double *restrict row = x + i * TILE;
        for (int j = 0; j < TILE; j++) {
            a[j] = HN_FMA64(-p[i], row[j], a[j]);
            b[j] = HN_FMA64(-q[i], row[j], b[j]);
            c[j] = HN_FMA64(-r[i], row[j], c[j]);
            d[j] = HN_FMA64(-s[i], row[j], d[j]);
        }
    }
    for (int j = 0; j < TILE; j++) {
        y[0][j] = a[j];
        y[1][j] = b[j];
        y[2][j] = c[j];
        y[3][j] = d[j];
    }
}
#undef TILE
