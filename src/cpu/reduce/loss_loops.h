/*
 * Rows of losses for loss.c, at one instruction level. What is written may lie on the first row, element on element.
 */
#include "cpu/core/cpu_level.h"
#include "cpu/core/vecmath.h"
#include "cpu/reduce/loss.h"

static HN_TARGET double HN_V(loss_sum)(const float *x, int64_t n, float most)
{
    double a = 0;
    HN_SUM1(a)
    for (int64_t i = 0; i < n; i++)
        a += (double)(x[i] - most);
    return a;
}

static HN_TARGET double HN_V(loss_squares)(const float *x, int64_t n, double mean)
{
    double a = 0;
    HN_SUM1(a)
    for (int64_t i = 0; i < n; i++)
        a += ((double)x[i] - mean) * ((double)x[i] - mean);
    return a;
}

static HN_TARGET double HN_V(loss_powers)(const HnSoftRow *a, int64_t n)
{
    const float *x = a->x, most = a->most, by = a->by;
    double s = 0;
    HN_SUM1(s)
    for (int64_t i = 0; i < n; i++)
        s += (double)HN_V(exp_share)((x[i] - most) * by);
    return s;
}

static HN_TARGET double HN_V(loss_powers_kept)(float *y, const HnSoftRow *a, int64_t n)
{
    const float *x = a->x, most = a->most, by = a->by;
    double s = 0;
    HN_SUM1(s)
    for (int64_t i = 0; i < n; i++) {
        const float e = HN_V(exp_share)((x[i] - most) * by);
        y[i] = e;
        s += (double)e;
    }
    return s;
}

static HN_TARGET double HN_V(loss_excess)(const HnSoftRow *a, const HnSoftRow *b, int64_t n)
{
    const float *x = a->x, most_a = a->most, by_a = a->by, *y = b->x, most_b = b->most, by_b = b->by;
    double s = 0;
    HN_SUM1(s)
    for (int64_t i = 0; i < n; i++) {
        const float of_b = (y[i] - most_b) * by_b, e = HN_V(exp_share)(of_b);
        const float v = e * (of_b - (x[i] - most_a) * by_a);
        s += (double)(e == 0 ? 0 : v);
    }
    return s;
}

static HN_TARGET double HN_V(loss_difference)(float *y, const HnSoftRow *a, const HnSoftRow *b, float of_a, float of_b,
                                              int64_t n)
{
    const float *x = a->x, most_a = a->most, by_a = a->by, *z = b->x, most_b = b->most, by_b = b->by;
    double s = 0;
    HN_SUM1(s)
    for (int64_t i = 0; i < n; i++) {
        const float v = (x[i] - most_a) * by_a, less = HN_V(exp_share)((z[i] - most_b) * by_b) * of_b;
        const float d = HN_FMA(HN_V(exp_share)(v), of_a, -less);
        y[i] = d;
        s += (double)(d * v);
    }
    return s;
}

static HN_TARGET void HN_V(loss_dots)(HnRowDots *sums, const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    HN_SUM3(ab, aa, bb)
    for (int64_t i = 0; i < n; i++) {
        const double v = (double)a[i], w = (double)b[i];
        ab += v * w;
        aa += v * v;
        bb += w * w;
    }
    *sums = (HnRowDots){ ab, aa, bb };
}

static HN_TARGET void HN_V(loss_mix)(float *y, const float *a, float of_a, const float *b, float most, float of_b,
                                     float c, int64_t n)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = HN_FMA(a[i], of_a, HN_FMA(b[i] - most, of_b, c));
}

static const HnLossFns HN_V(loss_fns) = {
    HN_V(loss_sum),    HN_V(loss_squares),    HN_V(loss_powers), HN_V(loss_powers_kept),
    HN_V(loss_excess), HN_V(loss_difference), HN_V(loss_dots),   HN_V(loss_mix),
};
