/*
 * What gram.c does with each element, at one level of instructions.
 */
#include <stdint.h>

#include "base/level.h"

#define HN_GRAM_TILE_plain 4 /* columns whose sums stay in registers, for eight rows */
#define HN_GRAM_TILE_avx2 8
#define HN_GRAM_TILE_avx512 16
#define TILE HN_JOIN(HN_GRAM_TILE, HN_LEVEL)

/* y[i, j] += sum over m of x[m * step + i * next] * z[m, j], for 8 rows i and TILE columns j. */
HN_TARGET static void HN_V(tile)(float *restrict y, int64_t ldy, const float *restrict x, int64_t step, int64_t next,
                                 const float *restrict z, int64_t ldz, int64_t m)
{
    float a[TILE], b[TILE], c[TILE], d[TILE], e[TILE], f[TILE], g[TILE], h[TILE];
    for (int j = 0; j < TILE; j++) {
        a[j] = y[j];
        b[j] = y[ldy + j];
        c[j] = y[2 * ldy + j];
        d[j] = y[3 * ldy + j];
        e[j] = y[4 * ldy + j];
        f[j] = y[5 * ldy + j];
        g[j] = y[6 * ldy + j];
        h[j] = y[7 * ldy + j];
    }
    for (int64_t q = 0; q < m; q++) {
        const float *restrict row = z + q * ldz, *restrict at = x + q * step;
        for (int j = 0; j < TILE; j++) {
            a[j] = HN_FMA(at[0], row[j], a[j]);
            b[j] = HN_FMA(at[next], row[j], b[j]);
            c[j] = HN_FMA(at[2 * next], row[j], c[j]);
            d[j] = HN_FMA(at[3 * next], row[j], d[j]);
            e[j] = HN_FMA(at[4 * next], row[j], e[j]);
            f[j] = HN_FMA(at[5 * next], row[j], f[j]);
            g[j] = HN_FMA(at[6 * next], row[j], g[j]);
            h[j] = HN_FMA(at[7 * next], row[j], h[j]);
        }
    }
    for (int j = 0; j < TILE; j++) {
        y[j] = a[j];
        y[ldy + j] = b[j];
        y[2 * ldy + j] = c[j];
        y[3 * ldy + j] = d[j];
        y[4 * ldy + j] = e[j];
        y[5 * ldy + j] = f[j];
        y[6 * ldy + j] = g[j];
        y[7 * ldy + j] = h[j];
    }
}
#undef TILE
