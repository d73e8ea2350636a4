/* Rows of LSTM cells and of their gradients at one instruction level, for recurrent_train.c. */
#include "cpu/core/vecmath.h"

/* g: sums of the gates i, o, f, c, [4][n], which become what their functions make of them. before: NULL for zeros. */
static HN_TARGET void HN_V(lstm_row)(float *restrict g, const float *before, float *restrict cell, float *restrict h,
                                     int64_t n)
{
    float *restrict out = g + n, *restrict forget = g + 2 * n, *restrict in = g + 3 * n;
    for (int64_t i = 0; i < 3 * n; i++)
        g[i] = HN_V(sigmoid)(g[i]);
    for (int64_t i = 0; i < n; i++)
        in[i] = HN_V(tanh)(in[i]);
    if (before == NULL)
        for (int64_t i = 0; i < n; i++)
            cell[i] = g[i] * in[i];
    else
        for (int64_t i = 0; i < n; i++)
            cell[i] = forget[i] * before[i] + g[i] * in[i];
    for (int64_t i = 0; i < n; i++)
        h[i] = out[i] * HN_V(tanh)(cell[i]);
}

/* dg: gradients of the sums, [4][n]; dc: of the cell state behind the step, then of the one before it. dy: what is
 * added to dh, NULL for zeros. */
static HN_TARGET void HN_V(lstm_row_grad)(const float *restrict g, const float *restrict before,
                                          const float *restrict cell, const float *dy, float *restrict dh,
                                          float *restrict dc, float *restrict dg, int64_t n)
{
    for (int64_t i = 0; dy != NULL && i < n; i++)
        dh[i] += dy[i];
    for (int64_t i = 0; i < n; i++) {
        const float in = g[i], out = g[n + i], forget = g[2 * n + i], value = g[3 * n + i];
        const float now = HN_V(tanh)(cell[i]), d = dc[i] + dh[i] * out * (1 - now * now);
        dg[i] = d * value * in * (1 - in);
        dg[n + i] = dh[i] * now * out * (1 - out);
        dg[2 * n + i] = d * before[i] * forget * (1 - forget);
        dg[3 * n + i] = d * in * (1 - value * value);
        dc[i] = d * forget;
    }
}

/* to[n] += the sum of `rows` rows of n, in their order. */
static HN_TARGET void HN_V(lstm_add_rows)(float *restrict to, const float *restrict from, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, from += n)
        for (int64_t i = 0; i < n; i++)
            to[i] += from[i];
}
#undef INLINE
