/*
 * One step of each optimizer over a part of a tensor, for optimizer.c at one instruction level. Results may lie on the
 * operands.
 */
#include <math.h>

#include "cpu/core/cpu_level.h"
#include "cpu/elementwise/optimizer.h"

static HN_TARGET void HN_V(adamw)(const HnUpdateNumbers *k, const HnUpdatePart *u, int64_t n)
{
    float *w = u->out[0], *m = u->out[1], *v = u->out[2];
    const float *w0 = u->in[0], *m0 = u->in[1], *v0 = u->in[2], *dw = u->dw;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float g = dw[i] * k->scale, mean = HN_FMA(k->new1, g - m0[i], m0[i]);
        const float square = HN_FMA(k->new2 * g, g, k->keep2 * v0[i]);
        m[i] = mean;
        v[i] = square;
        w[i] = HN_FMA(w0[i], k->keep, -k->rate1 * mean / HN_FMA(sqrtf(square), k->root2, k->epsilon));
    }
}

/* No momentum. */
static HN_TARGET void HN_V(descend)(const HnUpdateNumbers *k, const HnUpdatePart *u, int64_t n)
{
    float *w = u->out[0];
    const float *w0 = u->in[0], *dw = u->dw;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        w[i] = HN_FMA(-k->rate, HN_FMA(k->decay, w0[i], dw[i] * k->scale), w0[i]);
}

static HN_TARGET void HN_V(momentum)(const HnUpdateNumbers *k, const HnUpdatePart *u, int64_t n)
{
    float *w = u->out[0], *m = u->out[1];
    const float *w0 = u->in[0], *m0 = u->in[1], *dw = u->dw;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float g = HN_FMA(k->decay, w0[i], dw[i] * k->scale), mean = HN_FMA(k->momentum, m0[i], g);
        m[i] = mean;
        w[i] = HN_FMA(-k->rate, mean, w0[i]);
    }
}

static HN_TARGET void HN_V(nesterov)(const HnUpdateNumbers *k, const HnUpdatePart *u, int64_t n)
{
    float *w = u->out[0], *m = u->out[1];
    const float *w0 = u->in[0], *m0 = u->in[1], *dw = u->dw;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float g = HN_FMA(k->decay, w0[i], dw[i] * k->scale), mean = HN_FMA(k->momentum, m0[i], g);
        m[i] = mean;
        w[i] = HN_FMA(-k->rate, HN_FMA(k->momentum, mean, g), w0[i]);
    }
}

static HN_TARGET void HN_V(lion)(const HnUpdateNumbers *k, const HnUpdatePart *u, int64_t n)
{
    float *w = u->out[0], *m = u->out[1];
    const float *w0 = u->in[0], *m0 = u->in[1], *dw = u->dw;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float g = dw[i] * k->scale, by = HN_FMA(k->new1, g - m0[i], m0[i]);
        const float rate = by > 0 ? k->rate : by < 0 ? -k->rate : by; /* 0, or NaN */
        m[i] = HN_FMA(k->new2, g - m0[i], m0[i]);
        w[i] = HN_FMA(w0[i], k->keep, -rate);
    }
}

static HN_TARGET void HN_V(average)(const HnUpdateNumbers *k, const HnUpdatePart *u, int64_t n)
{
    float *a = u->out[0];
    const float *a0 = u->in[0], *w = u->dw;
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        a[i] = HN_FMA(k->new1, w[i] - a0[i], a0[i]);
}

/* The sum of squares, in double: those of large numbers are beyond f32. */
static HN_TARGET double HN_V(squares)(const float *x, int64_t n)
{
    double a = 0, b = 0, c = 0, d = 0;
    const int64_t q = n / 4;
    const float *x1 = x + q, *x2 = x1 + q, *x3 = x2 + q;
    HN_SUM4(a, b, c, d)
    for (int64_t i = 0; i < q; i++) {
        a += (double)x[i] * (double)x[i];
        b += (double)x1[i] * (double)x1[i];
        c += (double)x2[i] * (double)x2[i];
        d += (double)x3[i] * (double)x3[i];
    }
    for (int64_t i = 4 * q; i < n; i++)
        a += (double)x[i] * (double)x[i];
    return (a + b) + (c + d);
}
