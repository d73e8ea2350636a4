/*
 * Softmax of f64 at one instruction level, for softmax.c.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu/core/cpu_level.h"

#define INLINE static inline __attribute__((always_inline)) HN_TARGET
#define FMA64 HN_JOIN(FMA64, HN_LEVEL)
#define FMA64_plain(a, b, c) ((a) * (b) + (c))
#define FMA64_avx2(a, b, c) __builtin_fma(a, b, c)
#define FMA64_avx512(a, b, c) __builtin_fma(a, b, c)

/* e^v for v <= 0, and 0 where that is no normal number; NaN comes through. */
INLINE double HN_V(exp_share_f64)(double v)
{
    const double c = v < -708 ? -708 : v;
    const double shifted = FMA64(c, 1.4426950408889634, 0x1.80000000003ffp52); /* 1.5 * 2^52 + 1023 */
    const double k = shifted - 0x1.80000000003ffp52;
    const double r = FMA64(k, -1.90821492927058770002e-10, FMA64(k, -6.93147180369123816490e-01, c)); /* c - k * ln2 */
    double p = 1.0 / 479001600;
    p = FMA64(p, r, 1.0 / 39916800);
    p = FMA64(p, r, 1.0 / 3628800);
    p = FMA64(p, r, 1.0 / 362880);
    p = FMA64(p, r, 1.0 / 40320);
    p = FMA64(p, r, 1.0 / 5040);
    p = FMA64(p, r, 1.0 / 720);
    p = FMA64(p, r, 1.0 / 120);
    p = FMA64(p, r, 1.0 / 24);
    p = FMA64(p, r, 1.0 / 6);
    p = FMA64(p, r, 0.5);
    p = FMA64(p, r, 1.0);
    p = FMA64(p, r, 1.0);
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 52;
    double scale; /* 2^k */
    memcpy(&scale, &bits, sizeof scale);
    return v < -708 ? 0 : p * scale;
}

static HN_TARGET void HN_V(row_softmax_f64)(double *y, const double *x, int64_t n, gboolean logs)
{
    enum { LANES = 32 };
    double many[LANES], most = -INFINITY, sum = 0;
    int64_t i = 0;
    for (int j = 0; j < LANES; j++)
        many[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            many[j] = x[i + j] > many[j] ? x[i + j] : many[j];
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int j = 0; j < LANES; j++)
        most = many[j] > most ? many[j] : most;
    HN_SUM1(sum)
    for (i = 0; i < n; i++) {
        const double v = x[i] - most, e = HN_V(exp_share_f64)(v);
        y[i] = logs ? v : e;
        sum += e;
    }
    const double less = logs ? log(sum) : 0, part = logs ? 1 : 1 / sum;
    HN_IVDEP
    for (i = 0; i < n; i++)
        y[i] = (y[i] - less) * part;
}

/* Columns of x [n, inner], `width` of them: most and sum have a place for each. */
static HN_TARGET void HN_V(columns_softmax_f64)(double *y, const double *x, int64_t n, int64_t inner, int64_t width,
                                                double *most, double *sum, gboolean logs)
{
    for (int64_t i = 0; i < width; i++) {
        most[i] = -INFINITY;
        sum[i] = 0;
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < width; i++)
            most[i] = x[k * inner + i] > most[i] ? x[k * inner + i] : most[i];
    for (int64_t k = 0; k < n; k++) {
        const double *from = x + k * inner;
        double *to = y + k * inner;
        HN_IVDEP
        for (int64_t i = 0; i < width; i++) {
            const double v = from[i] - most[i], e = HN_V(exp_share_f64)(v);
            to[i] = logs ? v : e;
            sum[i] += e;
        }
    }
    for (int64_t i = 0; i < width; i++)
        sum[i] = logs ? log(sum[i]) : 1 / sum[i];
    for (int64_t k = 0; k < n; k++) {
        double *to = y + k * inner;
        HN_IVDEP
        for (int64_t i = 0; i < width; i++)
            to[i] = logs ? to[i] - sum[i] : to[i] * sum[i];
    }
}

#undef INLINE
#undef FMA64
