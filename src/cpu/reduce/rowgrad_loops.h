/*
 * Rows of the gradients of LayerNormalization and Softmax for rowgrad.c, at one instruction level.
 */
#include <glib.h>

#include "cpu/core/dot.h"
#include "cpu/core/vecmath.h"
#include "cpu/reduce/rowgrad.h"

/* Elements [i, i + n) of the sums below; n is below HN_LANES at the end of the row. */
static inline HN_TARGET void HN_V(norm_sums_of)(const HnNormRow *r, const float *dy, const float *x, int64_t i, int n,
                                                HN_VEC scale, HN_VEC less, HN_VEC *g, HN_VEC *along)
{
#define LOAD(p) (n == HN_LANES ? HN_VLOAD((p) + i) : HN_VLOAD_N((p) + i, n))
    const HN_VEC hat = HN_VMUL(HN_VADD(LOAD(x), less), scale), d = LOAD(dy), v = HN_VMUL(d, LOAD(r->scale));
    const HN_VEC ds = HN_VFMA(d, hat, LOAD(r->dscale)), db = HN_VADD(d, LOAD(r->dbias));
#undef LOAD
    *g = HN_VADD(*g, v);
    *along = HN_VFMA(v, hat, *along);
    if (n == HN_LANES) {
        HN_VSTORE(r->dscale + i, ds);
        HN_VSTORE(r->dbias + i, db);
    } else {
        HN_VSTORE_N(r->dscale + i, ds, n);
        HN_VSTORE_N(r->dbias + i, db, n);
    }
}

/* Sums of g = dy * w and of g * x^, x^ = (x - mean) * inv; dscale += dy * x^, dbias += dy */
static HN_TARGET void HN_V(norm_row_sums)(const HnNormRow *r, const float *dy, const float *x, float mean, float inv,
                                          float *g, float *along)
{
    const HN_VEC scale = HN_VSET(inv), less = HN_VSET(-mean);
    HN_VEC a = HN_VSET(0), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 2 * HN_LANES <= r->n; i += 2 * HN_LANES) {
        HN_V(norm_sums_of)(r, dy, x, i, HN_LANES, scale, less, &a, &b);
        HN_V(norm_sums_of)(r, dy, x, i + HN_LANES, HN_LANES, scale, less, &c, &d);
    }
    for (; i < r->n; i += HN_LANES)
        HN_V(norm_sums_of)(r, dy, x, i, (int)MIN(HN_LANES, r->n - i), scale, less, &a, &b);
    *g = HN_VSUM(HN_VADD(a, c));
    *along = HN_VSUM(HN_VADD(b, d));
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
