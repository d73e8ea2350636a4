/*
 * Scores of attention at one instruction level, for fusedattention.c.
 */
#include <math.h>
#include <stdint.h>

#include "cpu/core/vec.h"

/* s = s * scale where keep[i * step] is not `inverted`, fill elsewhere; step 0 or 1. */
static HN_TARGET void HN_V(keep_row)(float *restrict s, int64_t n, float scale, const uint8_t *restrict keep,
                                     int64_t step, int inverted, float fill)
{
    if (step == 0)
        for (int64_t i = 0; i < n; i++)
            s[i] = (*keep != 0) != inverted ? s[i] * scale : fill;
    else
        for (int64_t i = 0; i < n; i++)
            s[i] = (keep[i] != 0) != inverted ? s[i] * scale : fill;
}

/* s = s * scale + m[i * step], step 0 or 1, m NULL: 0; returns the largest. Behind s is minus infinity up to a whole
 * vector, which one of m is not to change: scale > 0. */
static HN_TARGET float HN_V(score_row)(float *restrict s, int64_t n, float scale, const float *restrict m, int64_t step)
{
    const HN_VEC by = HN_VSET(scale), one = HN_VSET(m != NULL ? m[0] : 0);
    HN_VEC most = HN_VSET(-INFINITY), other = most;
    const gboolean each = m != NULL && step != 0;
    int64_t i = 0;
    for (; i + 2 * HN_LANES <= n; i += 2 * HN_LANES) {
        const HN_VEC a = HN_VFMA(HN_VLOAD(s + i), by, each ? HN_VLOAD(m + i) : one);
        const HN_VEC b = HN_VFMA(HN_VLOAD(s + i + HN_LANES), by, each ? HN_VLOAD(m + i + HN_LANES) : one);
        HN_VSTORE(s + i, a);
        HN_VSTORE(s + i + HN_LANES, b);
        most = HN_VMAX(a, most); /* of NaN and a number, the number */
        other = HN_VMAX(b, other);
    }
    for (; i + HN_LANES <= n; i += HN_LANES) {
        const HN_VEC a = HN_VFMA(HN_VLOAD(s + i), by, each ? HN_VLOAD(m + i) : one);
        HN_VSTORE(s + i, a);
        most = HN_VMAX(a, most);
    }
    if (i < n) { /* minus infinity lies behind, and stays */
        const int tail = (int)(n - i);
        const HN_VEC a = HN_VFMA(HN_VLOAD(s + i), by, each ? HN_VLOAD_N(m + i, tail) : one);
        HN_VSTORE(s + i, a);
        most = HN_VMAX(a, most);
    }
    return HN_VMOST(HN_VMAX(most, other));
}
