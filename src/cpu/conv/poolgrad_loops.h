/*
 * The gradients of pools for poolgrad.c, at one instruction level: n channels of a pixel.
 */
#include <glib.h>

#include "cpu/core/cpu_level.h"

/* dx += left where x is the largest, y; there nothing is left then */
static HN_TARGET void HN_V(give_most)(float *restrict dx, const float *restrict x, const float *restrict y,
                                      float *restrict left, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float all = left[i], take = x[i] == y[i] ? all : 0;
        dx[i] += take;
        left[i] = x[i] == y[i] ? 0 : all;
    }
}

/* dx += dy * share */
static HN_TARGET void HN_V(give_share)(float *restrict dx, const float *restrict dy, float share, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = HN_FMA(dy[i], share, dx[i]);
}
