/* Rows of GRU cells and of their gradients at one instruction level, for gru_train.c. */
#include "cpu/core/vecmath.h"

/* Sums of n gates become what their function makes of them. */
static HN_TARGET void HN_V(gru_gates)(float *g, int64_t n)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        g[i] = HN_V(sigmoid)(g[i]);
}

/* y = a * b */
static HN_TARGET void HN_V(gru_times)(float *restrict y, const float *restrict a, const float *restrict b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

/* g: the gates z and r, and the sum of the hidden one, [3][n], which becomes its function's value; own: what is reset
 * and added to the sum, NULL: it is in there. before: NULL for zeros. */
static HN_TARGET void HN_V(gru_row)(float *restrict g, const float *own, const float *before, float *restrict h,
                                    int64_t n)
{
    float *restrict value = g + 2 * n;
    const float *restrict reset = g + n;
    if (own != NULL)
        for (int64_t i = 0; i < n; i++)
            value[i] = HN_FMA(reset[i], own[i], value[i]);
    for (int64_t i = 0; i < n; i++)
        value[i] = HN_V(tanh)(value[i]);
    if (before == NULL)
        for (int64_t i = 0; i < n; i++)
            h[i] = value[i] - g[i] * value[i];
    else
        for (int64_t i = 0; i < n; i++)
            h[i] = HN_FMA(g[i], before[i] - value[i], value[i]);
}

/* dg: gradients of the sums of z and h, and, of an `own` beside them (g's and dg's fourth gate), of r and own, too. dh:
 * of the state behind the step, then what the one before it gets directly. dy: what is added to dh, NULL for zeros. */
static HN_TARGET void HN_V(gru_row_grad)(const float *restrict g, const float *restrict before, const float *dy,
                                         float *restrict dh, float *restrict dg, int64_t n, gboolean own)
{
    for (int64_t i = 0; dy != NULL && i < n; i++)
        dh[i] += dy[i];
    for (int64_t i = 0; i < n; i++) {
        const float z = g[i], value = g[2 * n + i], d = dh[i];
        dg[i] = d * (before[i] - value) * z * (1 - z);
        dg[2 * n + i] = d * (1 - z) * (1 - value * value);
        dh[i] = d * z;
    }
    for (int64_t i = 0; own && i < n; i++) {
        const float r = g[n + i], d = dg[2 * n + i];
        dg[n + i] = d * g[3 * n + i] * r * (1 - r);
        dg[3 * n + i] = d * r;
    }
}

/* part: the gradient of r * before. dg: of r's sum; state: r * before. */
static HN_TARGET void HN_V(gru_reset_grad)(const float *restrict r, const float *restrict before,
                                           const float *restrict part, float *restrict dh, float *restrict dg,
                                           float *restrict state, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dg[i] = part[i] * before[i] * r[i] * (1 - r[i]);
        dh[i] = HN_FMA(part[i], r[i], dh[i]);
        state[i] = r[i] * before[i];
    }
}
