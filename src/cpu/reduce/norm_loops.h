/*
 * Rows of the normalisations and of Softmax, for norm.c and softmax.c at one instruction level. Sums are of four
 * vectors at a time, so that additions do not wait for one another.
 */
#include <glib.h>
#include <math.h>
#include <stdint.h>

#include "cpu/reduce/norm.h"
#include "cpu/core/vec.h"
#include "cpu/core/vecexp.h"
#include "cpu/core/vecmath.h"

static HN_TARGET float HN_V(row_sum)(const float *x, int64_t n)
{
    HN_VEC a = HN_VSET(0), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * HN_LANES <= n; i += 4 * HN_LANES) {
        a = HN_VADD(a, HN_VLOAD(x + i));
        b = HN_VADD(b, HN_VLOAD(x + i + HN_LANES));
        c = HN_VADD(c, HN_VLOAD(x + i + 2 * HN_LANES));
        d = HN_VADD(d, HN_VLOAD(x + i + 3 * HN_LANES));
    }
    for (; i + HN_LANES <= n; i += HN_LANES)
        a = HN_VADD(a, HN_VLOAD(x + i));
    if (i < n)
        b = HN_VADD(b, HN_VLOAD_N(x + i, (int)(n - i)));
    return HN_VSUM(HN_VADD(HN_VADD(a, b), HN_VADD(c, d)));
}

/* Sum of (x - mean)^2 */
static HN_TARGET float HN_V(row_squares)(const float *x, int64_t n, float mean)
{
    const HN_VEC less = HN_VSET(-mean);
    HN_VEC a = HN_VSET(0), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * HN_LANES <= n; i += 4 * HN_LANES) {
        const HN_VEC u = HN_VADD(HN_VLOAD(x + i), less), v = HN_VADD(HN_VLOAD(x + i + HN_LANES), less);
        const HN_VEC w = HN_VADD(HN_VLOAD(x + i + 2 * HN_LANES), less);
        const HN_VEC z = HN_VADD(HN_VLOAD(x + i + 3 * HN_LANES), less);
        a = HN_VFMA(u, u, a);
        b = HN_VFMA(v, v, b);
        c = HN_VFMA(w, w, c);
        d = HN_VFMA(z, z, d);
    }
    for (; i + HN_LANES <= n; i += HN_LANES) {
        const HN_VEC u = HN_VADD(HN_VLOAD(x + i), less);
        a = HN_VFMA(u, u, a);
    }
    if (i < n) {
        const HN_VEC u = HN_VADD(HN_VLOAD_N(x + i, (int)(n - i)), HN_VFIRST(less, (int)(n - i)));
        b = HN_VFMA(u, u, b);
    }
    return HN_VSUM(HN_VADD(HN_VADD(a, b), HN_VADD(c, d)));
}

/* y = (x - mean) * inv * w + b; b may be NULL, and w where b is */
static HN_TARGET void HN_V(row_scale)(float *y, const float *x, int64_t n, float mean, float inv, const float *w,
                                      const float *b)
{
    if (w == NULL) {
        HN_IVDEP
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * inv;
        return;
    }
    if (b == NULL) {
        HN_IVDEP
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * inv * w[i];
        return;
    }
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = HN_FMA((x[i] - mean) * inv, w[i], b[i]);
}

#define NORM_ROWS 4 /* rows at a time: their sums do not wait for one another */

/* row_sum(), row_squares() and row_scale() of `many` <= NORM_ROWS rows, which stay in registers; `whole` vectors and
 * the rest are constants after inlining. mean and inv: a place for each row. */
static inline __attribute__((always_inline)) HN_TARGET void
HN_V(few_norms)(float *y, const float *x, int64_t n, const int many, const int whole, float epsilon, gboolean centre,
                const float *w, const float *b, float *mean, float *inv)
{
    const int rest = (int)n - whole * HN_LANES;
    HN_VEC v[NORM_ROWS][4];
    HN_UNROLL
    for (int r = 0; r < many; r++) {
        HN_VEC sum = HN_VSET(0);
        HN_UNROLL
        for (int k = 0; k < whole; k++) {
            v[r][k] = HN_VLOAD(x + r * n + k * HN_LANES);
            sum = HN_VADD(sum, v[r][k]);
        }
        v[r][whole] = rest > 0 ? HN_VLOAD_N(x + r * n + whole * HN_LANES, rest) : HN_VSET(0);
        mean[r] = centre ? HN_VSUM(HN_VADD(sum, v[r][whole])) / (float)n : 0;
    }
    HN_UNROLL
    for (int r = 0; r < many; r++) {
        const HN_VEC less = HN_VSET(-mean[r]);
        HN_VEC sum = HN_VSET(0);
        HN_UNROLL
        for (int k = 0; k < whole; k++) {
            v[r][k] = HN_VADD(v[r][k], less);
            sum = HN_VFMA(v[r][k], v[r][k], sum);
        }
        if (rest > 0)
            v[r][whole] = HN_VADD(v[r][whole], HN_VFIRST(less, rest));
        inv[r] = HN_VSUM(HN_VFMA(v[r][whole], v[r][whole], sum)) / (float)n + epsilon;
    }
    for (int r = 0; r < many; r++)
        inv[r] = 1.0f / sqrtf(inv[r]);
    HN_UNROLL
    for (int k = 0; k <= whole; k++) {
        const int64_t at = k * HN_LANES;
        if (k == whole && rest == 0)
            break;
        const HN_VEC factor = w == NULL ? HN_VSET(1) : k < whole ? HN_VLOAD(w + at) : HN_VLOAD_N(w + at, rest);
        const HN_VEC shift = b == NULL ? HN_VSET(0) : k < whole ? HN_VLOAD(b + at) : HN_VLOAD_N(b + at, rest);
        HN_UNROLL
        for (int r = 0; r < many; r++) {
            const HN_VEC u = HN_VFMA(HN_VMUL(v[r][k], HN_VSET(inv[r])), factor, shift);
            if (k < whole)
                HN_VSTORE(y + r * n + at, u);
            else
                HN_VSTORE_N(y + r * n + at, u, rest);
        }
    }
}

/* Normalization of rows of n < 4 * HN_LANES elements. means and invs: of each row, or NULL. */
static HN_TARGET void HN_V(short_norm)(float *y, const float *x, int64_t n, int64_t rows, float epsilon,
                                       gboolean centre, const float *w, const float *b, float *means, float *invs)
{
    float mean[NORM_ROWS], inv[NORM_ROWS];
    for (int64_t i = 0, many; i < rows; i += many) {
        many = rows - i >= NORM_ROWS ? NORM_ROWS : 1;
#define NORMS(whole)                                                                               \
    {                                                                                              \
        if (many > 1)                                                                              \
            HN_V(few_norms)                                                                        \
        (y + i * n, x + i * n, n, NORM_ROWS, whole, epsilon, centre, w, b, mean, inv);             \
        else HN_V(few_norms)(y + i * n, x + i * n, n, 1, whole, epsilon, centre, w, b, mean, inv); \
        break;                                                                                     \
    }
        switch (n / HN_LANES) {
        case 0:
            NORMS(0)
        case 1:
            NORMS(1)
        case 2:
            NORMS(2)
        default:
            NORMS(3)
        }
#undef NORMS
        for (int64_t r = 0; r < many; r++) {
            if (means != NULL)
                means[i + r] = mean[r];
            if (invs != NULL)
                invs[i + r] = inv[r];
        }
    }
}
#undef NORM_ROWS

/* y = x * a + b */
static HN_TARGET void HN_V(row_affine)(float *y, const float *x, int64_t n, float a, float b)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = HN_FMA(x[i], a, b);
}

static HN_TARGET float HN_V(row_max)(const float *x, int64_t n)
{
    HN_VEC a = HN_VSET(-INFINITY), b = a;
    int64_t i = 0;
    for (; i + 2 * HN_LANES <= n; i += 2 * HN_LANES) {
        a = HN_VMAX(HN_VLOAD(x + i), a);
        b = HN_VMAX(HN_VLOAD(x + i + HN_LANES), b);
    }
    if (i + HN_LANES <= n) {
        a = HN_VMAX(HN_VLOAD(x + i), a);
        i += HN_LANES;
    }
    float most = HN_VMOST(HN_VMAX(a, b));
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* y = e^(x - max); their sum */
static HN_TARGET float HN_V(row_exp)(float *y, const float *x, int64_t n, float max)
{
    const HN_VEC less = HN_VSET(max);
    HN_VEC a = HN_VSET(0), b = a;
    int64_t i = 0;
    for (; i + 2 * HN_LANES <= n; i += 2 * HN_LANES) {
        const HN_VEC u = HN_V(vec_exp_share)(HN_VLOAD(x + i) - less);
        const HN_VEC v = HN_V(vec_exp_share)(HN_VLOAD(x + i + HN_LANES) - less);
        HN_VSTORE(y + i, u);
        HN_VSTORE(y + i + HN_LANES, v);
        a = HN_VADD(a, u);
        b = HN_VADD(b, v);
    }
    if (i + HN_LANES <= n) {
        const HN_VEC u = HN_V(vec_exp_share)(HN_VLOAD(x + i) - less);
        HN_VSTORE(y + i, u);
        a = HN_VADD(a, u);
        i += HN_LANES;
    }
    if (i < n) {
        const int tail = (int)(n - i);
        const HN_VEC v = HN_VFIRST(HN_V(vec_exp_share)(HN_VLOAD_N(x + i, tail) - less), tail);
        HN_VSTORE_N(y + i, v, tail);
        b = HN_VADD(b, v);
    }
    return HN_VSUM(HN_VADD(a, b));
}

/* The sum alone */
static HN_TARGET float HN_V(row_exp_sum)(const float *x, int64_t n, float max)
{
    const HN_VEC less = HN_VSET(max);
    HN_VEC a = HN_VSET(0), b = a;
    int64_t i = 0;
    for (; i + 2 * HN_LANES <= n; i += 2 * HN_LANES) {
        a = a + HN_V(vec_exp_share)(HN_VLOAD(x + i) - less);
        b = b + HN_V(vec_exp_share)(HN_VLOAD(x + i + HN_LANES) - less);
    }
    if (i + HN_LANES <= n) {
        a = a + HN_V(vec_exp_share)(HN_VLOAD(x + i) - less);
        i += HN_LANES;
    }
    if (i < n) {
        const int tail = (int)(n - i);
        b = b + HN_VFIRST(HN_V(vec_exp_share)(HN_VLOAD_N(x + i, tail) - less), tail);
    }
    return HN_VSUM(a + b);
}

static HN_TARGET void HN_V(row_log_share)(float *y, const float *x, int64_t n, float max, float log_sum)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - max - log_sum;
}

/* The vectors of a row of `width`, and the rest. */
#define DOWN(ROW)                                \
    int64_t i = 0;                               \
    for (; i + HN_LANES <= width; i += HN_LANES) \
        ROW(HN_VLOAD, HN_VSTORE)                 \
    if (i < width) {                             \
        const int rest = (int)(width - i);       \
        ROW(LOAD_REST, STORE_REST)               \
    }
#define LOAD_REST(p) HN_VLOAD_N(p, rest)
#define STORE_REST(p, v) HN_VSTORE_N(p, v, rest)

/* sum[width] of the columns of x [n, width] */
static HN_TARGET void HN_V(down_sum)(float *sum, const float *x, int64_t n, int64_t width)
{
#define ROW(LOAD, STORE)                                \
    {                                                   \
        const float *from = x + i;                      \
        HN_VEC a = HN_VSET(0), b = a;                   \
        int64_t k = 0;                                  \
        for (; k + 2 <= n; k += 2, from += 2 * width) { \
            a = HN_VADD(a, LOAD(from));                 \
            b = HN_VADD(b, LOAD(from + width));         \
        }                                               \
        if (k < n)                                      \
            a = HN_VADD(a, LOAD(from));                 \
        a = HN_VADD(a, b);                              \
        STORE(sum + i, a);                              \
    }
    DOWN(ROW)
#undef ROW
}

/* The same of (x - mean[width])^2 */
static HN_TARGET void HN_V(down_squares)(float *sum, const float *x, int64_t n, int64_t width, const float *mean)
{
#define ROW(LOAD, STORE)                                          \
    {                                                             \
        const float *from = x + i;                                \
        const HN_VEC less = HN_VMUL(LOAD(mean + i), HN_VSET(-1)); \
        HN_VEC a = HN_VSET(0), b = a;                             \
        int64_t k = 0;                                            \
        for (; k + 2 <= n; k += 2, from += 2 * width) {           \
            const HN_VEC u = HN_VADD(LOAD(from), less);           \
            const HN_VEC v = HN_VADD(LOAD(from + width), less);   \
            a = HN_VFMA(u, u, a);                                 \
            b = HN_VFMA(v, v, b);                                 \
        }                                                         \
        if (k < n) {                                              \
            const HN_VEC u = HN_VADD(LOAD(from), less);           \
            a = HN_VFMA(u, u, a);                                 \
        }                                                         \
        a = HN_VADD(a, b);                                        \
        STORE(sum + i, a);                                        \
    }
    DOWN(ROW)
#undef ROW
}

/* y = x * a[width] + b[width] */
static HN_TARGET void HN_V(down_affine)(float *y, const float *x, int64_t n, int64_t width, const float *a,
                                        const float *b)
{
#define ROW(LOAD, STORE)                                                      \
    {                                                                         \
        const HN_VEC factor = LOAD(a + i), shift = LOAD(b + i);               \
        for (int64_t k = 0; k < n; k++) {                                     \
            const HN_VEC v = HN_VFMA(LOAD(x + k * width + i), factor, shift); \
            STORE(y + k * width + i, v);                                      \
        }                                                                     \
    }
    DOWN(ROW)
#undef ROW
}
#undef DOWN
#undef LOAD_REST
#undef STORE_REST

/* Columns of x [n, inner], `width` of them: most and sum have a place for each. */
static HN_TARGET void HN_V(columns_softmax)(float *y, const float *x, int64_t n, int64_t inner, int64_t width,
                                            float *most, float *sum, gboolean logs)
{
    for (int64_t i = 0; i < width; i++) {
        most[i] = -INFINITY;
        sum[i] = 0;
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < width; i++)
            most[i] = x[k * inner + i] > most[i] ? x[k * inner + i] : most[i];
    for (int64_t k = 0; k < n; k++) {
        const float *from = x + k * inner;
        float *to = y + k * inner;
        HN_IVDEP
        for (int64_t i = 0; i < width; i++) {
            const float v = from[i] - most[i], e = HN_V(exp_share)(v);
            to[i] = logs ? v : e;
            sum[i] += e;
        }
    }
    for (int64_t i = 0; i < width; i++)
        sum[i] = logs ? HN_V(log)(sum[i]) : 1.0f / sum[i];
    for (int64_t k = 0; k < n; k++) {
        float *to = y + k * inner;
        HN_IVDEP
        for (int64_t i = 0; i < width; i++)
            to[i] = logs ? to[i] - sum[i] : to[i] * sum[i];
    }
}

/* Rows of n elements, `many` of them, as the columns of t [n][HN_SHORT_ROWS], and back. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(stand)(float *restrict t, const float *restrict x,
                                                                        int64_t n, int64_t many)
{
    for (int64_t i = 0; i < many; i++)
        for (int64_t k = 0; k < n; k++)
            t[k * HN_SHORT_ROWS + i] = x[i * n + k];
}

static inline __attribute__((always_inline)) HN_TARGET void HN_V(lay)(float *restrict y, const float *restrict t,
                                                                      int64_t n, int64_t many)
{
    for (int64_t i = 0; i < many; i++)
        for (int64_t k = 0; k < n; k++)
            y[i * n + k] = t[k * HN_SHORT_ROWS + i];
}

/* Softmax of short rows: a vector is the same element of many rows. */
static HN_TARGET void HN_V(short_softmax)(float *y, const float *x, int64_t n, int64_t rows, gboolean logs)
{
    float t[HN_SHORT * HN_SHORT_ROWS], most[HN_SHORT_ROWS], sum[HN_SHORT_ROWS];
    for (int64_t i = 0; i < rows; i += HN_SHORT_ROWS) {
        const int64_t many = MIN(HN_SHORT_ROWS, rows - i);
#define TURNED(N)                                                         \
    HN_V(stand)(t, x + i * n, N, many);                                   \
    HN_V(columns_softmax)(t, t, N, HN_SHORT_ROWS, many, most, sum, logs); \
    HN_V(lay)(y + i * n, t, N, many);                                     \
    break;
        switch (n) { /* constants make vectors of the two loops */
        case 2:
            TURNED(2)
        case 3:
            TURNED(3)
        case 4:
            TURNED(4)
        default:
            TURNED(n)
        }
#undef TURNED
    }
}
