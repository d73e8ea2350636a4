/*
 * Tiles of bytes at one instruction level with vectors, for byte_tile.c. A level says how groups are multiplied and
 * added: HN_BYTE_DOT(sum, a, b), a unsigned and b signed.
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL avx2
#endif
#include "cpu/byte_tile.h"
#include "cpu/vec.h"

#define HN_BYTE_ROWS_avx2 6
#define HN_BYTE_LANES_avx2 8
#define IVEC_avx2 __m256i
#define ISET_avx2 _mm256_set1_epi32
#define ILOAD_avx2(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define ISTORE_avx2(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define HN_BYTE_DOT_avx2(sum, a, b) \
    _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)))

#define HN_BYTE_ROWS_avx512 12
#define HN_BYTE_LANES_avx512 16
#define IVEC_avx512 __m512i
#define ISET_avx512 _mm512_set1_epi32
#define ILOAD_avx512(p) _mm512_loadu_si512(p)
#define ISTORE_avx512(p, v) _mm512_storeu_si512(p, v)
#define HN_BYTE_DOT_avx512(sum, a, b) \
    _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)))

#define HN_BYTE_ROWS_vnni 12
#define HN_BYTE_LANES_vnni 16
#define IVEC_vnni __m512i
#define ISET_vnni _mm512_set1_epi32
#define ILOAD_vnni(p) _mm512_loadu_si512(p)
#define ISTORE_vnni(p, v) _mm512_storeu_si512(p, v)
#define HN_BYTE_DOT_vnni(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define HN_TARGET_vnni __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))

#define IVEC HN_JOIN(IVEC, HN_LEVEL)
#define ISET HN_JOIN(ISET, HN_LEVEL)
#define ILOAD HN_JOIN(ILOAD, HN_LEVEL)
#define ISTORE HN_JOIN(ISTORE, HN_LEVEL)
#define DOT HN_JOIN(HN_BYTE_DOT, HN_LEVEL)
#define LANES HN_JOIN(HN_BYTE_LANES, HN_LEVEL)
#define ROWS HN_JOIN(HN_BYTE_ROWS, HN_LEVEL)

/* rows and vectors are constants after inlining. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(byte_tile)(const HnByteTile *t, const int rows,
                                                                            const int vectors)
{
    IVEC sum[2][HN_BYTE_MAX_ROWS];
    const uint8_t *a[HN_BYTE_MAX_ROWS];
    const int8_t *b = t->b;
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        a[r] = t->a[r] + t->a_at;
        sum[0][r] = ILOAD(t->begin);
        if (vectors > 1)
            sum[1][r] = ILOAD(t->begin + LANES);
    }
    for (int part = 0; part < 2; part++) {
        const int32_t *const at = part == 0 ? t->at : t->extra_at;
        const int64_t groups = part == 0 ? t->groups : t->extras;
        for (int64_t g = 0; g < groups; g++, b += 2 * LANES * HN_BYTE_GROUP) {
            const IVEC b0 = ILOAD(b), b1 = vectors > 1 ? ILOAD(b + LANES * HN_BYTE_GROUP) : b0;
            const int64_t k = at[g];
            HN_UNROLL
            for (int r = 0; r < rows; r++) {
                int32_t four;
                memcpy(&four, a[r] + k, sizeof four);
                const IVEC v = ISET(four);
                sum[0][r] = DOT(sum[0][r], v, b0);
                if (vectors > 1)
                    sum[1][r] = DOT(sum[1][r], v, b1);
            }
        }
    }
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        ISTORE(t->c + r * 2 * LANES, sum[0][r]);
        if (vectors > 1)
            ISTORE(t->c + r * 2 * LANES + LANES, sum[1][r]);
    }
}

#define TILE(n)                                                   \
    static HN_TARGET void HN_V(byte_one_##n)(const HnByteTile *t) \
    {                                                             \
        HN_V(byte_tile)(t, n, 1);                                 \
    }                                                             \
    static HN_TARGET void HN_V(byte_two_##n)(const HnByteTile *t) \
    {                                                             \
        HN_V(byte_tile)(t, n, 2);                                 \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if HN_JOIN(HN_BYTE_ROWS, HN_LEVEL) > 6
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#endif

static const HnByteTileFn HN_V(byte_fns)[2][HN_BYTE_MAX_ROWS] = {
#define SIX(v) HN_V(v##_1), HN_V(v##_2), HN_V(v##_3), HN_V(v##_4), HN_V(v##_5), HN_V(v##_6)
#define MORE(v) HN_V(v##_7), HN_V(v##_8), HN_V(v##_9), HN_V(v##_10), HN_V(v##_11), HN_V(v##_12)
#if HN_JOIN(HN_BYTE_ROWS, HN_LEVEL) > 6
    { SIX(byte_one), MORE(byte_one) },
    { SIX(byte_two), MORE(byte_two) },
#else
    { SIX(byte_one) },
    { SIX(byte_two) },
#endif
};

#undef IVEC
#undef ISET
#undef ILOAD
#undef ISTORE
#undef DOT
#undef LANES
#undef ROWS
#undef TILE
#undef SIX
#undef MORE
