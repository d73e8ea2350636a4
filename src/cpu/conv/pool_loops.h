/*
 * Largest elements and sums for pool.c, at one instruction level. A comparison with NaN is false: NaN never is the
 * largest.
 */
#include <glib.h>
#include <math.h>

#include "cpu/conv/pool.h"
#include "cpu/core/vec.h"

#define INLINE static inline __attribute__((always_inline)) HN_TARGET
#define CHUNK 128 /* elements of a sum that are added up before they are added to the others */

/* `count` results side by side, each of n elements, the k-th of which begin at AT(k): four vectors at a time, the last
 * one lies back so that it fits. */
#define RESULTS(N, AT, START, JOIN, FINISH)                    \
    int64_t c = 0;                                             \
    for (; c + 4 * HN_LANES <= count; c += 4 * HN_LANES) {     \
        HN_VEC v0 = HN_VSET(START), v1 = v0, v2 = v0, v3 = v0; \
        for (int64_t k = 0; k < (N); k++) {                    \
            const float *p = (AT) + c;                         \
            v0 = JOIN(HN_VLOAD(p), v0);                        \
            v1 = JOIN(HN_VLOAD(p + HN_LANES), v1);             \
            v2 = JOIN(HN_VLOAD(p + 2 * HN_LANES), v2);         \
            v3 = JOIN(HN_VLOAD(p + 3 * HN_LANES), v3);         \
        }                                                      \
        HN_VSTORE(y + c, FINISH(v0));                          \
        HN_VSTORE(y + c + HN_LANES, FINISH(v1));               \
        HN_VSTORE(y + c + 2 * HN_LANES, FINISH(v2));           \
        HN_VSTORE(y + c + 3 * HN_LANES, FINISH(v3));           \
    }                                                          \
    for (; c < count && count >= HN_LANES; c += HN_LANES) {    \
        c = MIN(c, count - HN_LANES);                          \
        HN_VEC v = HN_VSET(START);                             \
        for (int64_t k = 0; k < (N); k++)                      \
            v = JOIN(HN_VLOAD((AT) + c), v);                   \
        HN_VSTORE(y + c, FINISH(v));                           \
    }
#define SAME(v) v
#define SCALED(v) HN_VMUL(v, by)

/* Elements from[k][at + c] of n rows. */
INLINE void HN_V(most_at)(float *y, const float *const *from, int64_t n, int64_t at, int64_t count)
{
    RESULTS(n, from[k] + at, -INFINITY, HN_VMAX, SAME)
    for (; c < count; c++) {
        y[c] = -INFINITY;
        for (int64_t k = 0; k < n; k++)
            y[c] = from[k][at + c] > y[c] ? from[k][at + c] : y[c];
    }
}

static HN_TARGET void HN_V(most_of)(float *y, int64_t y_step, const float *const *from, int64_t n, int64_t x_step,
                                    int64_t count, int64_t pixels, float scale)
{
    (void)scale;
    for (int64_t i = 0; i < pixels; i++)
        HN_V(most_at)(y + i * y_step, from, n, i * x_step, count);
}

INLINE void HN_V(sum_at)(float *y, const float *const *from, int64_t n, int64_t at, int64_t count, float scale)
{
    const HN_VEC by = HN_VSET(scale);
    RESULTS(n, from[k] + at, 0, HN_VADD, SCALED)
    for (; c < count; c++) {
        float sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += from[k][at + c];
        y[c] = sum * scale;
    }
}

static HN_TARGET void HN_V(sum_of)(float *y, int64_t y_step, const float *const *from, int64_t n, int64_t x_step,
                                   int64_t count, int64_t pixels, float scale)
{
    for (int64_t i = 0; i < pixels; i++)
        HN_V(sum_at)(y + i * y_step, from, n, i * x_step, count, scale);
}

/* Elements x[k * pitch + c] of n pixels. */
static HN_TARGET void HN_V(most_pixels)(float *y, const float *x, int64_t pitch, int64_t n, int64_t count, float scale)
{
    (void)scale;
    RESULTS(n, x + k * pitch, -INFINITY, HN_VMAX, SAME)
    for (; c < count; c++) {
        y[c] = -INFINITY;
        for (int64_t k = 0; k < n; k++)
            y[c] = x[k * pitch + c] > y[c] ? x[k * pitch + c] : y[c];
    }
}

/* `count` is at most HN_POOL_SPAN. */
static HN_TARGET void HN_V(sum_pixels)(float *y, const float *x, int64_t pitch, int64_t n, int64_t count, float scale)
{
    float part[HN_POOL_SPAN];
    for (int64_t i = 0; i < count; i++)
        part[i] = 0;
    for (int64_t m; n > 0; n -= m, x += m * pitch) {
        m = MIN(n, CHUNK);
        {
            RESULTS(m, x + k * pitch, 0, HN_VADD, SAME)
            for (; c < count; c++) {
                y[c] = 0;
                for (int64_t k = 0; k < m; k++)
                    y[c] += x[k * pitch + c];
            }
        }
        for (int64_t i = 0; i < count; i++)
            part[i] += y[i];
    }
    for (int64_t i = 0; i < count; i++)
        y[i] = part[i] * scale;
}

/* --- elements side by side are joined ---------------------------------------------------------------------------- */

static HN_TARGET float HN_V(most_row)(const float *x, int64_t n, float scale)
{
    (void)scale;
    float part[HN_LANES], most = -INFINITY;
    int64_t i = 0;
    HN_VEC v0 = HN_VSET(-INFINITY), v1 = v0, v2 = v0, v3 = v0;
    for (; i + 4 * HN_LANES <= n; i += 4 * HN_LANES) {
        v0 = HN_VMAX(HN_VLOAD(x + i), v0);
        v1 = HN_VMAX(HN_VLOAD(x + i + HN_LANES), v1);
        v2 = HN_VMAX(HN_VLOAD(x + i + 2 * HN_LANES), v2);
        v3 = HN_VMAX(HN_VLOAD(x + i + 3 * HN_LANES), v3);
    }
    for (; i + HN_LANES <= n; i += HN_LANES)
        v0 = HN_VMAX(HN_VLOAD(x + i), v0);
    HN_VSTORE(part, HN_VMAX(HN_VMAX(v0, v1), HN_VMAX(v2, v3)));
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int width = HN_LANES / 2; width > 0; width /= 2)
        for (int k = 0; k < width; k++)
            part[k] = part[k + width] > part[k] ? part[k + width] : part[k];
    return part[0] > most ? part[0] : most;
}

/* In chunks: adding one by one to a sum of many loses digits. */
static HN_TARGET float HN_V(sum_row)(const float *x, int64_t n, float scale)
{
    float part[HN_LANES], rest = 0;
    int64_t i = 0;
    HN_VEC sum = HN_VSET(0);
    while (i + HN_LANES <= n) {
        HN_VEC v0 = HN_VSET(0), v1 = v0, v2 = v0, v3 = v0;
        const int64_t end = MIN(n, i + CHUNK * HN_LANES);
        for (; i + 4 * HN_LANES <= end; i += 4 * HN_LANES) {
            v0 = HN_VADD(HN_VLOAD(x + i), v0);
            v1 = HN_VADD(HN_VLOAD(x + i + HN_LANES), v1);
            v2 = HN_VADD(HN_VLOAD(x + i + 2 * HN_LANES), v2);
            v3 = HN_VADD(HN_VLOAD(x + i + 3 * HN_LANES), v3);
        }
        for (; i + HN_LANES <= end; i += HN_LANES)
            v0 = HN_VADD(HN_VLOAD(x + i), v0);
        sum = HN_VADD(sum, HN_VADD(HN_VADD(v0, v1), HN_VADD(v2, v3)));
    }
    HN_VSTORE(part, sum);
    for (; i < n; i++)
        rest += x[i];
    for (int width = HN_LANES / 2; width > 0; width /= 2)
        for (int k = 0; k < width; k++)
            part[k] += part[k + width];
    return (part[0] + rest) * scale;
}

/* y[i] from row[i * stride + k * dilation], k < n; the stride is a constant where that helps. */
INLINE void HN_V(most_step)(float *restrict y, const float *restrict row, int64_t out, int64_t stride, int64_t n,
                            int64_t dilation)
{
    for (int64_t i = 0; i < out; i++)
        y[i] = row[i * stride];
    for (int64_t k = 1; k < n; k++) {
        const float *restrict from = row + k * dilation;
        for (int64_t i = 0; i < out; i++)
            y[i] = from[i * stride] > y[i] ? from[i * stride] : y[i];
    }
}

static HN_TARGET void HN_V(most_columns)(float *y, const float *row, int64_t out, int64_t stride, int64_t n,
                                         int64_t dilation)
{
    if (stride == 1)
        HN_V(most_step)(y, row, out, 1, n, dilation);
    else if (stride == 2)
        HN_V(most_step)(y, row, out, 2, n, dilation);
    else
        HN_V(most_step)(y, row, out, stride, n, dilation);
}

INLINE void HN_V(sum_step)(float *restrict y, const float *restrict row, int64_t out, int64_t stride, int64_t n,
                           int64_t dilation)
{
    for (int64_t i = 0; i < out; i++)
        y[i] = row[i * stride];
    for (int64_t k = 1; k < n; k++) {
        const float *restrict from = row + k * dilation;
        for (int64_t i = 0; i < out; i++)
            y[i] += from[i * stride];
    }
}

static HN_TARGET void HN_V(sum_columns)(float *y, const float *row, int64_t out, int64_t stride, int64_t n,
                                        int64_t dilation)
{
    if (stride == 1)
        HN_V(sum_step)(y, row, out, 1, n, dilation);
    else if (stride == 2)
        HN_V(sum_step)(y, row, out, 2, n, dilation);
    else
        HN_V(sum_step)(y, row, out, stride, n, dilation);
}

static const HnPoolFns HN_V(pool_fns)[2] = {
    { HN_V(most_of), HN_V(most_pixels), HN_V(most_row), HN_V(most_columns) },
    { HN_V(sum_of), HN_V(sum_pixels), HN_V(sum_row), HN_V(sum_columns) },
};
#undef INLINE
#undef CHUNK
#undef RESULTS
#undef SAME
#undef SCALED
