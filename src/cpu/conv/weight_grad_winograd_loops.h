/*
 * The transforms of gradients at one instruction level, for weight_grad_winograd.c: the transposes of those that
 * cpu/conv/winograd_loops.h makes of results and weights. Lanes are neighbouring channels.
 */
#include "cpu/conv/weight_grad.h"
#include "cpu/core/vec.h"

#define ALWAYS static inline __attribute__((always_inline)) HN_TARGET
#define LOAD_SOME(p) (some == 0 ? HN_VLOAD(p) : HN_VLOAD_N(p, some))

/* Along one axis: four results to the points 0, A, -A, B, -B and infinity. */
#define A 0.625f
#define B 1.5f
#define SPREAD(t0, t1, t2, t3, t4, t5, d0, d1, d2, d3)                                         \
    {                                                                                          \
        const HN_VEC a = HN_VSET(A), a2 = HN_VSET(A * A), b = HN_VSET(B), b2 = HN_VSET(B * B); \
        const HN_VEC ae = HN_VFMA(a2, d2, d0), ao = HN_VFMA(a2, d3, d1);                       \
        const HN_VEC be = HN_VFMA(b2, d2, d0), bo = HN_VFMA(b2, d3, d1);                       \
        t0 = d0;                                                                               \
        t1 = HN_VFMA(a, ao, ae);                                                               \
        t2 = HN_VFNMA(a, ao, ae);                                                              \
        t3 = HN_VFMA(b, bo, be);                                                               \
        t4 = HN_VFNMA(b, bo, be);                                                              \
        t5 = d3;                                                                               \
    }

ALWAYS void HN_V(spread_at)(float *v, int64_t plane, const float *const *y, int64_t c, int some)
{
    HN_VEC t[6][4];
    for (int j = 0; j < 4; j++) {
        const HN_VEC d0 = LOAD_SOME(y[j] + c), d1 = LOAD_SOME(y[4 + j] + c);
        const HN_VEC d2 = LOAD_SOME(y[8 + j] + c), d3 = LOAD_SOME(y[12 + j] + c);
        SPREAD(t[0][j], t[1][j], t[2][j], t[3][j], t[4][j], t[5][j], d0, d1, d2, d3)
    }
    v += c;
    for (int i = 0; i < 6; i++, v += 6 * plane) {
        HN_VEC r0, r1, r2, r3, r4, r5;
        SPREAD(r0, r1, r2, r3, r4, r5, t[i][0], t[i][1], t[i][2], t[i][3])
        HN_VSTORE(v, r0);
        HN_VSTORE(v + plane, r1);
        HN_VSTORE(v + 2 * plane, r2);
        HN_VSTORE(v + 3 * plane, r3);
        HN_VSTORE(v + 4 * plane, r4);
        HN_VSTORE(v + 5 * plane, r5);
    }
}

/* Where the 4x4 results of a tile begin -> n channels of the values at 36 points, `plane` apart */
static HN_TARGET void HN_V(spread)(float *v, int64_t plane, const float *const *y, int64_t n)
{
    int64_t c = 0;
    for (; c + HN_LANES <= n; c += HN_LANES)
        HN_V(spread_at)(v, plane, y, c, 0);
    if (c < n)
        HN_V(spread_at)(v, plane, y, c, (int)(n - c));
}

/* 16 sums at 36 points, `plane` apart -> taps [9][16]. g [6][3] */
static HN_TARGET void HN_V(gather)(float *taps, const float *m, int64_t plane, const float *g)
{
    enum { N = HN_WEIGHT_GRAD_ROUND };
    float half[3][6][N];
    for (int t = 0; t < 3; t++)
        for (int j = 0; j < 6; j++)
            for (int k = 0; k < N; k++) {
                float sum = 0;
                for (int i = 0; i < 6; i++)
                    sum += g[3 * i + t] * m[(i * 6 + j) * plane + k];
                half[t][j][k] = sum;
            }
    for (int t = 0; t < 3; t++)
        for (int u = 0; u < 3; u++)
            for (int k = 0; k < N; k++) {
                float sum = 0;
                for (int j = 0; j < 6; j++)
                    sum += g[3 * j + u] * half[t][j][k];
                taps[(t * 3 + u) * N + k] = sum;
            }
}

#undef ALWAYS
#undef LOAD_SOME
#undef A
#undef B
#undef SPREAD
