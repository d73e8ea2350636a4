/*
 * Loops over rows of lanes for batchnorm.c, at one instruction level. Four rows are added up before they are added to
 * the sums.
 */
#include <glib.h>

#include "cpu/core/cpu_level.h"
#include "cpu/reduce/batchnorm.h"
#include "op/batchnorm.h"

#define INLINE static inline __attribute__((always_inline)) HN_TARGET

static HN_TARGET void HN_V(norm_moments)(const float *x, int64_t n, int64_t width, const float *shift, float *sum,
                                         float *squares)
{
    for (; n >= 4 * width; n -= 4 * width, x += 4 * width) {
        const float *x1 = x + width, *x2 = x1 + width, *x3 = x2 + width;
        HN_IVDEP
        for (int64_t i = 0; i < width; i++) {
            const float a = x[i] - shift[i], b = x1[i] - shift[i], c = x2[i] - shift[i], d = x3[i] - shift[i];
            sum[i] += (a + b) + (c + d);
            squares[i] += HN_FMA(a, a, b * b) + HN_FMA(c, c, d * d);
        }
    }
    for (int64_t m; n > 0; n -= m, x += m) {
        m = MIN(n, width);
        HN_IVDEP
        for (int64_t i = 0; i < m; i++) {
            const float a = x[i] - shift[i];
            sum[i] += a;
            squares[i] = HN_FMA(a, a, squares[i]);
        }
    }
}

INLINE float HN_V(norm_within)(float v, float lo, float hi)
{
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

static HN_TARGET void HN_V(norm_apply)(float *y, const float *x, const float *more, int64_t n, int64_t width,
                                       const HnNormLanes *l)
{
    const float *a = l->a, *b = l->b, lo = l->lo, hi = l->hi;
    for (int64_t m; n > 0; n -= m, x += m, y += m) {
        m = MIN(n, width);
        if (more == NULL) {
            HN_IVDEP
            for (int64_t i = 0; i < m; i++)
                y[i] = HN_V(norm_within)(HN_FMA(x[i], a[i], b[i]), lo, hi);
            continue;
        }
        HN_IVDEP
        for (int64_t i = 0; i < m; i++)
            y[i] = HN_V(norm_within)(HN_FMA(x[i], a[i], b[i]) + more[i], lo, hi);
        more += m;
    }
}

/* dy, or 0 where the activation behind y = x * a + b cut y off */
INLINE float HN_V(norm_pass)(float dy, float x, float a, float b, HnMask mask, float lo, float hi)
{
    const float y = HN_FMA(x, a, b);
    if (mask == HN_MASK_RELU)
        return y > 0 ? dy : 0;
    if (mask == HN_MASK_CLIP)
        return ((y >= lo) & (y <= hi)) ? dy : 0;
    return dy;
}

#define PASS(k, i) HN_V(norm_pass)(dy[(k)*width + (i)], x[(k)*width + (i)], a[i], b[i], mask, lo, hi)

INLINE void HN_V(norm_sums)(const float *dy, const float *x, int64_t n, int64_t width, const HnNormLanes *l, float *sum,
                            float *along, HnMask mask)
{
    const float *a = l->a, *b = l->b, *mean = l->mean, lo = l->lo, hi = l->hi;
    for (; n >= 4 * width; n -= 4 * width, x += 4 * width, dy += 4 * width) {
        HN_IVDEP
        for (int64_t i = 0; i < width; i++) {
            const float d0 = PASS(0, i), d1 = PASS(1, i), d2 = PASS(2, i), d3 = PASS(3, i), m = mean[i];
            sum[i] += (d0 + d1) + (d2 + d3);
            along[i] += HN_FMA(d0, x[i] - m, d1 * (x[width + i] - m)) +
                        HN_FMA(d2, x[2 * width + i] - m, d3 * (x[3 * width + i] - m));
        }
    }
    for (int64_t m; n > 0; n -= m, x += m, dy += m) {
        m = MIN(n, width);
        HN_IVDEP
        for (int64_t i = 0; i < m; i++) {
            const float d = PASS(0, i);
            sum[i] += d;
            along[i] = HN_FMA(d, x[i] - mean[i], along[i]);
        }
    }
}

INLINE void HN_V(norm_back)(float *dx, const float *dy, const float *x, int64_t n, int64_t width, const HnNormLanes *l,
                            HnMask mask)
{
    const float *a = l->a, *b = l->b, *mean = l->mean, *k0 = l->k0, *k1 = l->k1, lo = l->lo, hi = l->hi;
    for (int64_t m; n > 0; n -= m, x += m, dy += m, dx += m) {
        m = MIN(n, width);
        HN_IVDEP
        for (int64_t i = 0; i < m; i++)
            dx[i] = HN_FMA(PASS(0, i), a[i], HN_FMA(x[i] - mean[i], k1[i], k0[i]));
    }
}

INLINE void HN_V(norm_frozen)(float *dx, const float *dy, const float *x, int64_t n, int64_t width,
                              const HnNormLanes *l, float *sum, float *along, HnMask mask)
{
    const float *a = l->a, *b = l->b, *mean = l->mean, lo = l->lo, hi = l->hi;
    for (int64_t m; n > 0; n -= m, x += m, dy += m, dx += m) {
        m = MIN(n, width);
        HN_IVDEP
        for (int64_t i = 0; i < m; i++) {
            const float d = PASS(0, i);
            sum[i] += d;
            along[i] = HN_FMA(d, x[i] - mean[i], along[i]);
            dx[i] = d * a[i];
        }
    }
}

#define MASKED(name, mask)                                                                                          \
    static HN_TARGET void HN_V(sums_##name)(const float *dy, const float *x, int64_t n, int64_t width,              \
                                            const HnNormLanes *l, float *sum, float *along)                         \
    {                                                                                                               \
        HN_V(norm_sums)(dy, x, n, width, l, sum, along, mask);                                                      \
    }                                                                                                               \
    static HN_TARGET void HN_V(back_##name)(float *dx, const float *dy, const float *x, int64_t n, int64_t width,   \
                                            const HnNormLanes *l)                                                   \
    {                                                                                                               \
        HN_V(norm_back)(dx, dy, x, n, width, l, mask);                                                              \
    }                                                                                                               \
    static HN_TARGET void HN_V(frozen_##name)(float *dx, const float *dy, const float *x, int64_t n, int64_t width, \
                                              const HnNormLanes *l, float *sum, float *along)                       \
    {                                                                                                               \
        HN_V(norm_frozen)(dx, dy, x, n, width, l, sum, along, mask);                                                \
    }
MASKED(all, HN_MASK_NONE)
MASKED(relu, HN_MASK_RELU)
MASKED(clip, HN_MASK_CLIP)

static const HnBatchNormFns HN_V(batchnorm_fns) = {
    HN_V(norm_moments),
    HN_V(norm_apply),
    { HN_V(sums_all), HN_V(sums_relu), HN_V(sums_clip) },
    { HN_V(back_all), HN_V(back_relu), HN_V(back_clip) },
    { HN_V(frozen_all), HN_V(frozen_relu), HN_V(frozen_clip) },
};
#undef MASKED
#undef PASS
#undef INLINE
