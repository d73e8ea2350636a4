/*
 * Tiles of 16-bit integers and few-bit weights at one instruction level, for wq_kernel.c.
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL avx2
#endif
#include <float.h>
#include <math.h>

#include "cpu/core/vec.h"
#include "cpu/gemm/wq_kernel.h"

#ifndef HN_WQ_MOST
#define HN_WQ_MOST 32639   /* that a number becomes: 127 * 256 + 127, two signed bytes hold it */
#define HN_WQ_LEAST 1e-30f /* what is below is taken for zeros: its scale would not be a normal number */

static inline __m128i weight_larger(__m128i a, __m128i b)
{
    const __m128i first = _mm_cmpgt_epi32(a, b);
    return _mm_or_si128(_mm_and_si128(first, a), _mm_andnot_si128(first, b));
}

static inline int32_t weight_largest(__m128i v)
{
    v = weight_larger(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(weight_larger(v, _mm_shuffle_epi32(v, 0xb1)));
}

static inline float weight_total(__m128 v)
{
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}
#endif

#define HN_WQ_ROWS_plain 4
#define LARGEST_plain(v) weight_largest(v)
#define IMAX_plain(a, b) weight_larger(a, b)
#define MAGNITUDE_plain(v) _mm_and_si128(_mm_castps_si128(v), _mm_set1_epi32(INT32_MAX))
#define TOTAL_plain(v) weight_total(v)
#define STORE16_plain(p, v)                                                            \
    do {                                                                               \
        const __m128i integers = _mm_cvtps_epi32(v);                                   \
        _mm_storel_epi64((__m128i *)(void *)(p), _mm_packs_epi32(integers, integers)); \
    } while (0)
#define IVEC_plain __m128i
#define ISET_plain _mm_set1_epi32
#define IADD_plain _mm_add_epi32
#define FLOATS_plain _mm_cvtepi32_ps
#define DOT_plain(sum, a, b) _mm_add_epi32(sum, _mm_madd_epi16(a, b))
#define BYTES_plain(p) \
    _mm_srai_epi16(_mm_unpacklo_epi8(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)(const void *)(p))), 8)
#define SHL_plain _mm_slli_epi32
#define SAR_plain _mm_srai_epi32
#define SHR_plain _mm_srli_epi32
#define PAIRS_plain(p) _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(const void *)(p)), _mm_setzero_si128())
#define RAW_plain(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define NIBBLE_plain(v, i) \
    ((i) == 3 ? _mm_srli_epi16(v, 12) : _mm_and_si128(_mm_srli_epi16(v, 4 * (i)), _mm_set1_epi16(15)))
#define MINUS_plain(p) _mm_setr_epi32(-(p)[0], -(p)[1], -(p)[2], -(p)[3])

#define HN_WQ_ROWS_avx2 4
#define LARGEST_avx2(v) weight_largest(weight_larger(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)))
#define IMAX_avx2 _mm256_max_epi32
#define MAGNITUDE_avx2(v) _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(INT32_MAX))
#define TOTAL_avx2(v) weight_total(_mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)))
#define STORE16_avx2(p, v)                                                                                          \
    do {                                                                                                            \
        const __m256i integers = _mm256_cvtps_epi32(v);                                                             \
        _mm_storeu_si128((__m128i *)(void *)(p),                                                                    \
                         _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1))); \
    } while (0)
#define IVEC_avx2 __m256i
#define ISET_avx2 _mm256_set1_epi32
#define IADD_avx2 _mm256_add_epi32
#define FLOATS_avx2 _mm256_cvtepi32_ps
#define DOT_avx2(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define BYTES_avx2(p) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define SHL_avx2 _mm256_slli_epi32
#define SAR_avx2 _mm256_srai_epi32
#define SHR_avx2 _mm256_srli_epi32
#define PAIRS_avx2(p) _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define RAW_avx2(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define NIBBLE_avx2(v, i) \
    ((i) == 3 ? _mm256_srli_epi16(v, 12) : _mm256_and_si256(_mm256_srli_epi16(v, 4 * (i)), _mm256_set1_epi16(15)))
#define MINUS_avx2(p) \
    _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p))))

#define HN_WQ_ROWS_avx512 6
#define LARGEST_avx512(v) _mm512_reduce_max_epi32(v)
#define IMAX_avx512 _mm512_max_epi32
#define MAGNITUDE_avx512(v) _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MAX))
#define TOTAL_avx512(v) _mm512_reduce_add_ps(v)
#define STORE16_avx512(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(v)))
#define IVEC_avx512 __m512i
#define ISET_avx512 _mm512_set1_epi32
#define IADD_avx512 _mm512_add_epi32
#define FLOATS_avx512 _mm512_cvtepi32_ps
#define DOT_avx512(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#define BYTES_avx512(p) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define SHL_avx512 _mm512_slli_epi32
#define SAR_avx512 _mm512_srai_epi32
#define SHR_avx512 _mm512_srli_epi32
#define PAIRS_avx512(p) _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define RAW_avx512(p) _mm512_loadu_si512(p)
#define NIBBLE_avx512(v, i) \
    ((i) == 3 ? _mm512_srli_epi16(v, 12) : _mm512_and_si512(_mm512_srli_epi16(v, 4 * (i)), _mm512_set1_epi16(15)))
#define MINUS_avx512(p) \
    _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))))

#define HN_TARGET_weightvnni __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#define HN_VEC_weightvnni HN_VEC_avx512
#define HN_LANES_weightvnni HN_LANES_avx512
#define HN_VLOAD_weightvnni HN_VLOAD_avx512
#define HN_VSTORE_weightvnni HN_VSTORE_avx512
#define HN_VSET_weightvnni HN_VSET_avx512
#define HN_VADD_weightvnni HN_VADD_avx512
#define HN_VMUL_weightvnni HN_VMUL_avx512
#define HN_VFMA_weightvnni HN_VFMA_avx512
#define HN_VLOAD_N_weightvnni HN_VLOAD_N_avx512
#define HN_VSTORE_N_weightvnni HN_VSTORE_N_avx512
#define HN_WQ_ROWS_weightvnni HN_WQ_ROWS_avx512
#define LARGEST_weightvnni LARGEST_avx512
#define IMAX_weightvnni IMAX_avx512
#define MAGNITUDE_weightvnni MAGNITUDE_avx512
#define TOTAL_weightvnni TOTAL_avx512
#define STORE16_weightvnni STORE16_avx512
#define IVEC_weightvnni IVEC_avx512
#define ISET_weightvnni ISET_avx512
#define IADD_weightvnni IADD_avx512
#define FLOATS_weightvnni FLOATS_avx512
#define DOT_weightvnni(sum, a, b) _mm512_dpwssd_epi32(sum, a, b)
#define BYTES_weightvnni BYTES_avx512
#define RAW_weightvnni RAW_avx512
#define NIBBLE_weightvnni NIBBLE_avx512
#define MINUS_weightvnni MINUS_avx512
#define SHL_weightvnni SHL_avx512
#define SAR_weightvnni SAR_avx512
#define SHR_weightvnni SHR_avx512
#define PAIRS_weightvnni PAIRS_avx512

/* Sums stay in the order written: compilers that exchange additions of integers run out of registers here. */
#define KEEP(v) __asm__("" : "+v"(v))

#define IVEC HN_JOIN(IVEC, HN_LEVEL)
#define ISET HN_JOIN(ISET, HN_LEVEL)
#define IADD HN_JOIN(IADD, HN_LEVEL)
#define FLOATS HN_JOIN(FLOATS, HN_LEVEL)
#define DOT HN_JOIN(DOT, HN_LEVEL)
#define BYTES HN_JOIN(BYTES, HN_LEVEL)
#define RAW HN_JOIN(RAW, HN_LEVEL)
#define NIBBLE HN_JOIN(NIBBLE, HN_LEVEL)
#define MINUS HN_JOIN(MINUS, HN_LEVEL)
#define SHL HN_JOIN(SHL, HN_LEVEL)
#define SAR HN_JOIN(SAR, HN_LEVEL)
#define SHR HN_JOIN(SHR, HN_LEVEL)
#define PAIRS HN_JOIN(PAIRS, HN_LEVEL) /* 16 bits to a lane, in its lower half */
#define LARGEST HN_JOIN(LARGEST, HN_LEVEL)
#define IMAX HN_JOIN(IMAX, HN_LEVEL)
#define MAGNITUDE HN_JOIN(MAGNITUDE, HN_LEVEL)
#define TOTAL HN_JOIN(TOTAL, HN_LEVEL)
#define STORE16 HN_JOIN(STORE16, HN_LEVEL)
#define LANES HN_LANES
#define COLS (2 * LANES)

/* Elements k and k + 1 of a row, side by side in each lane. */
static inline __attribute__((always_inline)) HN_TARGET IVEC HN_V(weight_pair)(const int16_t *q)
{
    int32_t two;
    memcpy(&two, q, sizeof two);
    return ISET(two);
}

/* rows and bits are constants after inlining. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(wq_kernel)(const HnWqKernel *t, const int rows,
                                                                            const int bits)
{
    const HnWqForm *const f = t->form;
    const int sets = rows == 1 ? 4 : rows == 2 ? 2 : 1; /* few rows have too few sums to hide a product's latency */
    const char *w = t->w;
    const float *scale = NULL;
    const int8_t *zero = NULL;
    HN_VEC sum[HN_WQ_MAX_ROWS][2];
    HN_UNROLL
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = HN_VSET(0);
    for (int64_t s = 0, at = 0; s < f->cut.segs; s++) {
        if (s == 0 || f->blocked) {
            scale = (const float *)(const void *)w;
            w += COLS * sizeof(float);
            zero = f->zeros ? (const int8_t *)w : NULL;
            w += f->zeros ? COLS : 0;
        }
        const int64_t groups = s < f->cut.segs - 1 ? f->cut.groups : f->cut.last;
        IVEC part[4][HN_WQ_MAX_ROWS][2];
        HN_UNROLL
        for (int r = 0; r < rows; r++) {
            part[0][r][0] = part[0][r][1] = ISET(zero != NULL ? 0 : -f->zero * (int32_t)t->x.sum[r * f->cut.segs + s]);
            HN_UNROLL
            for (int i = 1; i < sets; i++)
                part[i][r][0] = part[i][r][1] = ISET(0);
        }
        for (int64_t g = 0; g < groups; g++, at += HN_WQ_GROUP, w += COLS * bits) {
            const int16_t *const q = t->x.q + at;
            const IVEC n0 = bits == 4 ? RAW(w) : ISET(0), n1 = bits == 4 ? RAW(w + COLS * 2) : n0;
            HN_UNROLL
            for (int i = 0; i < HN_WQ_GROUP / 2; i++) {
                const IVEC w0 = bits == 4 ? NIBBLE(n0, i) : BYTES(w + i * COLS * 2);
                const IVEC w1 = bits == 4 ? NIBBLE(n1, i) : BYTES(w + i * COLS * 2 + COLS);
                HN_UNROLL
                for (int r = 0; r < rows; r++) {
                    const IVEC x = HN_V(weight_pair)(q + r * f->cut.padded + 2 * i);
                    part[i % sets][r][0] = DOT(part[i % sets][r][0], x, w0);
                    part[i % sets][r][1] = DOT(part[i % sets][r][1], x, w1);
                    KEEP(part[i % sets][r][0]);
                    KEEP(part[i % sets][r][1]);
                }
            }
        }
        HN_UNROLL
        for (int r = 0; r < rows; r++) {
            HN_UNROLL
            for (int i = sets - 1; i > 0; i--) {
                part[i - 1][r][0] = IADD(part[i - 1][r][0], part[i][r][0]);
                part[i - 1][r][1] = IADD(part[i - 1][r][1], part[i][r][1]);
            }
            HN_VEC x0 = HN_VSET(t->x.scale[r * f->cut.segs + s]), x1 = x0;
            if (f->blocked) {
                x0 = HN_VMUL(x0, HN_VLOAD(scale));
                x1 = HN_VMUL(x1, HN_VLOAD(scale + LANES));
            }
            HN_VEC p0 = FLOATS(part[0][r][0]), p1 = FLOATS(part[0][r][1]);
            if (zero != NULL) {
                const HN_VEC q = HN_VSET(t->x.sum[r * f->cut.segs + s]);
                p0 = HN_VFMA(q, FLOATS(MINUS(zero)), p0);
                p1 = HN_VFMA(q, FLOATS(MINUS(zero + LANES)), p1);
            }
            sum[r][0] = HN_VFMA(p0, x0, sum[r][0]);
            sum[r][1] = HN_VFMA(p1, x1, sum[r][1]);
        }
    }
    const int tail = t->cols - LANES;
    HN_VEC b0 = HN_VSET(0), b1 = b0;
    if (t->bias != NULL) {
        b0 = tail >= 0 ? HN_VLOAD(t->bias) : HN_VLOAD_N(t->bias, t->cols);
        b1 = tail == LANES ? HN_VLOAD(t->bias + LANES) : tail > 0 ? HN_VLOAD_N(t->bias + LANES, tail) : b0;
    }
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        float *const c = t->c + r * t->c_pitch;
        const HN_VEC y0 = f->blocked ? HN_VADD(sum[r][0], b0) : HN_VFMA(sum[r][0], HN_VLOAD(scale), b0);
        const HN_VEC y1 = f->blocked ? HN_VADD(sum[r][1], b1) : HN_VFMA(sum[r][1], HN_VLOAD(scale + LANES), b1);
        if (tail >= 0)
            HN_VSTORE(c, y0);
        else
            HN_VSTORE_N(c, y0, t->cols);
        if (tail == LANES)
            HN_VSTORE(c + LANES, y1);
        else if (tail > 0)
            HN_VSTORE_N(c + LANES, y1, tail);
    }
}

#define TILE(n)                                                  \
    static HN_TARGET void HN_V(weight8_##n)(const HnWqKernel *t) \
    {                                                            \
        HN_V(wq_kernel)(t, n, 8);                                \
    }                                                            \
    static HN_TARGET void HN_V(weight4_##n)(const HnWqKernel *t) \
    {                                                            \
        HN_V(wq_kernel)(t, n, 4);                                \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if HN_JOIN(HN_WQ_ROWS, HN_LEVEL) > 4
TILE(5)
TILE(6)
#endif

static const HnWqFn HN_V(weight_fns)[2][HN_WQ_MAX_ROWS] = {
#define FOUR(v) HN_V(v##_1), HN_V(v##_2), HN_V(v##_3), HN_V(v##_4)
#if HN_JOIN(HN_WQ_ROWS, HN_LEVEL) > 4
    { FOUR(weight8), HN_V(weight8_5), HN_V(weight8_6) },
    { FOUR(weight4), HN_V(weight4_5), HN_V(weight4_6) },
#else
    { FOUR(weight8) },
    { FOUR(weight4) },
#endif
};

/* Weight i of a group, one vector of columns of which begins at w. */
static inline __attribute__((always_inline)) HN_TARGET IVEC HN_V(weight_of)(const char *w, const int bits, const int i)
{
    if (bits == 4)
        return SHR(SHL(RAW(w), (i % 2 == 0 ? 28 : 12) - i / 2 * 4), 28);
    return SAR(SHL(PAIRS(w + i / 2 * COLS * 2), i % 2 == 0 ? 24 : 16), 24);
}

/* Segments [from, to) of a panel as numbers: y[k][COLS]. */
static inline __attribute__((always_inline)) HN_TARGET void
HN_V(weight_numbers)(const HnWqForm *f, const char *w, int64_t from, int64_t to, float *y, const int bits)
{
    const int64_t head = COLS * ((int64_t)sizeof(float) + (f->zeros ? 1 : 0));
    const int64_t data = f->cut.groups * COLS * bits, step = data + (f->blocked ? head : 0);
    for (int64_t s = from; s < to; s++) {
        const char *at = w + s * step;
        const float *scale = (const float *)(const void *)(f->blocked ? at : w);
        const int8_t *zero = (const int8_t *)(scale + COLS);
        at += head;
        const HN_VEC s0 = HN_VLOAD(scale), s1 = HN_VLOAD(scale + LANES);
        const IVEC z0 = f->zeros ? MINUS(zero) : ISET(-f->zero), z1 = f->zeros ? MINUS(zero + LANES) : z0;
        const int64_t n = s < f->cut.segs - 1 ? f->cut.segment : f->cut.k - s * f->cut.segment;
        for (int64_t k = 0; k < n; k += HN_WQ_GROUP, at += COLS * bits) {
            HN_UNROLL
            for (int i = 0; i < HN_WQ_GROUP; i++, y += 2 * LANES) {
                if (k + i >= n)
                    break;
                const IVEC a = IADD(HN_V(weight_of)(at, bits, i), z0);
                const IVEC b = IADD(HN_V(weight_of)(at + COLS * bits / (bits == 4 ? 2 : 8), bits, i), z1);
                HN_VSTORE(y, HN_VMUL(FLOATS(a), s0));
                HN_VSTORE(y + LANES, HN_VMUL(FLOATS(b), s1));
            }
        }
    }
}

static HN_TARGET void HN_V(weight_unpack)(const HnWqForm *f, const char *w, int64_t from, int64_t to, float *y)
{
    if (f->bits == 4)
        HN_V(weight_numbers)(f, w, from, to, y, 4);
    else
        HN_V(weight_numbers)(f, w, from, to, y, 8);
}

/* Of n numbers the bits of the largest magnitude: those of larger ones are larger, of infinity and NaN the largest. */
static inline __attribute__((always_inline)) HN_TARGET int32_t HN_V(weight_most)(const float *x, int64_t n)
{
    IVEC most = ISET(0);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        most = IMAX(most, MAGNITUDE(HN_VLOAD(x + i)));
    if (i < n)
        most = IMAX(most, MAGNITUDE(HN_VLOAD_N(x + i, (int)(n - i))));
    return LARGEST(most);
}

/* n numbers, times a factor, as integers of which so many are stored, zeros behind them; returns their sum, where that
 * is wanted. Conversions round halves to even, too. */
static inline __attribute__((always_inline)) HN_TARGET float
HN_V(weight_round)(int16_t *q, const float *x, int64_t n, int64_t padded, float factor, const gboolean sums)
{
    HN_VEC sum = HN_VSET(0);
    const int64_t whole = n / LANES * LANES;
    const int tail = (int)(n - whole);
    const HN_VEC by = HN_VSET(factor);
    const HN_VEC magic = HN_VSET(12582912.0f); /* a sum with it has no place for a fraction: halves go to even */
    int64_t i = 0;
    for (; i < n; i += LANES) {
        const HN_VEC v = i < whole ? HN_VLOAD(x + i) : HN_VLOAD_N(x + i, tail);
        const HN_VEC exact = HN_VMUL(v, by);
        const HN_VEC rounded = sums ? HN_VADD(HN_VADD(exact, magic), HN_VMUL(magic, HN_VSET(-1))) : exact;
        if (sums)
            sum = HN_VADD(sum, rounded);
        if (i + LANES <= padded) {
            STORE16(q + i, rounded);
        } else {
            int16_t last[LANES];
            STORE16(last, rounded);
            memcpy(q + i, last, (size_t)(padded - i) * sizeof *q);
        }
    }
    if (i < padded)
        memset(q + i, 0, (size_t)(padded - i) * sizeof *q);
    return sums ? TOTAL(sum) : 0;
}

/* Scales are NaN where a number is not finite. The largest numbers of all segments come first, since rounding waits for
 * them. */
static HN_TARGET void HN_V(weight_row)(const HnWqCut *c, int16_t *q, float *scale, float *sum, const float *x,
                                       gboolean sums)
{
    for (int64_t s = 0; s < c->segs; s++) {
        const int32_t bits =
            HN_V(weight_most)(x + s * c->segment, s == c->segs - 1 ? c->k - s * c->segment : c->segment);
        memcpy(&scale[s], &bits, sizeof bits);
    }
    for (int64_t s = 0; s < c->segs; s++, x += c->segment, q += c->groups * HN_WQ_GROUP) {
        const gboolean last = s == c->segs - 1;
        const int64_t n = last ? c->k - s * c->segment : c->segment,
                      padded = (last ? c->last : c->groups) * HN_WQ_GROUP;
        const float largest = scale[s];
        const gboolean some = largest > HN_WQ_LEAST;
        const float by = some ? HN_WQ_MOST / largest : 0;
        const float total =
            sums ? HN_V(weight_round)(q, x, n, padded, by, TRUE) : HN_V(weight_round)(q, x, n, padded, by, FALSE);
        sum[s] = some ? total : 0;
        scale[s] = largest <= FLT_MAX ? (some ? largest * (1.0f / HN_WQ_MOST) : 0) : NAN;
    }
}

#undef KEEP
#undef IVEC
#undef ISET
#undef IADD
#undef FLOATS
#undef DOT
#undef BYTES
#undef RAW
#undef NIBBLE
#undef MINUS
#undef SHL
#undef SAR
#undef SHR
#undef PAIRS
#undef LARGEST
#undef IMAX
#undef MAGNITUDE
#undef TOTAL
#undef STORE16
#undef LANES
#undef COLS
#undef TILE
#undef FOUR
