/*
 * Tiles of the gradient of depthwise weights at one instruction level, for weight_grad_depthwise.c: the sums p##i of a
 * few taps of one vector of channels stay in registers.
 */
#include "cpu/conv/weight_grad.h"
#include "cpu/core/vec.h"

#define EACH_TAP(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define LOAD_TAP(p) (some == 0 ? HN_VLOAD(p) : HN_VLOAD_N(p, some))
#define TAP_BEGIN(i)          \
    HN_VEC p##i = HN_VSET(0); \
    const int64_t off##i = i < taps ? t->off[i] : 0;
#define TAP_ADD(i) \
    if (i < taps)  \
        p##i = HN_VFMA(LOAD_TAP(x + off##i), y, p##i);
#define TAP_END(i)                                      \
    if (i < taps) {                                     \
        float *const to = t->sums + i * t->pitch;       \
        const HN_VEC sum = HN_VADD(LOAD_TAP(to), p##i); \
        if (some == 0)                                  \
            HN_VSTORE(to, sum);                         \
        else                                            \
            HN_VSTORE_N(to, sum, some);                 \
    }

static inline __attribute__((always_inline)) HN_TARGET void HN_V(depth)(const HnWeightGradDepth *t, const int taps,
                                                                        const int some)
{
    const int64_t x_step = t->x_step, y_step = t->y_step;
    EACH_TAP(TAP_BEGIN)
    for (int64_t line = 0; line < t->lines; line++) {
        const float *x = t->x + line * t->x_line, *dy = t->dy + line * t->y_line;
        for (int64_t k = t->n; k > 0; k--, x += x_step, dy += y_step) {
            const HN_VEC y = LOAD_TAP(dy);
            EACH_TAP(TAP_ADD)
        }
    }
    EACH_TAP(TAP_END)
}

/* 3x3 taps with stride 1, some pixels of a line together: an input is read once for all three columns of taps. */
#define TOGETHER_plain 2
#define TOGETHER_avx2 2
#define TOGETHER_avx512 4
#define TOGETHER HN_JOIN(TOGETHER, HN_LEVEL)

static inline __attribute__((always_inline)) HN_TARGET void
HN_V(nine)(const float *x, const float *dy, const HnWeightGradDepth *t, const int pixels, const int some, HN_VEC *sum)
{
    HN_VEC y[TOGETHER];
    HN_UNROLL
    for (int i = 0; i < pixels; i++)
        y[i] = LOAD_TAP(dy + i * t->y_step);
    HN_UNROLL
    for (int r = 0; r < 3; r++) {
        const float *row = x + t->off[3 * r];
        HN_UNROLL
        for (int j = 0; j < pixels + 2; j++) {
            const HN_VEC in = LOAD_TAP(row + j * t->x_step);
            HN_UNROLL
            for (int k = 0; k < 3; k++)
                if (j >= k && j - k < pixels)
                    sum[3 * r + k] = HN_VFMA(in, y[j - k], sum[3 * r + k]);
        }
    }
}

static inline __attribute__((always_inline)) HN_TARGET void HN_V(square)(const HnWeightGradDepth *t, const int some)
{
    HN_VEC sum[9];
    HN_UNROLL
    for (int k = 0; k < 9; k++)
        sum[k] = HN_VSET(0);
    for (int64_t line = 0; line < t->lines; line++) {
        const float *x = t->x + line * t->x_line, *dy = t->dy + line * t->y_line;
        int64_t i = 0;
        for (; i + TOGETHER <= t->n; i += TOGETHER, x += TOGETHER * t->x_step, dy += TOGETHER * t->y_step)
            HN_V(nine)(x, dy, t, TOGETHER, some, sum);
        for (; i < t->n; i++, x += t->x_step, dy += t->y_step)
            HN_V(nine)(x, dy, t, 1, some, sum);
    }
    HN_UNROLL
    for (int k = 0; k < 9; k++) {
        float *const to = t->sums + k * t->pitch;
        const HN_VEC v = HN_VADD(LOAD_TAP(to), sum[k]);
        if (some == 0)
            HN_VSTORE(to, v);
        else
            HN_VSTORE_N(to, v, some);
    }
}

static HN_TARGET void HN_V(depth_square)(const HnWeightGradDepth *t)
{
    if (t->some == 0)
        HN_V(square)(t, 0);
    else
        HN_V(square)(t, t->some);
}

#define DEPTH(n)                                                      \
    static HN_TARGET void HN_V(depth_##n)(const HnWeightGradDepth *t) \
    {                                                                 \
        if (t->some == 0)                                             \
            HN_V(depth)(t, n, 0);                                     \
        else                                                          \
            HN_V(depth)(t, n, t->some);                               \
    }
DEPTH(1)
DEPTH(2)
DEPTH(3)
DEPTH(4)
DEPTH(5)
DEPTH(6)
DEPTH(7)
DEPTH(8)
DEPTH(9)

static const HnWeightGradDepthFn HN_V(depths)[HN_WEIGHT_GRAD_TAPS + 1] = {
    HN_V(depth_1), HN_V(depth_2), HN_V(depth_3), HN_V(depth_4), HN_V(depth_5),
    HN_V(depth_6), HN_V(depth_7), HN_V(depth_8), HN_V(depth_9), HN_V(depth_square),
};

#undef EACH_TAP
#undef LOAD_TAP
#undef TAP_BEGIN
#undef TAP_ADD
#undef TAP_END
#undef DEPTH
#undef TOGETHER
