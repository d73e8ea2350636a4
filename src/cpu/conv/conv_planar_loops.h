/*
 * Tiles of conv_planar.c at one instruction level: channels x vectors of columns whose sums stay in registers.
 */
#include "cpu/conv/conv_planar.h"
#include "cpu/core/turn_vec.h"

#define PLANAR_NV_plain 2 /* with six channels each: sums, vectors of the source and a weight fill the registers */
#define PLANAR_NV_avx2 2
#define PLANAR_NV_avx512 4

#define INLINE static inline __attribute__((always_inline)) HN_TARGET

/* The first n columns of a vector of results. */
INLINE void HN_V(planar_end)(const HnPlanarTile *t, int64_t at, HN_VEC v, int n)
{
    if (t->add != NULL)
        v = HN_VADD(v, n == HN_LANES ? HN_VLOAD(t->add + at) : HN_VLOAD_N(t->add + at, n));
    v = HN_VMIN(HN_VSET(t->hi), HN_VMAX(HN_VSET(t->lo), v));
    if (n == HN_LANES)
        HN_VSTORE(t->y + at, v);
    else
        HN_VSTORE_N(t->y + at, v, n);
}

/* oc and nv are constants. The source may be read up to the end of the last vector. */
INLINE void HN_V(planar)(const HnPlanarTile *t, int oc, int nv)
{
    HN_VEC sum[HN_PLANAR_OC][HN_PLANAR_NV], in[HN_PLANAR_NV];
    const float *w = t->w;
    HN_UNROLL
    for (int c = 0; c < oc; c++) {
        HN_UNROLL
        for (int v = 0; v < nv; v++)
            sum[c][v] = HN_VSET(t->bias != NULL ? t->bias[c] : 0);
    }
    for (int64_t k = 0; k < t->taps; k++, w += oc) {
        const float *const x = t->x + t->off[k];
        HN_UNROLL
        for (int v = 0; v < nv; v++)
            in[v] = HN_VLOAD(x + v * HN_LANES);
        HN_UNROLL
        for (int c = 0; c < oc; c++) {
            const HN_VEC by = HN_VSET(w[c]);
            HN_UNROLL
            for (int v = 0; v < nv; v++)
                sum[c][v] = HN_VFMA(in[v], by, sum[c][v]);
        }
    }
    HN_UNROLL
    for (int c = 0; c < oc; c++) {
        HN_UNROLL
        for (int v = 0; v < nv; v++)
            HN_V(planar_end)
        (t, c * t->plane + v * HN_LANES, sum[c][v], v < nv - 1 ? HN_LANES : t->columns - v * HN_LANES);
    }
}

/* Up to HN_LANES channels of as many pixels, or of n where there are fewer. */
INLINE void HN_V(turn_square)(float *to, int64_t row, const float *x, int64_t pitch, int channels, int n)
{
    HN_VEC v[HN_LANES];
    HN_UNROLL
    for (int i = 0; i < HN_LANES; i++)
        v[i] = i >= n                 ? HN_VSET(0)
               : channels == HN_LANES ? HN_VLOAD(x + i * pitch)
                                      : HN_VLOAD_N(x + i * pitch, channels);
    HN_V(turn_vectors)(v);
    HN_UNROLL
    for (int i = 0; i < HN_LANES; i++)
        if (i < channels) {
            if (n == HN_LANES)
                HN_VSTORE(to + i * row, v[i]);
            else
                HN_VSTORE_N(to + i * row, v[i], n);
        }
}

/* Channels of n pixels, `pitch` apart, become rows of pixels, `row` apart. */
static HN_TARGET void HN_V(turn_pixels)(float *to, int64_t row, const float *x, int64_t pitch, int64_t channels,
                                        int64_t n)
{
    for (int64_t c = 0; c < channels; c += HN_LANES) {
        const int some = (int)(channels - c < HN_LANES ? channels - c : HN_LANES);
        float *first = to + c * row;
        int64_t i = 0;
        for (; i + HN_LANES <= n; i += HN_LANES)
            if (some == HN_LANES)
                HN_V(turn_square)(first + i, row, x + i * pitch + c, pitch, HN_LANES, HN_LANES);
            else
                HN_V(turn_square)(first + i, row, x + i * pitch + c, pitch, some, HN_LANES);
        if (i < n)
            HN_V(turn_square)(first + i, row, x + i * pitch + c, pitch, some, (int)(n - i));
    }
}

#define TILE(OC, NV)                                                      \
    static HN_TARGET void HN_V(planar_##OC##_##NV)(const HnPlanarTile *t) \
    {                                                                     \
        HN_V(planar)(t, OC, NV);                                          \
    }
#define TILES(NV) TILE(1, NV) TILE(2, NV) TILE(3, NV) TILE(4, NV) TILE(5, NV) TILE(6, NV)
#define NAMES(NV)                                                                                                \
    {                                                                                                            \
        HN_V(planar_1_##NV), HN_V(planar_2_##NV), HN_V(planar_3_##NV), HN_V(planar_4_##NV), HN_V(planar_5_##NV), \
            HN_V(planar_6_##NV)                                                                                  \
    }
TILES(1)
TILES(2)
#if HN_JOIN(PLANAR_NV, HN_LEVEL) > 2
TILES(3)
TILES(4)
#endif

static const HnPlanarFn HN_V(planar_fns)[HN_PLANAR_NV][HN_PLANAR_OC] = { NAMES(1), NAMES(2),
#if HN_JOIN(PLANAR_NV, HN_LEVEL) > 2
                                                                         NAMES(3), NAMES(4)
#endif
};

#undef INLINE
#undef TILE
#undef TILES
#undef NAMES
