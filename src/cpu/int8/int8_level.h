/*
 * Instructions on bytes at each level with vectors (HN_LEVEL: avx2, avx512, vnni): how groups of four are multiplied
 * and added: HN_INT8_DOT(sum, a, b), a unsigned and b signed, HN_INT8_TWO(sum, a, b, c, d), of a and b, c and d, whose
 * sums of products meet in 16 bits first where there are no better instructions, and HN_PAIR_DOT(), of 16-bit numbers.
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL avx2
#endif
#include "cpu/core/vec.h"

#ifndef HN_INT8_ROWS_avx2 /* the same at each inclusion */
#define HN_PAIR_DOT_avx2(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define HN_INT8_ROWS_avx2 6
#define HN_INT8_LANES_avx2 8
#define IVEC_avx2 __m256i
#define ISET_avx2 _mm256_set1_epi32
#define IADD_avx2 _mm256_add_epi32
#define ILOAD_avx2(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define ISTORE_avx2(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define HN_INT8_DOT_avx2(sum, a, b) \
    _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)))

#define HN_INT8_TWO_avx2(sum, a, b, c, d)                                                                             \
    _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_add_epi16(_mm256_maddubs_epi16(a, b), _mm256_maddubs_epi16(c, d)), \
                                            _mm256_set1_epi16(1)))

#define HN_PAIR_DOT_avx512(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#define HN_INT8_ROWS_avx512 12
#define HN_INT8_LANES_avx512 16
#define IVEC_avx512 __m512i
#define ISET_avx512 _mm512_set1_epi32
#define IADD_avx512 _mm512_add_epi32
#define ILOAD_avx512(p) _mm512_loadu_si512(p)
#define ISTORE_avx512(p, v) _mm512_storeu_si512(p, v)
#define HN_INT8_DOT_avx512(sum, a, b) \
    _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)))

#define HN_INT8_TWO_avx512(sum, a, b, c, d)                                                                           \
    _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_add_epi16(_mm512_maddubs_epi16(a, b), _mm512_maddubs_epi16(c, d)), \
                                            _mm512_set1_epi16(1)))

#define HN_PAIR_DOT_vnni(sum, a, b) _mm512_dpwssd_epi32(sum, a, b)
#define HN_INT8_ROWS_vnni 12
#define HN_INT8_LANES_vnni 16
#define IVEC_vnni __m512i
#define ISET_vnni _mm512_set1_epi32
#define IADD_vnni _mm512_add_epi32
#define ILOAD_vnni(p) _mm512_loadu_si512(p)
#define ISTORE_vnni(p, v) _mm512_storeu_si512(p, v)
#define HN_INT8_DOT_vnni(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define HN_INT8_TWO_vnni(sum, a, b, c, d) _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, a, b), c, d)
#define HN_TARGET_vnni __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#endif
