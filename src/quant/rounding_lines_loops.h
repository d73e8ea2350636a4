/*
 * What rounding_lines.c does with each element, at one level of instructions.
 */
#include <math.h>
#include <stdint.h>

#include "base/level.h"
#include "quant/rounding_lines.h"

/* g[l] += the sum of d[l][r] * h[r], for four lines g of k numbers and four rows of h */
HN_TARGET static void HN_V(add_rows)(float *const *g, const float *restrict h, const float *const *d, int64_t k)
{
    float *restrict a = g[0], *restrict b = g[1], *restrict c = g[2], *restrict e = g[3];
    const float *restrict p = h, *restrict q = h + k, *restrict r = h + 2 * k, *restrict s = h + 3 * k;
    const float a0 = d[0][0], a1 = d[0][1], a2 = d[0][2], a3 = d[0][3], b0 = d[1][0], b1 = d[1][1], b2 = d[1][2],
                b3 = d[1][3], c0 = d[2][0], c1 = d[2][1], c2 = d[2][2], c3 = d[2][3], e0 = d[3][0], e1 = d[3][1],
                e2 = d[3][2], e3 = d[3][3];
    for (int64_t i = 0; i < k; i++) {
        const float w = p[i], x = q[i], y = r[i], z = s[i];
        a[i] = HN_FMA(a3, z, HN_FMA(a2, y, HN_FMA(a1, x, HN_FMA(a0, w, a[i]))));
        b[i] = HN_FMA(b3, z, HN_FMA(b2, y, HN_FMA(b1, x, HN_FMA(b0, w, b[i]))));
        c[i] = HN_FMA(c3, z, HN_FMA(c2, y, HN_FMA(c1, x, HN_FMA(c0, w, c[i]))));
        e[i] = HN_FMA(e3, z, HN_FMA(e2, y, HN_FMA(e1, x, HN_FMA(e0, w, e[i]))));
    }
}

/* g[l] += d[l] * row, for four lines */
HN_TARGET static void HN_V(add_row)(float *const *g, const float *restrict row, const float *d, int64_t k)
{
    float *restrict a = g[0], *restrict b = g[1], *restrict c = g[2], *restrict e = g[3];
    const float p = d[0], q = d[1], r = d[2], s = d[3];
    for (int64_t i = 0; i < k; i++) {
        const float x = row[i];
        a[i] = HN_FMA(p, x, a[i]);
        b[i] = HN_FMA(q, x, b[i]);
        c[i] = HN_FMA(r, x, c[i]);
        e[i] = HN_FMA(s, x, e[i]);
    }
}

/* The first i from `from` on whose best integer, what neighbours leave room for aside, is another one; k: none. */
HN_TARGET static int64_t HN_V(first_change)(const float *restrict scale, const float *restrict g,
                                            const float *restrict diagonal, const int *restrict q,
                                            const int *restrict zero, const float bounds[2], int64_t from, int64_t k)
{
    const float least = bounds[0], most = bounds[1];
    for (int64_t i = from; i < k; i += HN_ROUND_STRETCH) {
        const int64_t end = k < i + HN_ROUND_STRETCH ? k : i + HN_ROUND_STRETCH;
        int others = 0;
        for (int64_t j = i; j < end; j++) {
            float x = rintf((scale[j] * (float)(q[j] - zero[j]) - g[j] / diagonal[j]) / scale[j]) + (float)zero[j];
            x = x > least ? x : least;
            others |= (int)(x < most ? x : most) ^ q[j];
        }
        if (others == 0)
            continue;
        for (int64_t j = i; j < end; j++) {
            float x = rintf((scale[j] * (float)(q[j] - zero[j]) - g[j] / diagonal[j]) / scale[j]) + (float)zero[j];
            x = x > least ? x : least;
            if ((int)(x < most ? x : most) != q[j])
                return j;
        }
    }
    return k;
}

/* g += d * row */
HN_TARGET static void HN_V(add)(float *restrict g, const float *restrict row, float d, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        g[i] = HN_FMA(d, row[i], g[i]);
}
