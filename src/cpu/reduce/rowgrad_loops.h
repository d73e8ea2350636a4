/*
 * Rows of the gradients of LayerNormalization and Softmax for rowgrad.c, at one instruction level.
 */
#include <glib.h>

#include "cpu/core/vec.h"
#include "cpu/core/vecmath.h"
#include "cpu/reduce/rowgrad.h"

/* Sums of g = dy * w and of g * x^, x^ = (x - mean) * inv; dscale += dy * x^, dbias += dy */
static HN_TARGET void HN_V(norm_row_sums)(const HnNormRow *r, const float *dy, const float *x, float mean, float inv,
                                          float *g, float *along)
{
    const float *w = r->scale;
    float *dscale = r->dscale, *dbias = r->dbias, a = 0, b = 0;
    HN_SUM2(a, b)
    for (int64_t i = 0; i < r->n; i++) {
        const float hat = (x[i] - mean) * inv, d = dy[i], v = d * w[i];
        dscale[i] = HN_FMA(d, hat, dscale[i]);
        dbias[i] += d;
        a += v;
        b = HN_FMA(v, hat, b);
    }
    *g = a;
    *along = b;
}

/* dx = (dy * w - g - x^ * along) * inv */
static HN_TARGET void HN_V(norm_row_back)(const HnNormRow *r, float *dx, const float *dy, const float *x, float mean,
                                          float inv, float g, float along)
{
    const float *w = r->scale;
    HN_IVDEP
    for (int64_t i = 0; i < r->n; i++) {
        const float hat = (x[i] - mean) * inv;
        dx[i] = (dy[i] * w[i] - HN_FMA(hat, along, g)) * inv;
    }
}

static HN_TARGET float HN_V(row_dot)(const float *a, const float *b, int64_t n)
{
    float s = 0, t = 0;
    const int64_t h = n / (2 * HN_LANES) * HN_LANES; /* whole vectors; the rest alone */
    const float *a1 = a + h, *b1 = b + h;
    HN_SUM2(s, t)
    for (int64_t i = 0; i < h; i++) {
        s = HN_FMA(a[i], b[i], s);
        t = HN_FMA(a1[i], b1[i], t);
    }
    for (int64_t i = 2 * h; i < n; i++)
        s = HN_FMA(a[i], b[i], s);
    return s + t;
}

/* dx = y * (dy - sum) */
static HN_TARGET void HN_V(soft_back)(float *dx, const float *dy, const float *y, int64_t n, float sum)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - sum);
}

/* dx = dy - e^y * sum */
static HN_TARGET void HN_V(log_back)(float *dx, const float *dy, const float *y, int64_t n, float sum)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        dx[i] = HN_FMA(-sum, HN_V(exp)(y[i]), dy[i]);
}

/* Down `width` columns of n rows, which are `inner` apart; sum: a place for each */
static HN_TARGET void HN_V(columns_back)(float *dx, const float *dy, const float *y, int64_t n, int64_t inner,
                                         int64_t width, float *sum, gboolean logs)
{
    for (int64_t i = 0; i < width; i++)
        sum[i] = 0;
    for (int64_t k = 0; k < n; k++) {
        const float *d = dy + k * inner, *of = y + k * inner;
        HN_IVDEP
        for (int64_t i = 0; i < width; i++)
            sum[i] += logs ? d[i] : d[i] * of[i];
    }
    for (int64_t k = 0; k < n; k++) {
        const float *d = dy + k * inner, *of = y + k * inner;
        float *to = dx + k * inner;
        HN_IVDEP
        for (int64_t i = 0; i < width; i++)
            to[i] = logs ? HN_FMA(-sum[i], HN_V(exp)(of[i]), d[i]) : of[i] * (d[i] - sum[i]);
    }
}

static const HnRowGradFns HN_V(rowgrad_fns) = {
    HN_V(norm_row_sums), HN_V(norm_row_back), HN_V(row_dot), HN_V(soft_back), HN_V(log_back), HN_V(columns_back),
};
