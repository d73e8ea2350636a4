/*
 * What gram.c does with each element, at one level of instructions.
 */
#include <stdint.h>

#include "base/level.h"

#define HN_COLUMNS_plain 4 /* whose sums stay in registers, for eight rows */
#define HN_COLUMNS_avx2 8
#define HN_COLUMNS_avx512 16
#define TILE HN_JOIN(HN_COLUMNS, HN_LEVEL)

/* h[i, j] += sums over 8 rows of x[i] * z[j], for j below n, or, of a triangle, up to i. */
HN_TARGET static void HN_V(products)(float *restrict h, int64_t ld, const float *restrict x, int64_t ldx,
                                     const float *restrict z, int64_t ldz, int64_t from, int64_t to, int64_t n)
{
    for (int64_t i = from; i < to; i++) {
        float *restrict row = h + i * ld;
        const int64_t most = n > 0 ? n : i + 1;
        float a[8];
        for (int r = 0; r < 8; r++)
            a[r] = x[r * ldx + i];
        HN_IVDEP
        for (int64_t j = 0; j < most; j++) {
            float s = row[j];
            s = HN_FMA(a[0], z[j], s);
            s = HN_FMA(a[1], z[ldz + j], s);
            s = HN_FMA(a[2], z[2 * ldz + j], s);
            s = HN_FMA(a[3], z[3 * ldz + j], s);
            s = HN_FMA(a[4], z[4 * ldz + j], s);
            s = HN_FMA(a[5], z[5 * ldz + j], s);
            s = HN_FMA(a[6], z[6 * ldz + j], s);
            row[j] = HN_FMA(a[7], z[7 * ldz + j], s);
        }
    }
}

/* y[r, j] = sum over i of x[r, i] * w[i, j], for 8 rows r and TILE columns j. */
HN_TARGET static void HN_V(apply_tile)(float *restrict y, int64_t ldy, const float *restrict x, int64_t ldx,
                                       const float *restrict w, int64_t ldw, int64_t k)
{
    float a[TILE] = { 0 }, b[TILE] = { 0 }, c[TILE] = { 0 }, d[TILE] = { 0 }, e[TILE] = { 0 }, f[TILE] = { 0 },
          g[TILE] = { 0 }, h[TILE] = { 0 };
    for (int64_t i = 0; i < k; i++) {
        const float *restrict row = w + i * ldw, *restrict at = x + i;
        for (int j = 0; j < TILE; j++) {
            a[j] = HN_FMA(at[0], row[j], a[j]);
            b[j] = HN_FMA(at[ldx], row[j], b[j]);
            c[j] = HN_FMA(at[2 * ldx], row[j], c[j]);
            d[j] = HN_FMA(at[3 * ldx], row[j], d[j]);
            e[j] = HN_FMA(at[4 * ldx], row[j], e[j]);
            f[j] = HN_FMA(at[5 * ldx], row[j], f[j]);
            g[j] = HN_FMA(at[6 * ldx], row[j], g[j]);
            h[j] = HN_FMA(at[7 * ldx], row[j], h[j]);
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

/* The same for j in [from, to). */
HN_TARGET static void HN_V(apply)(float *restrict y, int64_t ldy, const float *restrict x, int64_t ldx,
                                  const float *restrict w, int64_t ldw, int64_t k, int64_t from, int64_t to)
{
    int64_t j = from;
    for (; j + TILE <= to; j += TILE)
        HN_V(apply_tile)(y + j, ldy, x, ldx, w + j, ldw, k);
    for (int64_t r = 0; r < 8; r++)
        for (int64_t c = j; c < to; c++) {
            float sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum = HN_FMA(x[r * ldx + i], w[i * ldw + c], sum);
            y[r * ldy + c] = sum;
        }
}
#undef TILE
