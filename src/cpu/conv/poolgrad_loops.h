/*
 * The gradients of pools for poolgrad.c, at one instruction level: n channels of a pixel.
 */
#include <glib.h>

#include "cpu/core/vec.h"

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

/* One vector of channels of a window whose elements are in no other one, at[taps] floats away; some: how many, 0 for
 * all of them. */
static inline __attribute__((always_inline)) HN_TARGET void
HN_V(give_vector)(float *dx, const float *x, const int64_t *at, int taps, const float *y, const float *dy, int some)
{
    HN_VEC left = some > 0 ? HN_VLOAD_N(dy, some) : HN_VLOAD(dy);
    const HN_VEC most = some > 0 ? HN_VLOAD_N(y, some) : HN_VLOAD(y);
    for (int k = 0; k < taps; k++) {
        const HN_VEC v = some > 0 ? HN_VLOAD_N(x + at[k], some) : HN_VLOAD(x + at[k]);
        const HN_VEC take = HN_VEQUAL(v, most, left);
        left = HN_VOTHER(v, most, left);
        if (some > 0)
            HN_VSTORE_N(dx + at[k], take, some);
        else
            HN_VSTORE(dx + at[k], take);
    }
}

/* The first one of x that is y gets dy, the others nothing. */
static HN_TARGET void HN_V(give_apart)(float *dx, const float *x, const int64_t *at, int taps, const float *y,
                                       const float *dy, int64_t n)
{
    int64_t i = 0;
    for (; i + HN_LANES <= n; i += HN_LANES)
        HN_V(give_vector)(dx + i, x + i, at, taps, y + i, dy + i, 0);
    if (i < n)
        HN_V(give_vector)(dx + i, x + i, at, taps, y + i, dy + i, (int)(n - i));
}

/* dx += dy * share */
static HN_TARGET void HN_V(give_share)(float *restrict dx, const float *restrict dy, float share, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = HN_FMA(dy[i], share, dx[i]);
}
