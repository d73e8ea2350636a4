/*
 * to[i] += v * from[i] at one instruction level, for few_grad.c.
 */
#include "cpu/core/vec.h"

static HN_TARGET void HN_V(add_row)(float *to, const float *from, float v, int64_t n)
{
    const HN_VEC by = HN_VSET(v);
    int64_t i = 0;
    for (; i + HN_LANES <= n; i += HN_LANES)
        HN_VSTORE(to + i, HN_VFMA(HN_VLOAD(from + i), by, HN_VLOAD(to + i)));
    if (i < n) {
        const int left = (int)(n - i);
        const HN_VEC sum = HN_VFMA(HN_VLOAD_N(from + i, left), by, HN_VLOAD_N(to + i, left));
        HN_VSTORE_N(to + i, sum, left);
    }
}
