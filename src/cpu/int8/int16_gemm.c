#include "cpu/int8/int16_gemm.h"

#include <immintrin.h>
#include <string.h>

#include "base/cpu.h"

#define U HN_INT_UNIT
#define ROWS 6              /* of a at a time */
#define WIDTH (2 * U)       /* columns at a time */
#define TILE_BYTES 262144.0 /* of packed units: half of a core's cache */
#define TILE_UNITS 16
#define INLINE static inline __attribute__((always_inline))

/* --- products of up to ROWS rows with two units: c[ROWS][WIDTH] --------------------------------------------------- */

static void micro_plain(int32_t *c, int rows, const int16_t *a, const int16_t *b, const HnInt16Gemm *p)
{
    for (int r = 0; r < rows; r++, a += 2 * p->pairs, c += WIDTH)
        for (int u = 0; u < 2; u++) {
            const int16_t *from = b + u * p->pairs * 2 * U;
            for (int64_t k = 0; k < p->pairs; k++, from += 2 * U)
                for (int j = 0; j < U; j++) {
                    uint32_t sum = (uint32_t)(a[2 * k] * from[2 * j] + a[2 * k + 1] * from[2 * j + 1]);
                    c[u * U + j] = (int32_t)((uint32_t)c[u * U + j] + sum);
                }
        }
}

INLINE int32_t pair_at(const int16_t *a)
{
    int32_t v;
    memcpy(&v, a, sizeof v);
    return v;
}

#define AVX2 __attribute__((target("avx2")))

AVX2 INLINE void of_avx2(int32_t *c, const int rows, const int16_t *a, const int16_t *b, int64_t pairs)
{
    __m256i x[ROWS], y[ROWS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        x[r] = _mm256_loadu_si256((const __m256i *)(c + r * WIDTH));
        y[r] = _mm256_loadu_si256((const __m256i *)(c + r * WIDTH + 8));
    }
    for (int64_t k = 0; k < pairs; k++, b += 2 * U) {
        const __m256i b0 = _mm256_loadu_si256((const __m256i *)b), b1 = _mm256_loadu_si256((const __m256i *)(b + U));
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            const __m256i v = _mm256_set1_epi32(pair_at(a + 2 * (r * pairs + k)));
            x[r] = _mm256_add_epi32(x[r], _mm256_madd_epi16(v, b0));
            y[r] = _mm256_add_epi32(y[r], _mm256_madd_epi16(v, b1));
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        _mm256_storeu_si256((__m256i *)(c + r * WIDTH), x[r]);
        _mm256_storeu_si256((__m256i *)(c + r * WIDTH + 8), y[r]);
    }
}

AVX2 static void micro_avx2(int32_t *c, int rows, const int16_t *a, const int16_t *b, const HnInt16Gemm *p)
{
    for (int u = 0; u < 2; u++, c += U, b += p->pairs * 2 * U)
        switch (rows) {
        case 1:
            of_avx2(c, 1, a, b, p->pairs);
            break;
        case 2:
            of_avx2(c, 2, a, b, p->pairs);
            break;
        case 3:
            of_avx2(c, 3, a, b, p->pairs);
            break;
        case 4:
            of_avx2(c, 4, a, b, p->pairs);
            break;
        case 5:
            of_avx2(c, 5, a, b, p->pairs);
            break;
        default:
            of_avx2(c, 6, a, b, p->pairs);
        }
}

/* The same on 512 bits, by either way to add the products of pairs. */
#define DEFINE_512(name, attribute, ADD)                                                                               \
    attribute INLINE void of_##name(int32_t *c, const int rows, const int16_t *a, const int16_t *b, int64_t pairs)     \
    {                                                                                                                  \
        __m512i x[ROWS], y[ROWS];                                                                                      \
        const int16_t *second = b + pairs * 2 * U;                                                                     \
        _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++)                                                         \
        {                                                                                                              \
            x[r] = _mm512_loadu_si512(c + r * WIDTH);                                                                  \
            y[r] = _mm512_loadu_si512(c + r * WIDTH + U);                                                              \
        }                                                                                                              \
        for (int64_t k = 0; k < pairs; k++) {                                                                          \
            const __m512i b0 = _mm512_loadu_si512(b + k * 2 * U), b1 = _mm512_loadu_si512(second + k * 2 * U);         \
            _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++)                                                     \
            {                                                                                                          \
                const __m512i v = _mm512_set1_epi32(pair_at(a + 2 * (r * pairs + k)));                                 \
                x[r] = ADD(x[r], v, b0);                                                                               \
                y[r] = ADD(y[r], v, b1);                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++)                                                         \
        {                                                                                                              \
            _mm512_storeu_si512(c + r * WIDTH, x[r]);                                                                  \
            _mm512_storeu_si512(c + r * WIDTH + U, y[r]);                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    attribute static void micro_##name(int32_t *c, int rows, const int16_t *a, const int16_t *b, const HnInt16Gemm *p) \
    {                                                                                                                  \
        switch (rows) {                                                                                                \
        case 1:                                                                                                        \
            of_##name(c, 1, a, b, p->pairs);                                                                           \
            break;                                                                                                     \
        case 2:                                                                                                        \
            of_##name(c, 2, a, b, p->pairs);                                                                           \
            break;                                                                                                     \
        case 3:                                                                                                        \
            of_##name(c, 3, a, b, p->pairs);                                                                           \
            break;                                                                                                     \
        case 4:                                                                                                        \
            of_##name(c, 4, a, b, p->pairs);                                                                           \
            break;                                                                                                     \
        case 5:                                                                                                        \
            of_##name(c, 5, a, b, p->pairs);                                                                           \
            break;                                                                                                     \
        default:                                                                                                       \
            of_##name(c, 6, a, b, p->pairs);                                                                           \
        }                                                                                                              \
    }
#define ADD_PAIRS(sum, x, y) _mm512_add_epi32(sum, _mm512_madd_epi16(x, y))
DEFINE_512(avx512, __attribute__((target("avx512f,avx512bw"))), ADD_PAIRS)
DEFINE_512(vnni, __attribute__((target("avx512f,avx512bw,avx512vnni"))), _mm512_dpwssd_epi32)

/* --- sums to bytes -------------------------------------------------------------------------------------------------
 */

/* scale: one per column (step 1), or one. */
INLINE void bytes_of(const HnInt16GemmOut *o, uint8_t *restrict to, const int32_t *restrict sum, const float *scale,
                     const int step, int64_t n)
{
    const double lo = o->dtype == HN_U8 ? 0 : -128, hi = o->dtype == HN_U8 ? 255 : 127, zero = o->zero, nan = o->nan;
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer, halves to even */
    for (int64_t i = 0; i < n; i++) {
        double v = (double)((float)sum[i] * scale[i * step]);
        v = v > 1024 ? 1024 : v;
        v = v < -1024 ? -1024 : v;
        v = (v + magic) - magic + zero;
        v = v > hi ? hi : v;
        v = v < lo ? lo : v;
        v = v == v ? v : nan;
        to[i] = (uint8_t)(int)v;
    }
}

#define DEFINE_BYTES(name, attribute)                                                                                \
    attribute static void bytes_##name(const HnInt16GemmOut *o, uint8_t *to, const int32_t *sum, const float *scale, \
                                       int64_t n)                                                                    \
    {                                                                                                                \
        if (o->column_step == 0)                                                                                     \
            bytes_of(o, to, sum, scale, 0, n);                                                                       \
        else                                                                                                         \
            bytes_of(o, to, sum, scale, 1, n);                                                                       \
    }
DEFINE_BYTES(plain, )
DEFINE_BYTES(avx2, AVX2)
DEFINE_BYTES(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl" HN_WIDE))))

/* --- moves when packing --------------------------------------------------------------------------------------------
 */

INLINE void widen_of(int16_t *restrict to, const uint8_t *restrict x, HnInt16GemmZero zero, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        to[j] = (int16_t)((x[j] ^ zero.flip) - zero.less);
}

/* Units of pairs, `pitch` apart, from two lines. */
INLINE void interleave_of(int16_t *restrict to, int64_t pitch, const int16_t *even, const int16_t *odd, int64_t n)
{
    for (int64_t u = 0; u < n; u++, to += pitch, even += U, odd += U)
        for (int j = 0; j < U; j++) {
            uint32_t pair = (uint16_t)even[j] | (uint32_t)(uint16_t)odd[j] << 16;
            memcpy(to + 2 * j, &pair, sizeof pair);
        }
}

#define DEFINE_MOVES(name, attribute)                                                                            \
    attribute static void widen_##name(int16_t *to, const uint8_t *x, HnInt16GemmZero zero, int64_t n)           \
    {                                                                                                            \
        widen_of(to, x, zero, n);                                                                                \
    }                                                                                                            \
    attribute static void interleave_##name(int16_t *to, int64_t pitch, const int16_t *even, const int16_t *odd, \
                                            int64_t n)                                                           \
    {                                                                                                            \
        interleave_of(to, pitch, even, odd, n);                                                                  \
    }
DEFINE_MOVES(plain, )
DEFINE_MOVES(avx2, AVX2)

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* The window reads each element once, in order. */
static gboolean reads_all(const HnWindowAxis *a)
{
    return a->kernel == 1 && a->stride == 1 && a->pad == 0 && a->out == a->in;
}

void hn_int16_gemm_init(HnInt16Gemm *p, int64_t m, int64_t channels, const HnWindowAxis *h, const HnWindowAxis *v)
{
    *p = (HnInt16Gemm){ .m = m, .channels = channels, .h = h != NULL ? *h : hn_window_one(), .v = *v };
    if (reads_all(&p->h) && reads_all(&p->v)) { /* the plane is one line */
        p->v.in = p->v.out = p->h.in * p->v.in;
        p->h = hn_window_one();
    }
    p->n = p->h.out * p->v.out;
    p->k = channels * p->h.kernel * p->v.kernel;
    p->pairs = (p->k + 1) / 2;
    p->units = (p->n + WIDTH - 1) / WIDTH * 2;
    double fit = TILE_BYTES / ((double)p->pairs * 2 * U * sizeof(int16_t));
    p->tile = MIN(p->units, (int64_t)CLAMP(fit, 2, TILE_UNITS) / 2 * 2);
    const HnIsa isa = hn_cpu_isa();
    p->micro = isa >= HN_ISA_VNNI ? micro_vnni : isa >= HN_ISA_AVX512 ? micro_avx512 : micro_avx2;
    p->bytes = isa >= HN_ISA_AVX512 ? bytes_avx512 : bytes_avx2;
    p->widen = widen_avx2;
    p->interleave = interleave_avx2;
    if (isa < HN_ISA_AVX2) {
        p->micro = micro_plain;
        p->bytes = bytes_plain;
        p->widen = widen_plain;
        p->interleave = interleave_plain;
    }
}

void hn_int16_gemm_init_matrix(HnInt16Gemm *p, int64_t m, int64_t k, int64_t columns)
{
    HnWindowAxis line = hn_window_one();
    line.in = line.out = columns;
    hn_int16_gemm_init(p, m, k, NULL, &line);
}

gsize hn_int16_gemm_rows_bytes(const HnInt16Gemm *p)
{
    return (gsize)(p->m * p->pairs * 2) * sizeof(int16_t);
}

gsize hn_int16_gemm_units_bytes(const HnInt16Gemm *p, int64_t units)
{
    return (gsize)(units * p->pairs * 2 * U) * sizeof(int16_t);
}

gsize hn_int16_gemm_line_bytes(const HnInt16Gemm *p)
{
    return (gsize)(2 * p->tile * U) * sizeof(int16_t);
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

HnInt16GemmZero hn_int16_gemm_zero(HnDtype dtype, int64_t zero)
{
    const gboolean is_signed = dtype == HN_I8;
    return (HnInt16GemmZero){ is_signed ? 0x80 : 0, (int16_t)(zero + (is_signed ? 0x80 : 0)) };
}

void hn_int16_gemm_pack_rows(const HnInt16Gemm *p, int16_t *to, const void *a, HnDtype dtype, const void *zero,
                             int zero_step)
{
    const uint8_t *from = a;
    for (int64_t r = 0; r < p->m; r++, from += p->k, to += 2 * p->pairs) {
        int64_t z = 0;
        if (zero != NULL)
            z = dtype == HN_I8 ? ((const int8_t *)zero)[r * zero_step] : ((const uint8_t *)zero)[r * zero_step];
        const HnInt16GemmZero o = hn_int16_gemm_zero(dtype, z);
        for (int64_t k = 0; k < p->k; k++)
            to[k] = (int16_t)((from[k] ^ o.flip) - o.less);
        if (p->k % 2 != 0)
            to[p->k] = 0;
    }
}

/* Row k of b for `left` columns from `column` on: what tap (a, b) of a channel reads, zeros where that is padding. */
static void read_line(const HnInt16Gemm *p, int16_t *to, const uint8_t *plane, int64_t a, int64_t b,
                      HnInt16GemmZero zero, int64_t column, int64_t left)
{
    const HnWindowAxis *h = &p->h, *v = &p->v;
    const int64_t beyond = MAX(0, column + left - p->n);
    int64_t o = column / v->out, at = column % v->out, lo, hi;
    memset(to + left - beyond, 0, (gsize)beyond * sizeof *to);
    left -= beyond;
    hn_window_range(v, b, &lo, &hi);
    for (; left > 0; o++, at = 0) {
        const int64_t n = MIN(left, v->out - at), i = o * h->stride + a * h->dilation - h->pad;
        const int64_t from = CLAMP(lo - at, 0, n), end = i < 0 || i >= h->in ? from : CLAMP(hi - at, from, n);
        memset(to, 0, (gsize)from * sizeof *to);
        const uint8_t *x = plane + (end > from ? i * v->in + (at + from) * v->stride + b * v->dilation - v->pad : 0);
        if (v->stride == 1)
            p->widen(to + from, x, zero, end - from);
        else
            for (int64_t j = 0; j < end - from; j++)
                to[from + j] = (int16_t)((x[j * v->stride] ^ zero.flip) - zero.less);
        memset(to + end, 0, (gsize)(n - end) * sizeof *to);
        to += n;
        left -= n;
    }
}

void hn_int16_gemm_pack_units(const HnInt16Gemm *p, int16_t *to, const void *x, HnInt16GemmZero zero, int64_t first,
                              int64_t n, int16_t *line)
{
    const int64_t taps = p->h.kernel * p->v.kernel, plane = p->h.in * p->v.in, columns = n * U;
    for (int64_t k = 0; k < 2 * p->pairs; k++) {
        int16_t *row = line + k % 2 * columns;
        const int64_t tap = k % taps;
        if (k < p->k)
            read_line(p, row, (const uint8_t *)x + k / taps * plane, tap / p->v.kernel, tap % p->v.kernel, zero,
                      first * U, columns);
        else
            memset(row, 0, (gsize)columns * sizeof *row);
        if (k % 2 == 0)
            continue;
        p->interleave(to + k / 2 * 2 * U, p->pairs * 2 * U, line, line + columns, n);
    }
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void store_rows(const HnInt16Gemm *p, const HnInt16GemmOut *o, const int32_t *c, int64_t row, int rows,
                       int64_t column, int64_t n)
{
    for (int r = 0; r < rows; r++, c += WIDTH) {
        const int64_t at = (row + r) * o->pitch + column;
        if (o->dtype == HN_I32)
            memcpy((int32_t *)o->y + at, c, (gsize)n * sizeof *c);
        else
            p->bytes(o, (uint8_t *)o->y + at, c, o->scale + (row + r) * o->row_step + column * o->column_step, n);
    }
}

void hn_int16_gemm_multiply(const HnInt16Gemm *p, const int16_t *a, const int16_t *b, int64_t first, int64_t n,
                            const int32_t *bias, const HnInt16GemmOut *out)
{
    for (int64_t u = 0; u < n; u += 2) {
        const int64_t column = (first + u) * U, columns = MIN(p->n - column, WIDTH);
        for (int64_t r = 0; columns > 0 && r < p->m; r += ROWS) {
            const int rows = (int)MIN(p->m - r, ROWS);
            int32_t c[ROWS * WIDTH];
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < WIDTH; j++)
                    c[i * WIDTH + j] = bias != NULL ? bias[r + i] : 0;
            p->micro(c, rows, a + r * 2 * p->pairs, b + u * p->pairs * 2 * U, p);
            store_rows(p, out, c, r, rows, column, columns);
        }
    }
}
