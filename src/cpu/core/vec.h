/*
 * Vectors of the instruction level that a file of loops is included for (cpu/core/cpu_level.h): HN_LANES numbers each.
 * Loads and stores need no alignment. HN_VMAX(a, b) is a > b ? a : b and HN_VMIN(a, b) is a < b ? a : b, hence b where
 * either is NaN.
 */
#include "cpu/core/cpu_level.h"

#include <immintrin.h>
#include <string.h>

#include "base/sanitize.h"

/* Before a loop of a constant and small number of turns, which indexes registers. With a sanitizer's checks in each
 * turn compilers would take minutes over it. */
#if HN_SANITIZE_ADDRESS || HN_SANITIZE_THREAD
#define HN_UNROLL
#elif defined(__clang__)
#define HN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HN_UNROLL _Pragma("GCC unroll 32")
#endif

#define HN_VEC HN_JOIN(HN_VEC, HN_LEVEL)
#define HN_LANES HN_JOIN(HN_LANES, HN_LEVEL)
#define HN_VLOAD HN_JOIN(HN_VLOAD, HN_LEVEL)
#define HN_VSTORE HN_JOIN(HN_VSTORE, HN_LEVEL)
#define HN_VSET HN_JOIN(HN_VSET, HN_LEVEL)
#define HN_VADD HN_JOIN(HN_VADD, HN_LEVEL)
#define HN_VMUL HN_JOIN(HN_VMUL, HN_LEVEL)
#define HN_VFMA HN_JOIN(HN_VFMA, HN_LEVEL)
#define HN_VMAX HN_JOIN(HN_VMAX, HN_LEVEL)
#define HN_VMIN HN_JOIN(HN_VMIN, HN_LEVEL)
/* Elements 0, 2, 4, ... or 1, 3, 5, ... of a and b, one after the other. */
#define HN_VEVEN HN_JOIN(HN_VEVEN, HN_LEVEL)
#define HN_VODD HN_JOIN(HN_VODD, HN_LEVEL)
#define HN_VEQUAL HN_JOIN(HN_VEQUAL, HN_LEVEL)     /* (a, b, c): c where a is b, else 0 */
#define HN_VOTHER HN_JOIN(HN_VOTHER, HN_LEVEL)     /* (a, b, c): c where a is not b, else 0 */
#define HN_VFNMA HN_JOIN(HN_VFNMA, HN_LEVEL)       /* (a, b, c): c - a * b */
#define HN_VLOAD_N HN_JOIN(HN_VLOAD_N, HN_LEVEL)   /* (p, n): the first n, 0 < n < HN_LANES, then zeros */
#define HN_VSTORE_N HN_JOIN(HN_VSTORE_N, HN_LEVEL) /* (p, v, n): the first n */
#define HN_VFIRST HN_JOIN(HN_VFIRST, HN_LEVEL)     /* (v, n): its first n lanes, 0 < n < HN_LANES, then zeros */

#define HN_VSUM HN_JOIN(HN_VSUM, HN_LEVEL)   /* the sum of all lanes, halves first */
#define HN_VMOST HN_JOIN(HN_VMOST, HN_LEVEL) /* the largest of all lanes, of which none is NaN */

#define HN_VEC_plain __m128
#define HN_LANES_plain 4
#define HN_VLOAD_plain _mm_loadu_ps
#define HN_VSTORE_plain _mm_storeu_ps
#define HN_VSET_plain _mm_set1_ps
#define HN_VADD_plain _mm_add_ps
#define HN_VMUL_plain _mm_mul_ps
#define HN_VFMA_plain(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define HN_VMAX_plain _mm_max_ps
#define HN_VMIN_plain _mm_min_ps
#define HN_VEVEN_plain(a, b) _mm_shuffle_ps(a, b, 0x88)
#define HN_VODD_plain(a, b) _mm_shuffle_ps(a, b, 0xdd)
#define HN_VEQUAL_plain(a, b, c) _mm_and_ps(_mm_cmpeq_ps(a, b), c)
#define HN_VOTHER_plain(a, b, c) _mm_and_ps(_mm_cmpneq_ps(a, b), c)
#define HN_VFNMA_plain(a, b, c) _mm_sub_ps(c, _mm_mul_ps(a, b))
#define HN_VLOAD_N_plain(p, n) ((n) == 1 ? _mm_load_ss(p) : _mm_setr_ps((p)[0], (p)[1], (n) > 2 ? (p)[2] : 0, 0))
#define HN_VSTORE_N_plain(p, v, n) memcpy(p, &(v), (size_t)(n) * sizeof(float))
#define HN_VFIRST_plain(v, n) \
    _mm_and_ps(v, _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32(n), _mm_setr_epi32(0, 1, 2, 3))))

#define HN_VQUARTERS(v) _mm_add_ps(v, _mm_movehl_ps(v, v))
#define HN_VPAIR(v) _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)))
#define HN_VSUM_plain(v) HN_VPAIR(HN_VQUARTERS(v))
#define HN_VMOST2(v) _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)))
#define HN_VMOST_plain(v) HN_VMOST2(_mm_max_ps(v, _mm_movehl_ps(v, v)))

#define HN_VEC_avx2 __m256
#define HN_LANES_avx2 8
#define HN_VLOAD_avx2 _mm256_loadu_ps
#define HN_VSTORE_avx2 _mm256_storeu_ps
#define HN_VSET_avx2 _mm256_set1_ps
#define HN_VADD_avx2 _mm256_add_ps
#define HN_VMUL_avx2 _mm256_mul_ps
#define HN_VFMA_avx2 _mm256_fmadd_ps
#define HN_VMAX_avx2 _mm256_max_ps
#define HN_VMIN_avx2 _mm256_min_ps
#define HN_V64_avx2(v) _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8))
#define HN_VEVEN_avx2(a, b) HN_V64_avx2(_mm256_shuffle_ps(a, b, 0x88))
#define HN_VODD_avx2(a, b) HN_V64_avx2(_mm256_shuffle_ps(a, b, 0xdd))
#define HN_VEQUAL_avx2(a, b, c) _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), c)
#define HN_VOTHER_avx2(a, b, c) _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_NEQ_UQ), c)
#define HN_VFNMA_avx2 _mm256_fnmadd_ps
#define HN_VMASK_avx2(n) \
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) /* lanes below n */
#define HN_VLOAD_N_avx2(p, n) _mm256_maskload_ps(p, HN_VMASK_avx2(n))
#define HN_VSTORE_N_avx2(p, v, n) _mm256_maskstore_ps(p, HN_VMASK_avx2(n), v)
#define HN_VFIRST_avx2(v, n) _mm256_and_ps(v, _mm256_castsi256_ps(HN_VMASK_avx2(n)))

#define HN_VHALVES(v) _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1))
#define HN_VSUM_avx2(v) HN_VSUM_plain(HN_VHALVES(v))
#define HN_VMOST_avx2(v) HN_VMOST_plain(_mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)))

#define HN_VEC_avx512 __m512
#define HN_LANES_avx512 16
#define HN_VLOAD_avx512 _mm512_loadu_ps
#define HN_VSTORE_avx512 _mm512_storeu_ps
#define HN_VSET_avx512 _mm512_set1_ps
#define HN_VADD_avx512 _mm512_add_ps
#define HN_VMUL_avx512 _mm512_mul_ps
#define HN_VFMA_avx512 _mm512_fmadd_ps
#define HN_VMAX_avx512 _mm512_max_ps
#define HN_VMIN_avx512 _mm512_min_ps
#define HN_VSTEP_avx512(k)                                                                                           \
    _mm512_setr_epi32(k, k + 2, k + 4, k + 6, k + 8, k + 10, k + 12, k + 14, k + 16, k + 18, k + 20, k + 22, k + 24, \
                      k + 26, k + 28, k + 30)
#define HN_VEVEN_avx512(a, b) _mm512_permutex2var_ps(a, HN_VSTEP_avx512(0), b)
#define HN_VODD_avx512(a, b) _mm512_permutex2var_ps(a, HN_VSTEP_avx512(1), b)
#define HN_VEQUAL_avx512(a, b, c) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), c)
#define HN_VOTHER_avx512(a, b, c) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ), c)
#define HN_VFNMA_avx512 _mm512_fnmadd_ps
#define HN_VLOAD_N_avx512(p, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), p)
#define HN_VSTORE_N_avx512(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1), v)
#define HN_VFIRST_avx512(v, n) _mm512_maskz_mov_ps((__mmask16)((1u << (n)) - 1), v)
#define HN_VSUM_avx512 _mm512_reduce_add_ps
#define HN_VMOST_avx512 _mm512_reduce_max_ps
