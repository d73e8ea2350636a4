/*
 * Attention of few queries at one instruction level, for attention_rows.c.
 */
#include <stdint.h>

#include "cpu/core/dot.h"

/* s[t] = sum over i of q[i] * k[t * step + i], of n keys. */
static HN_TARGET void HN_V(scores)(float *s, const float *q, const float *k, int64_t step, int64_t n, int64_t size)
{
    for (int64_t t = 0; t < n; t++, k += step)
        s[t] = HN_V(row_dot)(q, k, size);
}

/* y[i] = sum over t of p[t] * v[t * step + i]; four sums at a time, so that additions do not wait for one another. */
static HN_TARGET void HN_V(mix)(float *y, const float *p, const float *v, int64_t step, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < size; i += HN_LANES) {
        const int lanes = (int)(size - i < HN_LANES ? size - i : HN_LANES);
        HN_VEC a = HN_VSET(0), b = a, c = a, d = a;
        const float *x = v + i;
        int64_t t = 0;
        if (lanes == HN_LANES) {
            for (; t + 4 <= n; t += 4, x += 4 * step) {
                a = HN_VFMA(HN_VSET(p[t]), HN_VLOAD(x), a);
                b = HN_VFMA(HN_VSET(p[t + 1]), HN_VLOAD(x + step), b);
                c = HN_VFMA(HN_VSET(p[t + 2]), HN_VLOAD(x + 2 * step), c);
                d = HN_VFMA(HN_VSET(p[t + 3]), HN_VLOAD(x + 3 * step), d);
            }
        } else {
            for (; t + 4 <= n; t += 4, x += 4 * step) {
                a = HN_VFMA(HN_VSET(p[t]), HN_VLOAD_N(x, lanes), a);
                b = HN_VFMA(HN_VSET(p[t + 1]), HN_VLOAD_N(x + step, lanes), b);
                c = HN_VFMA(HN_VSET(p[t + 2]), HN_VLOAD_N(x + 2 * step, lanes), c);
                d = HN_VFMA(HN_VSET(p[t + 3]), HN_VLOAD_N(x + 3 * step, lanes), d);
            }
        }
        for (; t < n; t++, x += step)
            a = HN_VFMA(HN_VSET(p[t]), lanes == HN_LANES ? HN_VLOAD(x) : HN_VLOAD_N(x, lanes), a);
        a = HN_VADD(HN_VADD(a, b), HN_VADD(c, d));
        if (lanes == HN_LANES)
            HN_VSTORE(y + i, a);
        else
            HN_VSTORE_N(y + i, a, lanes);
    }
}
