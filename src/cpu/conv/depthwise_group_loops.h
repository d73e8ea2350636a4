/*
 * Tiles of convolutions whose groups are of few channels, as many of outputs as of inputs, for depthwise_group.c at one
 * instruction level: up to HN_DEPTH_NX outputs of a row side by side, HN_LANES channels each, of whole groups. An input
 * of each group is spread over the lanes of its outputs.
 */
#include "cpu/conv/depthwise_end.h"

#define INLINE static inline __attribute__((always_inline)) HN_TARGET
#define SPREAD HN_JOIN(SPREAD, HN_LEVEL)      /* (v, at): element i is v's element at[i] */
#define SPREAD_plain(v, at) ((void)(at), (v)) /* groups are whole vectors */
#define SPREAD_avx2(v, at) _mm256_permutevar8x32_ps(v, _mm256_castps_si256(at))
#define SPREAD_avx512(v, at) _mm512_permutexvar_ps(_mm512_castps_si512(at), v)

/* Input i of each group of what begins here, to all its outputs; `one`: a group is a vector. */
INLINE HN_VEC HN_V(input)(const float *from, int i, HN_VEC at, gboolean one)
{
    return one ? HN_VSET(from[i]) : SPREAD(HN_VLOAD(from), at);
}

/* Channels c ... of nx outputs; nx, the taps of a row, which are GROUP_K, and the stride are constants. Weights are
 * w_at elements behind w. */
#define GROUP_K 3
INLINE void HN_V(tile)(const HnDepthTile *t, int64_t c, int64_t w_at, int nx, int stride, gboolean one)
{
    const float *const *from = t->from;
    HN_VEC sum[HN_DEPTH_NX], w[GROUP_K];
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = HN_VLOAD(t->bias + c);
    for (int r = 0; r < t->rows; r++, from += t->columns) {
        const float *taps = t->w[r] + w_at;
        for (int i = 0; i < t->each; i++, taps += GROUP_K * HN_LANES) {
            const HN_VEC at = HN_VLOAD(t->spread + i * HN_LANES);
            HN_UNROLL
            for (int j = 0; j < GROUP_K; j++)
                w[j] = HN_VLOAD(taps + j * HN_LANES);
            HN_UNROLL
            for (int x = 0; x < (nx - 1) * stride + GROUP_K; x++) {
                const HN_VEC in = HN_V(input)(from[x] + t->at + c, i, at, one);
                HN_UNROLL
                for (int j = 0; j < GROUP_K; j++)
                    if (j <= x && (x - j) % stride == 0 && (x - j) / stride < nx)
                        sum[(x - j) / stride] = HN_VFMA(in, w[j], sum[(x - j) / stride]);
            }
        }
    }
    HN_V(tile_end)(t, c, nx, HN_LANES, sum);
}

/* Any number of taps at any distances: each sum reads its own inputs. */
INLINE void HN_V(tile_any)(const HnDepthTile *t, int64_t c, int64_t w_at, int nx, gboolean one)
{
    const float *const *from = t->from;
    HN_VEC sum[HN_DEPTH_NX];
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = HN_VLOAD(t->bias + c);
    for (int r = 0; r < t->rows; r++, from += t->columns) {
        const float *taps = t->w[r] + w_at;
        for (int i = 0; i < t->each; i++) {
            const HN_VEC at = HN_VLOAD(t->spread + i * HN_LANES);
            for (int j = 0; j < t->k; j++, taps += HN_LANES) {
                const HN_VEC w = HN_VLOAD(taps);
                HN_UNROLL
                for (int x = 0; x < nx; x++) {
                    const float *const in = from[x * t->stride + j * t->dilation] + t->at + c;
                    sum[x] = HN_VFMA(HN_V(input)(in, i, at, one), w, sum[x]);
                }
            }
        }
    }
    HN_V(tile_end)(t, c, nx, HN_LANES, sum);
}

/* All vectors of the tile's channels; the last one lies back so that it fits, and computes some groups again. */
#define EACH_VECTOR(CALL)                                   \
    for (int64_t i = t->first; i < t->end; i += HN_LANES) { \
        const int64_t c = MIN(i, t->end - HN_LANES);        \
        const int64_t w_at = i / HN_LANES * t->w_at;        \
        CALL;                                               \
    }
#define TILE(NX, ONE)                                                       \
    static HN_TARGET void HN_V(tile_1_##ONE##_##NX)(const HnDepthTile *t)   \
    {                                                                       \
        EACH_VECTOR(HN_V(tile)(t, c, w_at, NX, 1, ONE))                     \
    }                                                                       \
    static HN_TARGET void HN_V(tile_2_##ONE##_##NX)(const HnDepthTile *t)   \
    {                                                                       \
        EACH_VECTOR(HN_V(tile)(t, c, w_at, NX, 2, ONE))                     \
    }                                                                       \
    static HN_TARGET void HN_V(tile_any_##ONE##_##NX)(const HnDepthTile *t) \
    {                                                                       \
        EACH_VECTOR(HN_V(tile_any)(t, c, w_at, NX, ONE))                    \
    }
#define TILES(ONE) \
    TILE(1, ONE) TILE(2, ONE) TILE(3, ONE) TILE(4, ONE) TILE(5, ONE) TILE(6, ONE) TILE(7, ONE) TILE(8, ONE)
#define NAMES(K)                                                                                        \
    HN_V(tile_##K##_1), HN_V(tile_##K##_2), HN_V(tile_##K##_3), HN_V(tile_##K##_4), HN_V(tile_##K##_5), \
        HN_V(tile_##K##_6), HN_V(tile_##K##_7), HN_V(tile_##K##_8)

#if HN_LANES > 4
TILES(0)
#endif
#if HN_LANES < 16
TILES(1)
#endif

static const HnDepthFn HN_V(group_tiles)[2][3][HN_DEPTH_NX] = {
#if HN_LANES > 4
    { { NAMES(1_0) }, { NAMES(2_0) }, { NAMES(any_0) } },
#else
    { { NULL } },
#endif
#if HN_LANES < 16
    { { NAMES(1_1) }, { NAMES(2_1) }, { NAMES(any_1) } },
#endif
};

#undef INLINE
#undef SPREAD
#undef GROUP_K
#undef EACH_VECTOR
#undef TILE
#undef TILES
#undef NAMES
