/*
 * The product of two rows. Included for each instruction level (cpu/core/cpu_level.h).
 */
#include "cpu/core/vec.h"

static inline __attribute__((always_inline)) HN_TARGET float HN_V(row_dot)(const float *a, const float *b, int64_t n)
{
    HN_VEC s = HN_VSET(0), t = s;
    int64_t i = 0;
    for (; i + 2 * HN_LANES <= n; i += 2 * HN_LANES) {
        s = HN_VFMA(HN_VLOAD(a + i), HN_VLOAD(b + i), s);
        t = HN_VFMA(HN_VLOAD(a + i + HN_LANES), HN_VLOAD(b + i + HN_LANES), t);
    }
    for (; i + HN_LANES <= n; i += HN_LANES)
        s = HN_VFMA(HN_VLOAD(a + i), HN_VLOAD(b + i), s);
    if (i < n)
        t = HN_VFMA(HN_VLOAD_N(a + i, (int)(n - i)), HN_VLOAD_N(b + i, (int)(n - i)), t);
    return HN_VSUM(HN_VADD(s, t));
}
