/*
 * Tiles of conv_few.c at one instruction level: outputs side by side x vectors of channels, whose sums stay in
 * registers. An input is read from where it lies, at a distance that is part of the instruction. Whoever has more
 * registers than the level says FEW_NAME(name), FEW_TARGET and FEW_MANY.
 */
#include "cpu/conv/conv_few.h"
#include "cpu/core/vec.h"

#ifndef FEW_NAME /* the level's own */
#define FEW_NAME HN_V
#define FEW_TARGET HN_TARGET
#define FEW_MANY (HN_LANES >= 16)
#endif
#define INLINE static inline __attribute__((always_inline)) FEW_TARGET

/* n of the lanes of a vector of results. */
INLINE void FEW_NAME(end)(const HnFewTile *t, HN_VEC v, float *y, const float *add, const int n)
{
    if (t->add != NULL)
        v = HN_VADD(v, n == HN_LANES ? HN_VLOAD(add) : HN_VLOAD_N(add, n));
    v = HN_VMIN(HN_VSET(t->hi), HN_VMAX(HN_VSET(t->lo), v));
    if (n == HN_LANES)
        HN_VSTORE(y, v);
    else
        HN_VSTORE_N(y, v, n);
}

/* nv, np and stride are constants. */
INLINE void FEW_NAME(few)(const HnFewTile *t, const int nv, const int np, const int stride)
{
    HN_VEC sum[24][HN_FEW_NV], w[HN_FEW_NV];
    const float *taps = t->w;
    HN_UNROLL
    for (int i = 0; i < np; i++) {
        HN_UNROLL
        for (int v = 0; v < nv; v++)
            sum[i][v] = HN_VLOAD(t->bias + v * HN_LANES);
    }
    for (int64_t l = 0; l < t->lines; l++) {
        const float *x = t->x + t->off[l];
        for (int64_t k = 0; k < t->kernel; k++, x++, taps += nv * HN_LANES) {
            __asm__("" : "+r"(x)); /* else compilers keep inputs for later turns, and sums in memory instead */
            HN_UNROLL
            for (int v = 0; v < nv; v++)
                w[v] = HN_VLOAD(taps + v * HN_LANES);
            HN_UNROLL
            for (int i = 0; i < np; i++) {
                const HN_VEC in = HN_VSET(x[i * stride]);
                HN_UNROLL
                for (int v = 0; v < nv; v++)
                    sum[i][v] = HN_VFMA(in, w[v], sum[i][v]);
            }
        }
    }
    HN_UNROLL
    for (int i = 0; i < np; i++) {
        float *const y = t->y + i * t->y_pitch;
        const float *const add = t->add + i * t->add_pitch;
        HN_UNROLL
        for (int v = 0; v < nv; v++)
            FEW_NAME(end)(t, sum[i][v], y + v * HN_LANES, add + v * HN_LANES, v < nv - 1 ? HN_LANES : t->tail);
    }
}

/* Sums of n registers for each: with 32 registers 24, else 12. */
#if FEW_MANY
#define UNIT 2
#else
#define UNIT 1
#endif
#define TILE(NV, STRIDE, I, NP)                                                    \
    static FEW_TARGET void FEW_NAME(few_##NV##_##STRIDE##_##I)(const HnFewTile *t) \
    {                                                                              \
        FEW_NAME(few)(t, NV, NP, STRIDE);                                          \
    }
#define TILES(STRIDE)             \
    TILE(1, STRIDE, 1, 2 * UNIT)  \
    TILE(1, STRIDE, 2, 4 * UNIT)  \
    TILE(1, STRIDE, 3, 6 * UNIT)  \
    TILE(1, STRIDE, 4, 8 * UNIT)  \
    TILE(1, STRIDE, 5, 10 * UNIT) \
    TILE(1, STRIDE, 6, 12 * UNIT) \
    TILE(2, STRIDE, 1, UNIT)      \
    TILE(2, STRIDE, 2, 2 * UNIT)  \
    TILE(2, STRIDE, 3, 3 * UNIT)  \
    TILE(2, STRIDE, 4, 4 * UNIT)  \
    TILE(2, STRIDE, 5, 5 * UNIT)  \
    TILE(2, STRIDE, 6, 6 * UNIT)  \
    TILE(3, STRIDE, 1, UNIT)      \
    TILE(3, STRIDE, 2, 2 * UNIT)  \
    TILE(3, STRIDE, 3, 3 * UNIT)  \
    TILE(3, STRIDE, 4, 4 * UNIT)
#define NAMES(V)                                                                                    \
    {                                                                                               \
        FEW_NAME(few_##V##_1), FEW_NAME(few_##V##_2), FEW_NAME(few_##V##_3), FEW_NAME(few_##V##_4), \
            FEW_NAME(few_##V##_5), FEW_NAME(few_##V##_6)                                            \
    }
#define FOUR(V)                                                                                    \
    {                                                                                              \
        FEW_NAME(few_##V##_1), FEW_NAME(few_##V##_2), FEW_NAME(few_##V##_3), FEW_NAME(few_##V##_4) \
    }

TILES(1)
TILES(2)
TILES(4)

static const HnFewFn FEW_NAME(few_fns)[HN_FEW_NV][3][HN_FEW_SIZES] = {
    { NAMES(1_1), NAMES(1_2), NAMES(1_4) },
    { NAMES(2_1), NAMES(2_2), NAMES(2_4) },
    { FOUR(3_1), FOUR(3_2), FOUR(3_4) },
};

#undef FEW_NAME
#undef FEW_TARGET
#undef FEW_MANY
#undef INLINE
#undef UNIT
#undef TILE
#undef TILES
#undef NAMES
#undef FOUR
