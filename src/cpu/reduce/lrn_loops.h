/*
 * Rows of LRN, for lrn.c at one instruction level.
 */
#include <stdint.h>

#include "cpu/core/vecmath.h"

static HN_TARGET void HN_V(lrn_squares)(float *sum, const float *x, int64_t n)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        sum[i] = HN_FMA(x[i], x[i], sum[i]);
}

/* y = x / (bias + alpha * sum) ^ beta */
static HN_TARGET void HN_V(lrn_scale)(float *y, const float *x, const float *sum, int64_t n, float bias, float alpha,
                                      float beta)
{
    if (beta == 0.75f) {
        HN_IVDEP
        for (int64_t i = 0; i < n; i++) {
            const float root = sqrtf(HN_FMA(alpha, sum[i], bias));
            y[i] = x[i] / (root * sqrtf(root));
        }
    } else if (beta == 1.0f) {
        HN_IVDEP
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] / HN_FMA(alpha, sum[i], bias);
    } else {
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] / powf(HN_FMA(alpha, sum[i], bias), beta);
    }
}
