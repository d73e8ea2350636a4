/*
 * Tiles of depthwise convolutions, for depthwise.c at one instruction level: up to HN_DEPTH_NX outputs of a row side by
 * side, HN_LANES channels each, whose sums stay in registers.
 */
#include "cpu/conv/depthwise_end.h"

#define INLINE static inline __attribute__((always_inline)) HN_TARGET

/* Channels c ... of nx outputs; nx, the k taps of a row and the stride are constants. An input is read once for all
 * outputs that see it. */
INLINE void HN_V(tile)(const HnDepthTile *t, int64_t c, int nx, int k, int stride)
{
    const float *const *from = t->from;
    HN_VEC sum[HN_DEPTH_NX], w[HN_DEPTH_K];
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = HN_VLOAD(t->bias + c);
    for (int r = 0; r < t->rows; r++, from += t->columns) {
        HN_UNROLL
        for (int j = 0; j < k; j++)
            w[j] = HN_VLOAD(t->w[r] + j * t->channels + c);
        HN_UNROLL
        for (int x = 0; x < (nx - 1) * stride + k; x++) {
            const HN_VEC in = HN_VLOAD(from[x] + t->at + c);
            HN_UNROLL
            for (int j = 0; j < k; j++)
                if (j <= x && (x - j) % stride == 0 && (x - j) / stride < nx)
                    sum[(x - j) / stride] = HN_VFMA(in, w[j], sum[(x - j) / stride]);
        }
    }
    HN_V(tile_end)(t, c, nx, HN_LANES, sum);
}

/* Any number of taps at any distances: each sum reads its own inputs. */
INLINE void HN_V(tile_any)(const HnDepthTile *t, int64_t c, int nx)
{
    const float *const *from = t->from;
    HN_VEC sum[HN_DEPTH_NX];
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = HN_VLOAD(t->bias + c);
    for (int r = 0; r < t->rows; r++, from += t->columns)
        for (int j = 0; j < t->k; j++) {
            const HN_VEC w = HN_VLOAD(t->w[r] + j * t->channels + c);
            HN_UNROLL
            for (int i = 0; i < nx; i++)
                sum[i] = HN_VFMA(HN_VLOAD(from[i * t->stride + j * t->dilation] + t->at + c), w, sum[i]);
        }
    HN_V(tile_end)(t, c, nx, HN_LANES, sum);
}

/* Any number of taps side by side, strides of 1: for LONG_TAPS of them at a time each input is read once. */
#define LONG_TAPS 4
INLINE void HN_V(tile_long)(const HnDepthTile *t, int64_t c, int nx)
{
    const float *const *from = t->from;
    HN_VEC sum[HN_DEPTH_NX], w[LONG_TAPS];
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = HN_VLOAD(t->bias + c);
    for (int r = 0; r < t->rows; r++, from += t->columns) {
        int first = 0;
        for (; first + LONG_TAPS <= t->k; first += LONG_TAPS) {
            HN_UNROLL
            for (int j = 0; j < LONG_TAPS; j++)
                w[j] = HN_VLOAD(t->w[r] + (first + j) * t->channels + c);
            HN_UNROLL
            for (int x = 0; x < nx + LONG_TAPS - 1; x++) {
                const HN_VEC in = HN_VLOAD(from[first + x] + t->at + c);
                HN_UNROLL
                for (int j = 0; j < LONG_TAPS; j++)
                    if (j <= x && x - j < nx)
                        sum[x - j] = HN_VFMA(in, w[j], sum[x - j]);
            }
        }
        for (; first < t->k; first++) {
            w[0] = HN_VLOAD(t->w[r] + first * t->channels + c);
            HN_UNROLL
            for (int i = 0; i < nx; i++)
                sum[i] = HN_VFMA(HN_VLOAD(from[first + i] + t->at + c), w[0], sum[i]);
        }
    }
    HN_V(tile_end)(t, c, nx, HN_LANES, sum);
}

/* One pass over copied rows: each input is read once for all outputs that see it. */
INLINE void HN_V(pass)(const float *in, const float *w, int nx, int taps, HN_VEC *sum)
{
    HN_VEC tap[HN_DEPTH_TAPS];
    HN_UNROLL
    for (int j = 0; j < taps; j++)
        tap[j] = HN_VLOAD(w + j * HN_LANES);
    HN_UNROLL
    for (int x = 0; x < nx + taps - 1; x++) {
        const HN_VEC v = HN_VLOAD(in + x * HN_LANES);
        HN_UNROLL
        for (int j = 0; j < taps; j++)
            if (j <= x && x - j < nx)
                sum[x - j] = HN_VFMA(v, tap[j], sum[x - j]);
    }
}

#define EACH_PASS(TAPS)                                  \
    case TAPS:                                           \
        if (TAPS <= HN_DEPTH_TAPS_FEW || HN_LANES >= 16) \
            HN_V(pass)(in, w, nx, TAPS, sum);            \
        break;

/* Copied rows: one vector of channels, of which the last ones may not be there. */
INLINE void HN_V(tile_packed)(const HnDepthTile *t, int nx)
{
    const int64_t c = t->first, lanes = t->end - c;
    HN_VEC sum[HN_DEPTH_NX];
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = HN_V(post_operand)(t->bias, 0, c, lanes);
    for (int r = 0; r < t->rows; r++) {
        const float *w = t->w[r] + t->w_at;
        for (int k = 0; k < t->passes; w += t->pass[k].taps * HN_LANES, k++) {
            const float *in = t->from[r] + t->at + t->pass[k].at;
            switch (t->pass[k].taps) {
                EACH_PASS(1)
                EACH_PASS(2)
                EACH_PASS(3)
                EACH_PASS(4)
                EACH_PASS(5)
                EACH_PASS(6)
                EACH_PASS(7)
                EACH_PASS(8)
            }
        }
    }
    if (lanes == HN_LANES)
        HN_V(tile_end)(t, c, nx, HN_LANES, sum);
    else
        HN_V(tile_end)(t, c, nx, (int)lanes, sum);
}

static HN_TARGET void HN_V(copy)(float *to, int64_t line, const float *from, int64_t step, int64_t n, int64_t channels)
{
    for (int64_t i = 0; i < n; i++, from += step, to += HN_LANES) {
        float *t = to;
        int64_t c = 0;
        for (; c + HN_LANES <= channels; c += HN_LANES, t += line)
            HN_VSTORE(t, HN_VLOAD(from + c));
        if (c < channels)
            HN_VSTORE(t, HN_VLOAD_N(from + c, (int)(channels - c)));
    }
}

/* All vectors of the tile's channels; the last one lies back so that it fits, and computes some channels again. */
#define EACH_VECTOR(CALL)                                   \
    for (int64_t i = t->first; i < t->end; i += HN_LANES) { \
        const int64_t c = MIN(i, t->end - HN_LANES);        \
        CALL;                                               \
    }
#define TILE(K, S, NX)                                                      \
    static HN_TARGET void HN_V(tile_##K##_##S##_##NX)(const HnDepthTile *t) \
    {                                                                       \
        EACH_VECTOR(HN_V(tile)(t, c, NX, K, S))                             \
    }
#define TILE_OF(KIND, NX)                                                \
    static HN_TARGET void HN_V(tile_##KIND##_##NX)(const HnDepthTile *t) \
    {                                                                    \
        EACH_VECTOR(HN_V(tile_##KIND)(t, c, NX))                         \
    }
#define PACKED(NX)                                                     \
    static HN_TARGET void HN_V(tile_packed_##NX)(const HnDepthTile *t) \
    {                                                                  \
        HN_V(tile_packed)(t, NX);                                      \
    }
#define PACKED_TILES() PACKED(1) PACKED(2) PACKED(3) PACKED(4) PACKED(5) PACKED(6) PACKED(7) PACKED(8)
#define TILES_OF(KIND) \
    TILE_OF(KIND, 1)   \
    TILE_OF(KIND, 2)   \
    TILE_OF(KIND, 3) TILE_OF(KIND, 4) TILE_OF(KIND, 5) TILE_OF(KIND, 6) TILE_OF(KIND, 7) TILE_OF(KIND, 8)
#define TILES(K, S) \
    TILE(K, S, 1) TILE(K, S, 2) TILE(K, S, 3) TILE(K, S, 4) TILE(K, S, 5) TILE(K, S, 6) TILE(K, S, 7) TILE(K, S, 8)
#define NAMES(K)                                                                                        \
    HN_V(tile_##K##_1), HN_V(tile_##K##_2), HN_V(tile_##K##_3), HN_V(tile_##K##_4), HN_V(tile_##K##_5), \
        HN_V(tile_##K##_6), HN_V(tile_##K##_7), HN_V(tile_##K##_8)

TILES(3, 1)
TILES(3, 2)
TILES(5, 1)
TILES(5, 2)
TILES(7, 1)
TILES_OF(long)
TILES_OF(any)
PACKED_TILES()

static const HnDepthFn HN_V(tiles)[HN_DEPTH_KINDS][HN_DEPTH_NX] = {
    { NAMES(3_1) }, { NAMES(3_2) },  { NAMES(5_1) }, { NAMES(5_2) },
    { NAMES(7_1) }, { NAMES(long) }, { NAMES(any) }, { NAMES(packed) },
};
#undef INLINE
#undef EACH_VECTOR
#undef TILE
#undef TILE_OF
#undef TILES_OF
#undef PACKED
#undef PACKED_TILES
#undef EACH_PASS
#undef LONG_TAPS
#undef TILES
#undef NAMES
