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

/* Along one axis: IN takes the inputs of a tile to the values at the points, OUT takes sums at the points to outputs.
 * A and B are the points of F(4x4, 3x3) besides 0 and infinity, with either sign; those of F(2x2, 3x3) are 1 and -1. */
#define A 0.625f
#define B 1.5f
#define IN4(t0, t1, t2, t3, t4, t5, d0, d1, d2, d3, d4, d5)                                    \
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
#define OUT4(y0, y1, y2, y3, m0, m1, m2, m3, m4, m5)                               \
    {                                                                              \
        const HN_VEC a = HN_VSET(A), a2 = HN_VSET(A * A), a3 = HN_VSET(A * A * A); \
        const HN_VEC b = HN_VSET(B), b2 = HN_VSET(B * B), b3 = HN_VSET(B * B * B); \
        const HN_VEC ae = m1 + m2, ao = m1 - m2, be = m3 + m4, bo = m3 - m4;       \
        y0 = m0 + (ae + be);                                                       \
        y1 = HN_VFMA(b, bo, a * ao);                                               \
        y2 = HN_VFMA(b2, be, a2 * ae);                                             \
        y3 = HN_VFMA(b3, bo, HN_VFMA(a3, ao, m5));                                 \
    }
#define IN2(t0, t1, t2, t3, d0, d1, d2, d3) \
    {                                       \
        t0 = d2 - d0;                       \
        t1 = d2 + d1;                       \
        t2 = d2 - d1;                       \
        t3 = d3 - d1;                       \
    }
#define OUT2(y0, y1, m0, m1, m2, m3) \
    {                                \
        y0 = m0 + (m1 + m2);         \
        y1 = (m1 - m2) + m3;         \
    }

ALWAYS void HN_V(in4_at)(float *v, int64_t plane, const float *const *x, int64_t c, int some)
{
    HN_VEC t[6][6];
    for (int j = 0; j < 6; j++) {
        const HN_VEC d0 = LOAD_SOME(x[j] + c), d1 = LOAD_SOME(x[6 + j] + c), d2 = LOAD_SOME(x[12 + j] + c);
        const HN_VEC d3 = LOAD_SOME(x[18 + j] + c), d4 = LOAD_SOME(x[24 + j] + c), d5 = LOAD_SOME(x[30 + j] + c);
        IN4(t[0][j], t[1][j], t[2][j], t[3][j], t[4][j], t[5][j], d0, d1, d2, d3, d4, d5)
    }
    v += c;
    for (int i = 0; i < 6; i++, v += 6 * plane) {
        HN_VEC r0, r1, r2, r3, r4, r5;
        IN4(r0, r1, r2, r3, r4, r5, t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5])
        HN_VSTORE(v, r0);
        HN_VSTORE(v + plane, r1);
        HN_VSTORE(v + 2 * plane, r2);
        HN_VSTORE(v + 3 * plane, r3);
        HN_VSTORE(v + 4 * plane, r4);
        HN_VSTORE(v + 5 * plane, r5);
    }
}

ALWAYS void HN_V(in2_at)(float *v, int64_t plane, const float *const *x, int64_t c, int some)
{
    HN_VEC t[4][4];
    for (int j = 0; j < 4; j++) {
        const HN_VEC d0 = LOAD_SOME(x[j] + c), d1 = LOAD_SOME(x[4 + j] + c);
        const HN_VEC d2 = LOAD_SOME(x[8 + j] + c), d3 = LOAD_SOME(x[12 + j] + c);
        IN2(t[0][j], t[1][j], t[2][j], t[3][j], d0, d1, d2, d3)
    }
    v += c;
    for (int i = 0; i < 4; i++, v += 4 * plane) {
        HN_VEC r0, r1, r2, r3;
        IN2(r0, r1, r2, r3, t[i][0], t[i][1], t[i][2], t[i][3])
        HN_VSTORE(v, r0);
        HN_VSTORE(v + plane, r1);
        HN_VSTORE(v + 2 * plane, r2);
        HN_VSTORE(v + 3 * plane, r3);
    }
}

static HN_TARGET void HN_V(in4)(float *v, int64_t plane, const float *const *x, int64_t n)
{
    int64_t c = 0;
    for (; c + HN_LANES <= n; c += HN_LANES)
        HN_V(in4_at)(v, plane, x, c, 0);
    if (c < n)
        HN_V(in4_at)(v, plane, x, c, (int)(n - c));
}

static HN_TARGET void HN_V(in2)(float *v, int64_t plane, const float *const *x, int64_t n)
{
    int64_t c = 0;
    for (; c + HN_LANES <= n; c += HN_LANES)
        HN_V(in2_at)(v, plane, x, c, 0);
    if (c < n)
        HN_V(in2_at)(v, plane, x, c, (int)(n - c));
}

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
ALWAYS void HN_V(out4_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    HN_VEC t[4][6];
    const float *m = o->m + c;
    const int64_t plane = o->plane;
    for (int j = 0; j < 6; j++, m += plane) {
        const HN_VEC m0 = LOAD_SOME(m), m1 = LOAD_SOME(m + 6 * plane), m2 = LOAD_SOME(m + 12 * plane),
                     m3 = LOAD_SOME(m + 18 * plane);
        const HN_VEC m4 = LOAD_SOME(m + 24 * plane), m5 = LOAD_SOME(m + 30 * plane);
        OUT4(t[0][j], t[1][j], t[2][j], t[3][j], m0, m1, m2, m3, m4, m5)
    }
    for (int i = 0; i < rows; i++) {
        HN_VEC y0, y1, y2, y3;
        OUT4(y0, y1, y2, y3, t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5])
        HN_V(pixel)(o, i, 0, c, y0, some);
        if (cols > 1)
            HN_V(pixel)(o, i, 1, c, y1, some);
        if (cols > 2)
            HN_V(pixel)(o, i, 2, c, y2, some);
        if (cols > 3)
            HN_V(pixel)(o, i, 3, c, y3, some);
    }
}

ALWAYS void HN_V(out2_at)(const HnWinogradOut *o, int64_t c, int some, int rows, int cols)
{
    HN_VEC t[2][4];
    const float *m = o->m + c;
    const int64_t plane = o->plane;
    for (int j = 0; j < 4; j++, m += plane) {
        const HN_VEC m0 = LOAD_SOME(m), m1 = LOAD_SOME(m + 4 * plane), m2 = LOAD_SOME(m + 8 * plane),
                     m3 = LOAD_SOME(m + 12 * plane);
        OUT2(t[0][j], t[1][j], m0, m1, m2, m3)
    }
    for (int i = 0; i < rows; i++) {
        HN_VEC y0, y1;
        OUT2(y0, y1, t[i][0], t[i][1], t[i][2], t[i][3])
        HN_V(pixel)(o, i, 0, c, y0, some);
        if (cols > 1)
            HN_V(pixel)(o, i, 1, c, y1, some);
    }
}

static HN_TARGET void HN_V(out4)(const HnWinogradOut *o)
{
    const gboolean whole = o->rows == 4 && o->cols == 4;
    int64_t c = 0;
    for (; whole && c + HN_LANES <= o->n; c += HN_LANES)
        HN_V(out4_at)(o, c, 0, 4, 4);
    for (; c + HN_LANES <= o->n; c += HN_LANES)
        HN_V(out4_at)(o, c, 0, o->rows, o->cols);
    if (c < o->n)
        HN_V(out4_at)(o, c, (int)(o->n - c), o->rows, o->cols);
}

static HN_TARGET void HN_V(out2)(const HnWinogradOut *o)
{
    const gboolean whole = o->rows == 2 && o->cols == 2;
    int64_t c = 0;
    for (; whole && c + HN_LANES <= o->n; c += HN_LANES)
        HN_V(out2_at)(o, c, 0, 2, 2);
    for (; c + HN_LANES <= o->n; c += HN_LANES)
        HN_V(out2_at)(o, c, 0, o->rows, o->cols);
    if (c < o->n)
        HN_V(out2_at)(o, c, (int)(o->n - c), o->rows, o->cols);
}

/* The weights of a panel's columns for one input channel, whose number is that of two vectors: down the columns in
 * double, along the rows in float. */
static HN_TARGET void HN_V(taps)(float *u, int64_t plane, const float *k, const double *g, int side)
{
    enum { N = 2 * HN_LANES };
    double wide[9 * N];
    for (int j = 0; j < 9 * N; j++)
        wide[j] = (double)k[j];
    for (int a = 0; a < side; a++, g += 3) {
        float half[3 * N];
        const double g0 = g[0], g1 = g[1], g2 = g[2];
        for (int j = 0; j < 3 * N; j++)
            half[j] = (float)HN_FMA2(g2, wide[6 * N + j], HN_FMA2(g1, wide[3 * N + j], g0 * wide[j]));
        const double *by = g - 3 * a;
        for (int b = 0; b < side; b++, u += plane, by += 3) {
            const float by0 = (float)by[0], by1 = (float)by[1], by2 = (float)by[2];
            for (int j = 0; j < N; j++) {
                const float v = HN_FMA(by2, half[2 * N + j], HN_FMA(by1, half[N + j], by0 * half[j]));
                u[j] = __builtin_fabsf(v) < FLT_MIN ? 0 : v; /* NaN stays */
            }
        }
    }
}

#undef ALWAYS
#undef HN_FMA2
#undef LOAD_SOME
#undef A
#undef B
#undef IN4
#undef OUT4
#undef IN2
#undef OUT2
