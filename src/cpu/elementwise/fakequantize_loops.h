/*
 * FakeQuantize and its gradient over a row of elements, for fakequantize.c at one instruction level: with one scale, or
 * with one for each element (`each`). Quotients are held within [lo, hi], whole numbers; NaN stays. Results may lie on
 * the operands.
 */
#include <math.h>

#include "cpu/core/cpu_level.h"

#ifndef HN_FAKE_LANES
#define HN_FAKE_LANES 64 /* sums side by side */

static inline float hn_fake_held(float v, float lo, float hi)
{
    v = v < lo ? lo : v;
    return rintf(v > hi ? hi : v);
}

/* What the scale's gradient is of dy = 1. */
static inline float hn_fake_slope(float v, float lo, float hi)
{
    return hn_fake_held(v, lo, hi) - (v >= lo && v <= hi ? v : 0);
}
#endif

static HN_TARGET void HN_V(fake_one)(float *y, const float *x, const float *scale, const float *least,
                                     const float *most, int64_t n)
{
    const float s = *scale, lo = *least, hi = *most;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = hn_fake_held(x[i] / s, lo, hi) * s;
}

static HN_TARGET void HN_V(fake_each)(float *y, const float *x, const float *s, const float *lo, const float *hi,
                                      int64_t n)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = hn_fake_held(x[i] / s[i], lo[i], hi[i]) * s[i];
}

/* *sum is added to. */
static HN_TARGET void HN_V(back_one)(float *dx, float *sum, const float *dy, const float *x, const float *scale,
                                     const float *least, const float *most, int64_t n)
{
    const float s = *scale, lo = *least, hi = *most;
    float lanes[HN_FAKE_LANES] = { 0 };
    int64_t i = 0;
    for (; i + HN_FAKE_LANES <= n; i += HN_FAKE_LANES) {
        HN_IVDEP
        for (int j = 0; j < HN_FAKE_LANES; j++) {
            const float v = x[i + j] / s, d = dy[i + j];
            lanes[j] += d * hn_fake_slope(v, lo, hi);
            dx[i + j] = v >= lo && v <= hi ? d : 0;
        }
    }
    for (int j = 0; i < n; i++, j++) {
        const float v = x[i] / s, d = dy[i];
        lanes[j] += d * hn_fake_slope(v, lo, hi);
        dx[i] = v >= lo && v <= hi ? d : 0;
    }
    for (int half = HN_FAKE_LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    *sum += lanes[0];
}

static HN_TARGET void HN_V(back_each)(float *dx, float *sum, const float *dy, const float *x, const float *s,
                                      const float *lo, const float *hi, int64_t n)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i] / s[i], d = dy[i];
        sum[i] += d * hn_fake_slope(v, lo[i], hi[i]);
        dx[i] = v >= lo[i] && v <= hi[i] ? d : 0;
    }
}
