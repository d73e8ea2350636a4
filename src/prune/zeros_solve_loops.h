/*
 * What zeros_solve.c does with tiles, at one level of instructions.
 */
#include <stdint.h>

#include "base/level.h"

#ifndef TILE
#define TILE 6  /* rows, */
#define WIDE 16 /* outputs: of a tile, whose sums stay in registers */
#endif

/* y[6, 16] = h[6, k] x[k, 16]; rows of h are k apart. */
HN_TARGET static void HN_V(tile)(float *restrict y, const float *restrict h, const float *restrict x, int64_t k)
{
    float a[WIDE] = { 0 }, b[WIDE] = { 0 }, c[WIDE] = { 0 }, d[WIDE] = { 0 }, e[WIDE] = { 0 }, f[WIDE] = { 0 };
    for (int64_t j = 0; j < k; j++) {
        const float *xj = x + j * WIDE, *hj = h + j;
        const float p = hj[0], q = hj[k], r = hj[2 * k], s = hj[3 * k], t = hj[4 * k], u = hj[5 * k];
        HN_IVDEP
        for (int i = 0; i < WIDE; i++) {
            a[i] = HN_FMA(p, xj[i], a[i]);
            b[i] = HN_FMA(q, xj[i], b[i]);
            c[i] = HN_FMA(r, xj[i], c[i]);
            d[i] = HN_FMA(s, xj[i], d[i]);
            e[i] = HN_FMA(t, xj[i], e[i]);
            f[i] = HN_FMA(u, xj[i], f[i]);
        }
    }
    for (int i = 0; i < WIDE; i++) {
        y[i] = a[i];
        y[WIDE + i] = b[i];
        y[2 * WIDE + i] = c[i];
        y[3 * WIDE + i] = d[i];
        y[4 * WIDE + i] = e[i];
        y[5 * WIDE + i] = f[i];
    }
}
