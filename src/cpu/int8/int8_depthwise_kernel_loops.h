/*
 * Tiles of known windows, for int8_depthwise_kernel.c at one instruction level, which says what a group of taps is:
 * GROUP, BLOCK, gather(), dot(), tile_end().
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL pair
#endif
#include "cpu/int8/int8_depthwise_kernel_level.h"
#include "cpu/core/vec.h"

#define IVEC HN_JOIN(IVEC, HN_LEVEL)
#define ILOAD HN_JOIN(ILOAD, HN_LEVEL)
#define GROUP HN_JOIN(GROUP, HN_LEVEL)
#define BLOCK HN_JOIN(BLOCK, HN_LEVEL)
#define K_MOST 7 /* taps of a row of the window */

/* Column x of the source is seen by outputs through taps, `step` taps apart. */
#define EACH_OUTPUT(x, step, taps)   \
    HN_UNROLL                        \
    for (int j = 0; j < (taps); j++) \
        if (j * (step) <= (x) && ((x)-j * (step)) % stride == 0 && ((x)-j * (step)) / stride < nx)
#define OUTPUT(x, step) (((x)-j * (step)) / stride)

/* A block of nx outputs; nx, the k rows and columns of the window, k odd, and the stride are constants. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(tile)(const HnInt8DepthKernel *t, int64_t block,
                                                                       int64_t column, uint8_t *y, const int nx,
                                                                       const int k, const int stride,
                                                                       const gboolean is_signed)
{
    const int seen = (nx - 1) * stride + k;
    const int64_t at = MIN(block * BLOCK, t->channels - BLOCK);
    const uint8_t *weights = (const uint8_t *)t->weights + (gsize)(block * t->groups) * sizeof(IVEC);
    const uint8_t *const *from[GROUP];
    const uint8_t *group[GROUP];
    IVEC sum[HN_INT8_DEPTH_NX], w[K_MOST];
    const IVEC begin = ILOAD(t->begin + block * BLOCK);
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = begin;
    HN_UNROLL
    for (int r = 0; r + 1 < k; r += GROUP, weights += (gsize)k * sizeof(IVEC)) {
        const int n = MIN(GROUP, k - r);
        HN_UNROLL
        for (int i = 0; i < n; i++)
            from[i] = t->row[r + i] + column;
        HN_UNROLL
        for (int j = 0; j < k; j++)
            w[j] = ILOAD(weights + (gsize)j * sizeof(IVEC));
        HN_UNROLL
        for (int x = 0; x < seen; x++) {
            HN_UNROLL
            for (int i = 0; i < n; i++)
                group[i] = from[i][x] + at;
            const IVEC in = HN_V(gather)(group, n, is_signed);
            EACH_OUTPUT(x, 1, k)
            sum[OUTPUT(x, 1)] = HN_V(dot)(sum[OUTPUT(x, 1)], in, w[j]);
        }
    }
    if (k % GROUP == 1) {
        const int taps = (k + GROUP - 1) / GROUP;
        from[0] = t->row[k - 1] + column;
        __asm__("" : "+r"(from[0])); /* one register; else compilers keep sums with each x, and those in memory */
        HN_UNROLL
        for (int j = 0; j < taps; j++)
            w[j] = ILOAD(weights + (gsize)j * sizeof(IVEC));
        HN_UNROLL
        for (int x = 0; x < seen; x += stride) {
            HN_UNROLL
            for (int i = 0; i < GROUP; i++)
                group[i] = from[0][MIN(x + i, seen - 1)] + at;
            const IVEC in = HN_V(gather)(group, GROUP, is_signed);
            EACH_OUTPUT(x, GROUP, taps)
            sum[OUTPUT(x, GROUP)] = HN_V(dot)(sum[OUTPUT(x, GROUP)], in, w[j]);
        }
    }
    HN_V(tile_end)(t, block, y, nx, sum);
}

#define TILE(NAME, N, CALL)                                                                   \
    static HN_TARGET void HN_V(NAME##_##N)(const HnInt8DepthKernel *t)                        \
    {                                                                                         \
        uint8_t *y = t->y;                                                                    \
        for (int64_t i = 0, column = t->column; i < t->tiles; i++, column += (N)*t->stride) { \
            for (int64_t block = t->first; block < t->end; block++)                           \
                CALL;                                                                         \
            y += (N)*t->y_pitch;                                                              \
        }                                                                                     \
    }
#define EACH_NX(NAME, FN, ...)                             \
    TILE(NAME, 1, FN(t, block, column, y, 1, __VA_ARGS__)) \
    TILE(NAME, 2, FN(t, block, column, y, 2, __VA_ARGS__)) \
    TILE(NAME, 3, FN(t, block, column, y, 3, __VA_ARGS__)) \
    TILE(NAME, 4, FN(t, block, column, y, 4, __VA_ARGS__)) \
    TILE(NAME, 5, FN(t, block, column, y, 5, __VA_ARGS__)) \
    TILE(NAME, 6, FN(t, block, column, y, 6, __VA_ARGS__)) \
    TILE(NAME, 7, FN(t, block, column, y, 7, __VA_ARGS__)) \
    TILE(NAME, 8, FN(t, block, column, y, 8, __VA_ARGS__))
#define NAMES(NAME)                                                                                     \
    {                                                                                                   \
        HN_V(NAME##_1), HN_V(NAME##_2), HN_V(NAME##_3), HN_V(NAME##_4), HN_V(NAME##_5), HN_V(NAME##_6), \
            HN_V(NAME##_7), HN_V(NAME##_8)                                                              \
    }
#define WINDOW(K, S)                              \
    EACH_NX(u_##K##_##S, HN_V(tile), K, S, FALSE) \
    EACH_NX(s_##K##_##S, HN_V(tile), K, S, TRUE)
#define FNS(K, S)                              \
    {                                          \
        NAMES(u_##K##_##S), NAMES(s_##K##_##S) \
    }

WINDOW(3, 1)
WINDOW(3, 2)
WINDOW(5, 1)
WINDOW(5, 2)
WINDOW(7, 1)

/* In the order of `windows`. */
static const HnInt8DepthFn HN_V(known)[][2][HN_INT8_DEPTH_NX] = { FNS(3, 1), FNS(3, 2), FNS(5, 1), FNS(5, 2),
                                                                  FNS(7, 1) };
#undef IVEC
#undef ILOAD
#undef GROUP
#undef BLOCK
#undef K_MOST
#undef EACH_OUTPUT
#undef OUTPUT
