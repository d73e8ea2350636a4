/*
 * Winograd's transforms at one instruction level, for winograd.c. The lanes of a vector are neighbouring channels of
 * one pixel, so that all the arithmetic is between whole vectors. `some` lanes exist, 0: all.
 */
#include <float.h>

#include "cpu/core/vec.h"
#include "cpu/conv/winograd.h"

#define HN_FMA2 HN_JOIN(HN_FMA2, HN_LEVEL) /* of doubles */
#define HN_FMA2_plain(a, b, c) ((a) * (b) + (c))
#define HN_FMA2_avx2(a, b, c) __builtin_fma(a, b, c)
#define HN_FMA2_avx512(a, b, c) __builtin_fma(a, b, c)
#define ALWAYS static inline __attribute__((always_inline)) HN_TARGET
#define LOAD_SOME(p) (some == 0 ? HN_VLOAD(p) : HN_VLOAD_N(p, some))

/* Along one axis: INp takes the inputs of a tile to the values at p points, OUTp_m takes sums at p points to m outputs.
 * A and B are the points besides 0 and infinity, with either sign, of 6; those of 4 are 1 and -1; of 8 points 1/2,
 * 1, 2. */
#define A 0.625f
#define B 1.5f
#define IN6(t0, t1, t2, t3, t4, t5, d0, d1, d2, d3, d4, d5)                                    \
    {                                                                                          \
        const HN_VEC a = HN_VSET(A), a2 = HN_VSET(A * A), b = HN_VSET(B), b2 = HN_VSET(B * B); \
        const HN_VEC sum = HN_VSET(A * A + B * B), product = HN_VSET(A * A * B * B);           \
        const HN_VEC ae = HN_VFNMA(b2, d2, d4), ao = HN_VFNMA(b2, d1, d3);                     \
        const HN_VEC be = HN_VFNMA(a2, d2, d4), bo = HN_VFNMA(a2, d1, d3);                     \
        t0 = HN_VFMA(product, d0, HN_VFNMA(sum, d2, d4));                                      \
        t1 = HN_VFMA(a, ao, ae);                                                               \
        t2 = HN_VFNMA(a, ao, ae);                                                              \
        t3 = HN_VFMA(b, bo, be);                                                               \
        t4 = HN_VFNMA(b, bo, be);                                                              \
        t5 = HN_VFMA(product, d1, HN_VFNMA(sum, d3, d5));                                      \
    }
#define OUT6_4(y0, y1, y2, y3, m0, m1, m2, m3, m4, m5)                             \
    {                                                                              \
        const HN_VEC a = HN_VSET(A), a2 = HN_VSET(A * A), a3 = HN_VSET(A * A * A); \
        const HN_VEC b = HN_VSET(B), b2 = HN_VSET(B * B), b3 = HN_VSET(B * B * B); \
        const HN_VEC ae = m1 + m2, ao = m1 - m2, be = m3 + m4, bo = m3 - m4;       \
        y0 = m0 + (ae + be);                                                       \
        y1 = HN_VFMA(b, bo, a * ao);                                               \
        y2 = HN_VFMA(b2, be, a2 * ae);                                             \
        y3 = HN_VFMA(b3, bo, HN_VFMA(a3, ao, m5));                                 \
    }
#define OUT6_2(y0, y1, m0, m1, m2, m3, m4, m5)             \
    {                                                      \
        const HN_VEC a = HN_VSET(A), b = HN_VSET(B);       \
        y0 = m0 + ((m1 + m2) + (m3 + m4));                 \
        y1 = HN_VFMA(b, m3 - m4, HN_VFMA(a, m1 - m2, m5)); \
    }
#define IN8(t, d)                                                                                 \
    {                                                                                             \
        const HN_VEC h = HN_VSET(0.5f), two = HN_VSET(2), e = HN_VSET(1.25f), f = HN_VSET(4.25f); \
        const HN_VEC g = HN_VSET(5), k = HN_VSET(4), q = HN_VSET(0.25f), s = HN_VSET(5.25f);      \
        const HN_VEC he = HN_VFMA(k, d[2], HN_VFNMA(g, d[4], d[6]));                              \
        const HN_VEC ho = HN_VFMA(k, d[1], HN_VFNMA(g, d[3], d[5]));                              \
        const HN_VEC oe = d[2] + HN_VFNMA(f, d[4], d[6]), oo = d[1] + HN_VFNMA(f, d[3], d[5]);    \
        const HN_VEC te = HN_VFMA(q, d[2], HN_VFNMA(e, d[4], d[6]));                              \
        const HN_VEC to = HN_VFMA(q, d[1], HN_VFNMA(e, d[3], d[5]));                              \
        t[0] = HN_VFMA(s, d[2] - d[4], d[6] - d[0]);                                              \
        t[1] = HN_VFMA(h, ho, he);                                                                \
        t[2] = HN_VFNMA(h, ho, he);                                                               \
        t[3] = oe + oo;                                                                           \
        t[4] = oe - oo;                                                                           \
        t[5] = HN_VFMA(two, to, te);                                                              \
        t[6] = HN_VFNMA(two, to, te);                                                             \
        t[7] = HN_VFMA(s, d[3] - d[5], d[7] - d[1]);                                              \
    }
/* The first 2 or 4 outputs; the last one has the point at infinity, too. */
#define OUT8_2(y, m)                                                                   \
    {                                                                                  \
        const HN_VEC h = HN_VSET(0.5f), two = HN_VSET(2);                              \
        y[0] = m[0] + ((m[1] + m[2]) + (m[3] + m[4]) + (m[5] + m[6]));                 \
        y[1] = HN_VFMA(two, m[5] - m[6], HN_VFMA(h, m[1] - m[2], m[3] - m[4])) + m[7]; \
    }
#define OUT8_4(y, m)                                                                         \
    {                                                                                        \
        const HN_VEC h = HN_VSET(0.5f), q = HN_VSET(0.25f), e = HN_VSET(0.125f);             \
        const HN_VEC two = HN_VSET(2), four = HN_VSET(4), eight = HN_VSET(8);                \
        const HN_VEC he = m[1] + m[2], ho = m[1] - m[2], oe = m[3] + m[4], oo = m[3] - m[4]; \
        const HN_VEC te = m[5] + m[6], to = m[5] - m[6];                                     \
        y[0] = m[0] + (he + oe + te);                                                        \
        y[1] = HN_VFMA(two, to, HN_VFMA(h, ho, oo));                                         \
        y[2] = HN_VFMA(four, te, HN_VFMA(q, he, oe));                                        \
        y[3] = HN_VFMA(eight, to, HN_VFMA(e, ho, oo)) + m[7];                                \
    }
#define IN4(t0, t1, t2, t3, d0, d1, d2, d3) \
    {                                       \
        t0 = d2 - d0;                       \
        t1 = d2 + d1;                       \
        t2 = d2 - d1;                       \
        t3 = d3 - d1;                       \
    }
#define OUT4_2(y0, y1, m0, m1, m2, m3) \
    {                                  \
        y0 = m0 + (m1 + m2);           \
        y1 = (m1 - m2) + m3;           \
    }

ALWAYS void HN_V(in6_at)(float *v, int64_t plane, const float *const *x, int64_t c, int some)
{
    HN_VEC t[6][6];
    for (int j = 0; j < 6; j++) {
        const HN_VEC d0 = LOAD_SOME(x[j] + c), d1 = LOAD_SOME(x[6 + j] + c), d2 = LOAD_SOME(x[12 + j] + c);
        const HN_VEC d3 = LOAD_SOME(x[18 + j] + c), d4 = LOAD_SOME(x[24 + j] + c), d5 = LOAD_SOME(x[30 + j] + c);
        IN6(t[0][j], t[1][j], t[2][j], t[3][j], t[4][j], t[5][j], d0, d1, d2, d3, d4, d5)
    }
    v += c;
    for (int i = 0; i < 6; i++, v += 6 * plane) {
        HN_VEC r0, r1, r2, r3, r4, r5;
        IN6(r0, r1, r2, r3, r4, r5, t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5])
        HN_VSTORE(v, r0);
        HN_VSTORE(v + plane, r1);
        HN_VSTORE(v + 2 * plane, r2);
        HN_VSTORE(v + 3 * plane, r3);
        HN_VSTORE(v + 4 * plane, r4);
        HN_VSTORE(v + 5 * plane, r5);
    }
}

ALWAYS void HN_V(in4_at)(float *v, int64_t plane, const float *const *x, int64_t c, int some)
{
    HN_VEC t[4][4];
    for (int j = 0; j < 4; j++) {
        const HN_VEC d0 = LOAD_SOME(x[j] + c), d1 = LOAD_SOME(x[4 + j] + c);
        const HN_VEC d2 = LOAD_SOME(x[8 + j] + c), d3 = LOAD_SOME(x[12 + j] + c);
        IN4(t[0][j], t[1][j], t[2][j], t[3][j], d0, d1, d2, d3)
    }
    v += c;
    for (int i = 0; i < 4; i++, v += 4 * plane) {
        HN_VEC r0, r1, r2, r3;
        IN4(r0, r1, r2, r3, t[i][0], t[i][1], t[i][2], t[i][3])
        HN_VSTORE(v, r0);
        HN_VSTORE(v + plane, r1);
        HN_VSTORE(v + 2 * plane, r2);
        HN_VSTORE(v + 3 * plane, r3);
    }
}

/* Tiles along one axis: side inputs d. */
ALWAYS void HN_V(in_line_at)(float *v, int64_t plane, const float *const *x, int64_t c, int some, const int side)
{
    HN_VEC d[8], t[8];
    for (int j = 0; j < side; j++)
        d[j] = LOAD_SOME(x[j] + c);
    if (side == 6)
        IN6(t[0], t[1], t[2], t[3], t[4], t[5], d[0], d[1], d[2], d[3], d[4], d[5])
    else
        IN8(t, d)
    for (int j = 0; j < side; j++)
        HN_VSTORE(v + j * plane + c, t[j]);
}

ALWAYS void HN_V(in_line6_at)(float *v, int64_t plane, const float *const *x, int64_t c, int some)
{
    HN_V(in_line_at)(v, plane, x, c, some, 6);
}

ALWAYS void HN_V(in_line8_at)(float *v, int64_t plane, const float *const *x, int64_t c, int some)
{
    HN_V(in_line_at)(v, plane, x, c, some, 8);
}

#define IN_OF(name)                                                                             \
    static HN_TARGET void HN_V(name)(float *v, int64_t plane, const float *const *x, int64_t n) \
    {                                                                                           \
        int64_t c = 0;                                                                          \
        for (; c + HN_LANES <= n; c += HN_LANES)                                                \
            HN_V(name##_at)(v, plane, x, c, 0);                                                 \
        if (c < n)                                                                              \
            HN_V(name##_at)(v, plane, x, c, (int)(n - c));                                      \
    }
IN_OF(in4)
IN_OF(in6)
IN_OF(in_line6)
IN_OF(in_line8)

ALWAYS void HN_V(pixel)(const HnWinogradOut *o, int i, int j, int64_t c, HN_VEC v, int some)
{
    float *y = o->y + i * o->y_row + j * o->y_pitch + c;
    v = HN_VFMA(v, HN_VLOAD(o->scale + c), HN_VLOAD(o->shift + c));
    if (o->add != NULL)
        v = v + LOAD_SOME(o->add + i * o->add_row + j * o->add_pitch + c);
    v = HN_VMIN(HN_VSET(o->hi), HN_VMAX(HN_VSET(o->lo), v));
    if (some == 0)
        HN_VSTORE(y, v);
    else
        HN_VSTORE_N(y, v, some);
}

/* Behind the last channel lies what others left, small integers even, which are very slow to compute with as floats. */
ALWAYS void HN_V(out6_4_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    HN_VEC t[4][6];
    const float *m = o->m + c;
    const int64_t plane = o->plane;
    for (int j = 0; j < 6; j++, m += plane) {
        const HN_VEC m0 = LOAD_SOME(m), m1 = LOAD_SOME(m + 6 * plane), m2 = LOAD_SOME(m + 12 * plane),
                     m3 = LOAD_SOME(m + 18 * plane);
        const HN_VEC m4 = LOAD_SOME(m + 24 * plane), m5 = LOAD_SOME(m + 30 * plane);
        OUT6_4(t[0][j], t[1][j], t[2][j], t[3][j], m0, m1, m2, m3, m4, m5)
    }
    for (int i = 0; i < rows; i++) {
        HN_VEC y0, y1, y2, y3;
        OUT6_4(y0, y1, y2, y3, t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5])
        HN_V(pixel)(o, i, 0, c, y0, some);
        if (cols > 1)
            HN_V(pixel)(o, i, 1, c, y1, some);
        if (cols > 2)
            HN_V(pixel)(o, i, 2, c, y2, some);
        if (cols > 3)
            HN_V(pixel)(o, i, 3, c, y3, some);
    }
}

ALWAYS void HN_V(out4_2_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    HN_VEC t[2][4];
    const float *m = o->m + c;
    const int64_t plane = o->plane;
    for (int j = 0; j < 4; j++, m += plane) {
        const HN_VEC m0 = LOAD_SOME(m), m1 = LOAD_SOME(m + 4 * plane), m2 = LOAD_SOME(m + 8 * plane),
                     m3 = LOAD_SOME(m + 12 * plane);
        OUT4_2(t[0][j], t[1][j], m0, m1, m2, m3)
    }
    for (int i = 0; i < rows; i++) {
        HN_VEC y0, y1;
        OUT4_2(y0, y1, t[i][0], t[i][1], t[i][2], t[i][3])
        HN_V(pixel)(o, i, 0, c, y0, some);
        if (cols > 1)
            HN_V(pixel)(o, i, 1, c, y1, some);
    }
}

ALWAYS void HN_V(out6_2_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    HN_VEC t[2][6];
    const float *m = o->m + c;
    const int64_t plane = o->plane;
    for (int j = 0; j < 6; j++, m += plane) {
        const HN_VEC m0 = LOAD_SOME(m), m1 = LOAD_SOME(m + 6 * plane), m2 = LOAD_SOME(m + 12 * plane),
                     m3 = LOAD_SOME(m + 18 * plane);
        const HN_VEC m4 = LOAD_SOME(m + 24 * plane), m5 = LOAD_SOME(m + 30 * plane);
        OUT6_2(t[0][j], t[1][j], m0, m1, m2, m3, m4, m5)
    }
    for (int i = 0; i < rows; i++) {
        HN_VEC y0, y1;
        OUT6_2(y0, y1, t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5])
        HN_V(pixel)(o, i, 0, c, y0, some);
        if (cols > 1)
            HN_V(pixel)(o, i, 1, c, y1, some);
    }
}

/* Tiles along one axis: `edge` outputs of sums at `side` points. */
ALWAYS void HN_V(out_line_at)(const HnWinogradOut *o, int64_t c, int some, int cols, const int side, const int edge)
{
    HN_VEC m[8], y[4];
    for (int j = 0; j < side; j++)
        m[j] = LOAD_SOME(o->m + j * o->plane + c);
    if (side == 6)
        OUT6_4(y[0], y[1], y[2], y[3], m[0], m[1], m[2], m[3], m[4], m[5])
    else if (edge == 4)
        OUT8_4(y, m)
    else
        OUT8_2(y, m)
    for (int j = 0; j < edge && j < cols; j++)
        HN_V(pixel)(o, 0, j, c, y[j], some);
}

ALWAYS void HN_V(out_line6_4_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    (void)rows;
    HN_V(out_line_at)(o, c, some, cols, 6, 4);
}

ALWAYS void HN_V(out_line8_4_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    (void)rows;
    HN_V(out_line_at)(o, c, some, cols, 8, 4);
}

ALWAYS void HN_V(out_line8_2_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    (void)rows;
    HN_V(out_line_at)(o, c, some, cols, 8, 2);
}

#define OUT_OF(name, down, across)                                       \
    static HN_TARGET void HN_V(name)(const HnWinogradOut *o)             \
    {                                                                    \
        const gboolean whole = o->rows == (down) && o->cols == (across); \
        int64_t c = 0;                                                   \
        for (; whole && c + HN_LANES <= o->n; c += HN_LANES)             \
            HN_V(name##_at)(o, c, 0, down, across);                      \
        for (; c + HN_LANES <= o->n; c += HN_LANES)                      \
            HN_V(name##_at)(o, c, 0, o->rows, o->cols);                  \
        if (c < o->n)                                                    \
            HN_V(name##_at)(o, c, (int)(o->n - c), o->rows, o->cols);    \
    }
OUT_OF(out4_2, 2, 2)
OUT_OF(out6_4, 4, 4)
OUT_OF(out6_2, 2, 2)
OUT_OF(out_line6_4, 1, 4)
OUT_OF(out_line8_4, 1, 4)
OUT_OF(out_line8_2, 1, 2)

/* The weights of a panel's columns for one input channel, whose number is that of two vectors: down the columns in
 * double, along the rows in float. */
ALWAYS void HN_V(taps_of)(float *u, int64_t plane, const float *k, const double *g, int side, const int n)
{
    enum { N = 2 * HN_LANES };
    double wide[5 * 5 * N];
    for (int j = 0; j < n * n * N; j++)
        wide[j] = (double)k[j];
    for (int a = 0; a < side; a++) {
        float half[5 * N];
        const double *down = g + a * n;
        for (int j = 0; j < n * N; j++) {
            double sum = down[0] * wide[j];
            HN_UNROLL
            for (int i = 1; i < n; i++)
                sum = HN_FMA2(down[i], wide[i * n * N + j], sum);
            half[j] = (float)sum;
        }
        for (int b = 0; b < side; b++, u += plane) {
            float by[5];
            for (int i = 0; i < n; i++)
                by[i] = (float)g[b * n + i];
            for (int j = 0; j < N; j++) {
                float v = by[0] * half[j];
                HN_UNROLL
                for (int i = 1; i < n; i++)
                    v = HN_FMA(by[i], half[i * N + j], v);
                u[j] = __builtin_fabsf(v) < FLT_MIN ? 0 : v; /* NaN stays */
            }
        }
    }
}

static HN_TARGET void HN_V(taps3)(float *u, int64_t plane, const float *k, const double *g, int side, int n)
{
    (void)n;
    HN_V(taps_of)(u, plane, k, g, side, 3);
}

static HN_TARGET void HN_V(taps5)(float *u, int64_t plane, const float *k, const double *g, int side, int n)
{
    (void)n;
    HN_V(taps_of)(u, plane, k, g, side, 5);
}

/* n taps along one axis */
static HN_TARGET void HN_V(taps_line)(float *u, int64_t plane, const float *k, const double *g, int side, int n)
{
    enum { N = 2 * HN_LANES };
    for (int a = 0; a < side; a++, u += plane, g += n)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int i = 0; i < n; i++)
                sum = HN_FMA2(g[i], (double)k[i * N + j], sum);
            const float v = (float)sum;
            u[j] = __builtin_fabsf(v) < FLT_MIN ? 0 : v;
        }
}

#undef ALWAYS
#undef HN_FMA2
#undef LOAD_SOME
#undef A
#undef B
#undef IN4
#undef IN6
#undef IN8
#undef IN_OF
#undef OUT4_2
#undef OUT6_2
#undef OUT6_4
#undef OUT8_2
#undef OUT8_4
#undef OUT_OF
