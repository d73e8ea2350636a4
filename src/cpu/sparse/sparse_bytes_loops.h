/*
 * Tiles of sparse_bytes.h at one level: those of cpu/int8/int8_level.h, and vbmi, whose shuffle looks at 64 bytes.
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL avx2
#endif
#include "cpu/int8/int8_level.h"
#include "cpu/sparse/sparse_bytes.h"

/* Four bytes for each column: window p, places `at`. */
#define TAKE_avx2(p, at) \
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(p))), at)
#define TAKE_avx512(p, at) \
    _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(p))), at)
#define TAKE_vnni TAKE_avx512
#define TAKE_vbmi(p, at) _mm512_permutexvar_epi8(at, _mm512_loadu_si512(p))
#define HN_TARGET_vbmi __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma,f16c")))
#define HN_INT8_DOT_vbmi HN_INT8_DOT_vnni
#define HN_INT8_LANES_vbmi HN_INT8_LANES_vnni
#define IVEC_vbmi IVEC_vnni
#define ISET_vbmi ISET_vnni
#define IADD_vbmi IADD_vnni
#define ILOAD_vbmi ILOAD_vnni
#define ISTORE_vbmi ISTORE_vnni

#define IVEC HN_JOIN(IVEC, HN_LEVEL)
#define ISET HN_JOIN(ISET, HN_LEVEL)
#define IADD HN_JOIN(IADD, HN_LEVEL)
#define ILOAD HN_JOIN(ILOAD, HN_LEVEL)
#define ISTORE HN_JOIN(ISTORE, HN_LEVEL)
#define DOT HN_JOIN(HN_INT8_DOT, HN_LEVEL)
#define TAKE HN_JOIN(TAKE, HN_LEVEL)
#define VECTOR (HN_JOIN(HN_INT8_LANES, HN_LEVEL) * HN_INT8_GROUP) /* bytes */

#define PER_BASE 3 /* rows: so many are addressed from one register, and two with the step */

/* A step of `rows` rows into the sums. */
#define ADD_STEP(sum, place, list)                                                           \
    {                                                                                        \
        const IVEC at = ILOAD(list), w = ILOAD((list) + VECTOR);                             \
        const uint8_t *base[4];                                                              \
        base[0] = t->a + t->seg_at[(place)->seg] + (place)->at;                              \
        HN_UNROLL                                                                            \
        for (int b = 1; b < bases; b++)                                                      \
            base[b] = base[b - 1] + PER_BASE * step;                                         \
        HN_UNROLL                                                                            \
        for (int r = 0; r < rows; r++)                                                       \
            (sum)[r] = DOT((sum)[r], TAKE(base[r / PER_BASE] + r % PER_BASE * step, at), w); \
    }

/* rows is a constant after inlining. Few sums are taken in several chains, for each addition waits for the one
 * before. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(sparse_tile)(const HnSparseTile *t, const int rows)
{
    const int chains = rows <= 2 ? 4 : rows <= 4 ? 2 : 1, bases = (rows + PER_BASE - 1) / PER_BASE;
    IVEC sum[4][HN_INT8_MAX_ROWS];
    const uint8_t *list = t->lists;
    const HnSparsePlace *place = t->places;
    const int64_t step = t->step;
    int64_t k = t->steps;
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        sum[0][r] = ILOAD(t->begin);
        HN_UNROLL
        for (int i = 1; i < chains; i++)
            sum[i][r] = ISET(0);
    }
    for (; chains > 1 && k >= chains; k -= chains, place += chains, list += 2 * chains * VECTOR) {
        HN_UNROLL
        for (int i = 0; i < chains; i++)
            ADD_STEP(sum[i], place + i, list + 2 * i * VECTOR)
    }
    for (; k > 0; k--, place++, list += 2 * VECTOR)
        ADD_STEP(sum[0], place, list)
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        HN_UNROLL
        for (int i = 1; i < chains; i++)
            sum[0][r] = IADD(sum[0][r], sum[i][r]);
        ISTORE(t->c + r * t->pitch, sum[0][r]);
    }
}

#define TILE(n)                                                        \
    static HN_TARGET void HN_V(sparse_tile_##n)(const HnSparseTile *t) \
    {                                                                  \
        HN_V(sparse_tile)(t, n);                                       \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if HN_JOIN(HN_INT8_LANES, HN_LEVEL) > 8
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#endif

static const HnSparseTileFn HN_V(sparse_tiles)[HN_INT8_MAX_ROWS] = {
    HN_V(sparse_tile_1),  HN_V(sparse_tile_2),  HN_V(sparse_tile_3),
    HN_V(sparse_tile_4),  HN_V(sparse_tile_5),  HN_V(sparse_tile_6),
#if HN_JOIN(HN_INT8_LANES, HN_LEVEL) > 8
    HN_V(sparse_tile_7),  HN_V(sparse_tile_8),  HN_V(sparse_tile_9),
    HN_V(sparse_tile_10), HN_V(sparse_tile_11), HN_V(sparse_tile_12),
#endif
};

#undef IVEC
#undef ISET
#undef IADD
#undef ILOAD
#undef ISTORE
#undef DOT
#undef TAKE
#undef VECTOR
#undef PER_BASE
#undef ADD_STEP
#undef TILE
