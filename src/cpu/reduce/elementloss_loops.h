/*
 * Losses over elements for elementloss.c, at one instruction level: f32, summed in double.
 */
#include "cpu/core/cpu_level.h"
#include "cpu/core/vecmath.h"
#include "op/loss.h"

static HN_TARGET double HN_V(square_losses)(const float *x, const float *y, int64_t n)
{
    double a = 0;
    HN_SUM1(a)
    for (int64_t i = 0; i < n; i++)
        a += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return a;
}

static HN_TARGET double HN_V(distance_losses)(const float *x, const float *y, int64_t n)
{
    double a = 0;
    HN_SUM1(a)
    for (int64_t i = 0; i < n; i++)
        a += fabs((double)x[i] - (double)y[i]);
    return a;
}

static HN_TARGET double HN_V(logit_losses)(const float *x, const float *y, int64_t n)
{
    double a = 0;
    HN_SUM1(a)
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i], size = v < 0 ? -v : v, rest = HN_V(log1p)(HN_V(exp)(-size));
        a += (double)(v > 0 ? v : v != v ? v : 0) - (double)v * (double)y[i] + (double)rest;
    }
    return a;
}

/* log(1 - p), HN_LOSS_LEAST_LOG at least, as of what is no probability */
static inline HN_TARGET float HN_V(log_rest)(float p)
{
    const float y = 1.0f - p, v = HN_V(log)(y) - (p + (y - 1.0f)) / (y > 0 ? y : 1.0f);
    return v > HN_LOSS_LEAST_LOG ? v : HN_LOSS_LEAST_LOG;
}

static HN_TARGET double HN_V(probability_losses)(const float *x, const float *y, int64_t n)
{
    double a = 0;
    HN_SUM1(a)
    for (int64_t i = 0; i < n; i++) {
        const float v = HN_V(log)(x[i]), log_p = v > HN_LOSS_LEAST_LOG ? v : HN_LOSS_LEAST_LOG;
        a -= (double)y[i] * (double)log_p + (1 - (double)y[i]) * (double)HN_V(log_rest)(x[i]);
    }
    return a;
}

static HN_TARGET void HN_V(logit_grads)(float *dx, const float *x, const float *y, float dy, int64_t n)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy * (HN_V(sigmoid)(x[i]) - y[i]);
}

static HN_TARGET void HN_V(probability_grads)(float *dx, const float *x, const float *y, float dy, int64_t n)
{
    const float least = (float)HN_LOSS_LEAST_PROBABILITY;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float p = x[i] > least ? x[i] : least, q = 1.0f - x[i] > least ? 1.0f - x[i] : least;
        dx[i] = dy * ((1.0f - y[i]) / q - y[i] / p);
    }
}
