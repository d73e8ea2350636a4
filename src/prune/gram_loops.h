/*
 * What gram.c does with each element, at one level of instructions.
 */
#include <stdint.h>

#include "base/level.h"

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

/* y[r, j] = sum over i of x[r, i] * w[i, j], for 8 rows r and j in [from, to). */
HN_TARGET static void HN_V(apply)(float *restrict y, int64_t ldy, const float *restrict x, int64_t ldx,
                                  const float *restrict w, int64_t ldw, int64_t k, int64_t from, int64_t to)
{
    for (int64_t r = 0; r < 8; r++)
        for (int64_t j = from; j < to; j++)
            y[r * ldy + j] = 0;
    for (int64_t i = 0; i < k; i++) {
        const float *restrict row = w + i * ldw;
        for (int64_t r = 0; r < 8; r++) {
            const float a = x[r * ldx + i];
            float *restrict to_row = y + r * ldy;
            HN_IVDEP
            for (int64_t j = from; j < to; j++)
                to_row[j] = HN_FMA(a, row[j], to_row[j]);
        }
    }
}
