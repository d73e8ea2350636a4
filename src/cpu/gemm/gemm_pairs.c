#include "cpu/gemm/gemm_pairs.h"

#include <string.h>

#include "base/cpu.h"
#include "base/half.h"

#define LEAST 16 /* elements of a sum, columns */

gboolean hn_gemm_pairs_pay(int64_t k, int64_t n)
{
    return hn_cpu_isa() >= HN_ISA_BF16 && MIN(k, n) >= LEAST;
}

#define HN_LEVEL avx512
#include "cpu/core/turn_vec.h"

#define PAIRS __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")))
#define PAIRS_NAME(name) name##_pairs
#define PAIRS_FMA(v, b, sum) _mm512_dpbf16_ps(sum, (__m512bh)(v), (__m512bh)(b))

#define TILE_NAME PAIRS_NAME
#define TILE_TARGET PAIRS
#define TILE_FMA PAIRS_FMA
#include "cpu/gemm/gemm_kernel_tile.h"

const HnGemmKernelFn *hn_gemm_pairs_fns(int cols)
{
    return fns_pairs[cols > HN_LANES];
}

/* --- words -------------------------------------------------------------------------------------------------------- */

/* The first n of 2 HN_LANES adjacent elements. */
static inline __attribute__((always_inline)) PAIRS __m512 words_of(const float *from, int64_t n)
{
    const __m512 zero = _mm512_setzero_ps();
    const __m512 first = n >= HN_LANES ? HN_VLOAD(from) : HN_VLOAD_N(from, n);
    const __m512 second = n >= 2 * HN_LANES ? HN_VLOAD(from + HN_LANES)
                          : n > HN_LANES    ? HN_VLOAD_N(from + HN_LANES, n - HN_LANES)
                                            : zero;
    return (__m512)_mm512_cvtne2ps_pbh(second, first);
}

PAIRS void hn_gemm_pairs_row(float *to, const float *from, int64_t k)
{
    for (; k >= 2 * HN_LANES; k -= 2 * HN_LANES, to += HN_LANES, from += 2 * HN_LANES)
        HN_VSTORE(to, words_of(from, 2 * HN_LANES));
    if (k > 0) {
        const __m512 last = words_of(from, k);
        HN_VSTORE_N(to, last, hn_gemm_pairs_words(k));
    }
}

/* Words of two rows' elements. */
static inline __attribute__((always_inline)) PAIRS __m512 words_of_rows(__m512 first, __m512 second)
{
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(first));
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(second));
    return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

/* to[n]: of each of n adjacent columns, the element of two rows; second NULL: zeros. */
static PAIRS void pack_rows(float *to, const float *first, const float *second, int64_t n)
{
    int64_t i = 0;
    const __m512 zero = _mm512_setzero_ps();
    for (; i + HN_LANES <= n; i += HN_LANES)
        HN_VSTORE(to + i, words_of_rows(HN_VLOAD(first + i), second != NULL ? HN_VLOAD(second + i) : zero));
    if (i < n) {
        const __m512 low = HN_VLOAD_N(first + i, n - i), high = second != NULL ? HN_VLOAD_N(second + i, n - i) : zero;
        const __m512 last = words_of_rows(low, high);
        HN_VSTORE_N(to + i, last, n - i);
    }
}

void hn_gemm_pairs_columns(float *to, int64_t to_pitch, const float *from, int64_t pitch, int64_t k, int64_t n)
{
    for (int64_t i = 0; i < k; i += 2, to += to_pitch, from += 2 * pitch)
        pack_rows(to, from, i + 1 < k ? from + pitch : NULL, n);
}

/* --- panels ------------------------------------------------------------------------------------------------------- */

/* A panel whose columns, `col` elements apart, are adjacent in memory; `width` of them, then zeros. */
static PAIRS void pack_columns(float *to, const float *from, int64_t col, int64_t k, int64_t width)
{
    for (int64_t half = 0; half < 2; half++, to += HN_LANES, from += HN_LANES * col, width -= HN_LANES)
        for (int64_t i = 0; i < k; i += 2 * HN_LANES) {
            const int64_t some = MIN(k - i, 2 * HN_LANES);
            __m512 v[HN_LANES];
            for (int64_t c = 0; c < HN_LANES; c++)
                v[c] = c < width ? words_of(from + c * col + i, some) : _mm512_setzero_ps();
            HN_V(turn_vectors)(v);
            for (int64_t r = 0; r < hn_gemm_pairs_words(some); r++)
                HN_VSTORE(to + (i / 2 + r) * 2 * HN_LANES, v[r]);
        }
}

static void pack_any(float *to, const char *from, int64_t row, int64_t col, int64_t k, int64_t width)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t c = 0; c < width; c++) {
            float v;
            memcpy(&v, from + (i * row + c * col) * (int64_t)sizeof v, sizeof v);
            const uint16_t half = hn_bf16_from_f32(v);
            memcpy((char *)(to + i / 2 * 2 * HN_LANES + c) + i % 2 * (int64_t)sizeof half, &half, sizeof half);
        }
}

void hn_gemm_pairs_pack(float *to, const void *b, int64_t row, int64_t col, int64_t k, int64_t n)
{
    const int64_t cols = 2 * HN_LANES, words = hn_gemm_pairs_words(k), size = sizeof(float);
    const char *from = b;
    for (int64_t j = 0; j < n; j += cols, to += words * cols, from += cols * col * size) {
        const int64_t width = MIN(cols, n - j);
        const float *const in = (gconstpointer)from; /* perhaps misaligned */
        if (row == 1) {
            pack_columns(to, in, col, k, width);
            continue;
        }
        if (width < cols || col != 1)
            memset(to, 0, (gsize)(words * cols * size));
        if (col != 1)
            pack_any(to, from, row, col, k, width);
        else
            hn_gemm_pairs_columns(to, cols, in, row, k, width);
    }
}
