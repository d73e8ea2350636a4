/*
 * What rounding.c does with each element, at one level of instructions.
 */
#include <stdint.h>

#include "base/level.h"

/* h[i, j] += sums over 8 rows x of x[i] * x[j], for i in [from, to) and j <= i; h is [k, k] */
HN_TARGET static void HN_V(products)(float *restrict h, const float *restrict x, int64_t k, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) {
        float *restrict row = h + i * k;
        const float a = x[i], b = x[k + i], c = x[2 * k + i], d = x[3 * k + i], e = x[4 * k + i], f = x[5 * k + i],
                    g = x[6 * k + i], m = x[7 * k + i];
        for (int64_t j = 0; j <= i; j++) {
            float s = row[j];
            s = HN_FMA(a, x[j], s);
            s = HN_FMA(b, x[k + j], s);
            s = HN_FMA(c, x[2 * k + j], s);
            s = HN_FMA(d, x[3 * k + j], s);
            s = HN_FMA(e, x[4 * k + j], s);
            s = HN_FMA(f, x[5 * k + j], s);
            s = HN_FMA(g, x[6 * k + j], s);
            row[j] = HN_FMA(m, x[7 * k + j], s);
        }
    }
}
