/*
 * Tiles of convolutions whose groups are of few channels, as many of outputs as of inputs: 16 outputs belong to
 * 16 / `each` groups. A part of a source column, 4 channels of each of these, is spread over the outputs of its group
 * once for all taps that see it.
 */
#include "cpu/int8/int8_depthwise_kernel.h"

#include "cpu/int8/int8_depthwise_kernel_level.h"

#define INLINE static inline __attribute__((always_inline))
#define K 3 /* of the window, both ways */

/* 16 bytes as they are for 16 outputs: to each the 4 bytes that are number `part` of its group; unsigned. */
INLINE HN_TARGET_quad __m512i spread(const uint8_t *from, const int each, const int part, const gboolean is_signed)
{
    const __m512i in = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)from));
    const __m128i four = _mm_set1_epi32(0x03020100);
    __m128i of[4];
    HN_UNROLL
    for (int i = 0; i < 4; i++) /* whose outputs are 4 i to 4 i + 3 */
        of[i] = _mm_add_epi8(four, _mm_set1_epi8((char)(4 * i / each * each + 4 * part)));
    __m512i turn = _mm512_castsi128_si512(of[0]);
    turn = _mm512_inserti32x4(turn, of[1], 1);
    turn = _mm512_inserti32x4(turn, of[2], 2);
    turn = _mm512_inserti32x4(turn, of[3], 3);
    const __m512i out = _mm512_shuffle_epi8(in, turn);
    return is_signed ? _mm512_xor_si512(out, _mm512_set1_epi8((char)128)) : out;
}

/* A block of nx outputs; all but the first four arguments are constants. */
INLINE HN_TARGET_quad void tile(const HnInt8DepthKernel *t, int64_t block, int64_t column, uint8_t *y, const int nx,
                                const int stride, const int each, const gboolean is_signed)
{
    const int seen = (nx - 1) * stride + K, parts = each / HN_INT8_DEPTH_QUAD;
    const int64_t at = MIN(block * BLOCK_quad, t->channels - BLOCK_quad);
    const uint8_t *weights = (const uint8_t *)t->weights + (gsize)(block * t->groups) * sizeof(__m512i);
    const __m512i begin = ILOAD_quad(t->begin + block * BLOCK_quad);
    __m512i sum[HN_INT8_DEPTH_NX];
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = begin;
    for (int r = 0; r < K; r++) {
        const uint8_t *const *from = t->row[r] + column;
        HN_UNROLL
        for (int part = 0; part < parts; part++, weights += K * sizeof(__m512i)) {
            __m512i w[K];
            HN_UNROLL
            for (int j = 0; j < K; j++)
                w[j] = ILOAD_quad(weights + (gsize)j * sizeof(__m512i));
            HN_UNROLL
            for (int x = 0; x < seen; x++) {
                const __m512i in = spread(from[x] + at, each, part, is_signed);
                HN_UNROLL
                for (int j = 0; j < K; j++)
                    if (j <= x && (x - j) % stride == 0 && (x - j) / stride < nx)
                        sum[(x - j) / stride] = dot_quad(sum[(x - j) / stride], in, w[j]);
            }
        }
    }
    tile_end_quad(t, block, y, nx, sum);
}

#define TILE(NAME, N, STRIDE, EACH, SIGNED)                                                    \
    static HN_TARGET_quad void NAME##_##N(const HnInt8DepthKernel *t)                          \
    {                                                                                          \
        uint8_t *y = t->y;                                                                     \
        for (int64_t i = 0, column = t->column; i < t->tiles; i++, column += (N) * (STRIDE)) { \
            for (int64_t block = t->first; block < t->end; block++)                            \
                tile(t, block, column, y, N, STRIDE, EACH, SIGNED);                            \
            y += (N)*t->y_pitch;                                                               \
        }                                                                                      \
    }
#define EACH_NX(NAME, ...)                                                             \
    TILE(NAME, 1, __VA_ARGS__)                                                         \
    TILE(NAME, 2, __VA_ARGS__)                                                         \
    TILE(NAME, 3, __VA_ARGS__)                                                         \
    TILE(NAME, 4, __VA_ARGS__)                                                         \
    TILE(NAME, 5, __VA_ARGS__)                                                         \
    TILE(NAME, 6, __VA_ARGS__)                                                         \
    TILE(NAME, 7, __VA_ARGS__)                                                         \
    TILE(NAME, 8, __VA_ARGS__)                                                         \
    static const HnInt8DepthFn NAME[] = {                                              \
        NAME##_1, NAME##_2, NAME##_3, NAME##_4, NAME##_5, NAME##_6, NAME##_7, NAME##_8 \
    };
EACH_NX(unsigned_4_1, 1, 4, FALSE)
EACH_NX(unsigned_4_2, 2, 4, FALSE)
EACH_NX(unsigned_8_1, 1, 8, FALSE)
EACH_NX(unsigned_8_2, 2, 8, FALSE)
EACH_NX(unsigned_16_1, 1, 16, FALSE)
EACH_NX(unsigned_16_2, 2, 16, FALSE)
EACH_NX(signed_4_1, 1, 4, TRUE)
EACH_NX(signed_4_2, 2, 4, TRUE)
EACH_NX(signed_8_1, 1, 8, TRUE)
EACH_NX(signed_8_2, 2, 8, TRUE)
EACH_NX(signed_16_1, 1, 16, TRUE)
EACH_NX(signed_16_2, 2, 16, TRUE)

const HnInt8DepthFn *hn_int8_group_tiles(int64_t each, int64_t rows, int64_t k, int64_t stride, int64_t dilation,
                                         gboolean is_signed)
{
    static const HnInt8DepthFn *const fns[][2][2] = { { { unsigned_4_1, unsigned_4_2 }, { signed_4_1, signed_4_2 } },
                                                      { { unsigned_8_1, unsigned_8_2 }, { signed_8_1, signed_8_2 } },
                                                      { { unsigned_16_1, unsigned_16_2 },
                                                        { signed_16_1, signed_16_2 } } };
    if (each != 4 && each != 8 && each != 16)
        return NULL;
    if (rows != K || k != K || dilation != 1)
        return NULL;
    if (stride < 1 || stride > 2)
        return NULL;
    return fns[each / 8][is_signed ? 1 : 0][stride - 1];
}
