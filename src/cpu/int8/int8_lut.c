#include "cpu/int8/int8_lut.h"

#include <immintrin.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/int8/int8_lut_avx2.h"

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

/* --- lines ---------------------------------------------------------------------------------------------------------
 */

static uint8_t on_line(const HnInt8Line *l, int x)
{
    const unsigned a = (unsigned)(x ^ l->x_flip) * 256 + l->low;
    const unsigned sum = MIN(a * l->by / 65536 + l->plus, 65535u);
    const unsigned y = (sum - MIN(sum, l->minus)) >> l->shift;
    return (uint8_t)(CLAMP(y, l->lo, l->hi) ^ l->y_flip);
}

#define UNIT ((int64_t)65536) /* of plus and minus */

/* What is added to x * 256 * by, in units of 2^-(16 + shift), must be from `from` on and below `to`. */
typedef struct {
    int64_t from, to;
    int tilt; /* there is more of it for steeper lines: 1, for less steep ones: -1 */
} Room;

/* Bytes v[] in the order of the line, the limits excluded where it may go beyond. */
static Room room_of(const int *v, int lo, int hi, int64_t by, int shift)
{
    const int64_t one = UNIT << shift;
    Room r = { .from = G_MININT64, .to = G_MAXINT64 };
    int first = 0, last = 0;
    for (int x = 0; x < HN_INT8_LUT; x++) {
        const int64_t at = x * 256 * by, from = v[x] * one - at, to = from + one;
        if (v[x] > lo && from > r.from) {
            r.from = from;
            first = x;
        }
        if (v[x] < hi && to < r.to) {
            r.to = to;
            last = x;
        }
    }
    r.tilt = first > last ? 1 : -1;
    return r;
}

static gboolean set_begin(HnInt8Line *l, const Room *r)
{
    for (int low = 0; low < 256; low++) {
        const int64_t part = low * (int64_t)l->by, need = r->from - part;
        const int64_t n = need >= 0 ? (need + UNIT - 1) / UNIT : -(-need / UNIT);
        if (part + n * UNIT >= r->to || n > UINT16_MAX || n < -UINT16_MAX)
            continue;
        l->low = (uint8_t)low;
        l->plus = (uint16_t)MAX(n, 0);
        l->minus = (uint16_t)MAX(-n, 0);
        return TRUE;
    }
    return FALSE;
}

/* The room shrinks on both sides of the best slope, which a search by halves finds; any with room enough will do. */
static gboolean find_slope(HnInt8Line *l, const int *v)
{
    for (l->shift = 8; l->shift > 0; l->shift--) {
        int from = 0, to = UINT16_MAX;
        while (from <= to) {
            const int by = (from + to) / 2;
            const Room r = room_of(v, l->lo, l->hi, by, l->shift);
            l->by = (uint16_t)by;
            if (r.from < r.to && set_begin(l, &r))
                return TRUE;
            if (r.tilt > 0)
                from = by + 1;
            else
                to = by - 1;
        }
        if (from <= UINT16_MAX) /* else steeper than this shift allows */
            return FALSE;
    }
    return FALSE;
}

static gboolean rises(const int *v)
{
    for (int x = 1; x < HN_INT8_LUT; x++)
        if (v[x] < v[x - 1])
            return FALSE;
    return v[0] < v[HN_INT8_LUT - 1];
}

static gboolean find_line(HnInt8Line *l, const uint8_t *table)
{
    static const uint8_t flips[] = { 0, 128, 255, 127 }; /* unsigned, signed, and both backwards */
    for (guint i = 0; i < 2 * G_N_ELEMENTS(flips); i++) {
        int v[HN_INT8_LUT];
        *l = (HnInt8Line){ .x_flip = flips[i / 2], .y_flip = i % 2 == 0 ? 0 : 128 };
        for (int x = 0; x < HN_INT8_LUT; x++)
            v[x] = table[x ^ l->x_flip] ^ l->y_flip;
        if (!rises(v))
            continue;
        l->lo = (uint8_t)v[0];
        l->hi = (uint8_t)v[HN_INT8_LUT - 1];
        gboolean same = find_slope(l, v);
        for (int x = 0; x < HN_INT8_LUT && same; x++)
            same = on_line(l, x) == table[x];
        if (same)
            return TRUE;
    }
    return FALSE;
}

static void find_steps(uint8_t *steps, const uint8_t *table)
{
    memcpy(steps, table, HN_INT8_LUT);
    for (int i = 16; i < HN_INT8_LUT; i++)
        steps[i] = i / 16 == 8 ? table[i] : table[i] ^ table[i - 16];
}

void hn_int8_lut_init(HnInt8Lut *m, const uint8_t *table)
{
    memcpy(m->table, table, HN_INT8_LUT);
    find_steps(m->steps, table);
    m->is_made = TRUE;
    m->is_line = find_line(&m->line, table);
}

/* --- AVX2 ----------------------------------------------------------------------------------------------------------
 */

#define LOAD16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE16(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define STORE32(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define LOAD8(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define STORE8(p, v) _mm_storel_epi64((__m128i *)(void *)(p), v)

/* A row that ends in a part of a vector has a last one that lies back, read before anything is written over it. OF(v):
 * 32 bytes for 32. */
#define ROW_AVX2(OF)                                                                                 \
    if (n >= 32) {                                                                                   \
        const __m256i last = LOAD32(x + n - 32);                                                     \
        for (int64_t i = 0; i + 32 < n; i += 32) {                                                   \
            const __m256i v = LOAD32(x + i);                                                         \
            STORE32(y + i, OF(v));                                                                   \
        }                                                                                            \
        STORE32(y + n - 32, OF(last));                                                               \
    } else if (n >= 16) {                                                                            \
        const __m256i v = OF(_mm256_set_m128i(LOAD16(x + n - 16), LOAD16(x)));                       \
        STORE16(y, _mm256_castsi256_si128(v));                                                       \
        STORE16(y + n - 16, _mm256_extracti128_si256(v, 1));                                         \
    } else if (n >= 8) {                                                                             \
        const __m256i both = _mm256_castsi128_si256(_mm_unpacklo_epi64(LOAD8(x), LOAD8(x + n - 8))); \
        const __m128i v = _mm256_castsi256_si128(OF(both));                                          \
        STORE8(y, v);                                                                                \
        STORE8(y + n - 8, _mm_unpackhi_epi64(v, v));                                                 \
    } else {                                                                                         \
        for (int64_t i = 0; i < n; i++)                                                              \
            y[i] = table[x[i]];                                                                      \
    }

typedef void (*RowsFn)(uint8_t *y, int64_t yp, const uint8_t *x, int64_t xp, const uint8_t *table, const HnInt8Lut *m,
                       int64_t rows, int64_t n);
#define ROWS                                                                                                        \
    (uint8_t * y, int64_t yp, const uint8_t *x, int64_t xp, const uint8_t *table, const HnInt8Lut *m, int64_t rows, \
     int64_t n)

static void rows_plain ROWS
{
    (void)m;
    for (; rows > 0; rows--, y += yp, x += xp)
        for (int64_t i = 0; i < n; i++)
            y[i] = table[x[i]];
}

HN_MAP_AVX2 static void table_rows_avx2 ROWS
{
    uint8_t own[HN_INT8_LUT];
    const uint8_t *steps = m != NULL ? m->steps : own;
    if (m == NULL)
        find_steps(own, table);
#define LOOK_UP(v) hn_map_look_up(steps, v)
    for (; rows > 0; rows--, y += yp, x += xp) {
        ROW_AVX2(LOOK_UP)
    }
}

HN_MAP_AVX2 static void line_rows_avx2 ROWS
{
    const HnMapLine line = hn_map_line(&m->line);
#define COMPUTE(v) hn_map_compute(&line, v)
    for (; rows > 0; rows--, y += yp, x += xp) {
        ROW_AVX2(COMPUTE)
    }
}

/* --- AVX-512 -------------------------------------------------------------------------------------------------------
 */

/* Words of the table for the bytes in the words of v, and of those the byte that each counts. */
#define PICK(v)                                                                                            \
    _mm512_srlv_epi16(_mm512_mask_blend_epi16(_mm512_test_epi16_mask(v, upper),                            \
                                              _mm512_permutex2var_epi16(t0, _mm512_srli_epi16(v, 1), t1),  \
                                              _mm512_permutex2var_epi16(t2, _mm512_srli_epi16(v, 1), t3)), \
                      _mm512_slli_epi16(_mm512_and_si512(v, odd), 3))

#define LOAD_TABLE                                                                     \
    const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64); \
    const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);

AVX512 static void table_rows_avx512 ROWS
{
    (void)m;
    LOAD_TABLE
    const __m512i low = _mm512_set1_epi16(255), upper = _mm512_set1_epi16(128), odd = _mm512_set1_epi16(1);
    for (; rows > 0; rows--, y += yp, x += xp)
        for (int64_t i = 0; i < n; i += 64) {
            const __mmask64 mask = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
            const __m512i v = _mm512_maskz_loadu_epi8(mask, x + i);
            const __m512i a = _mm512_and_si512(v, low), b = _mm512_srli_epi16(v, 8);
            const __m512i even = PICK(a), other = _mm512_slli_epi16(PICK(b), 8);
            _mm512_mask_storeu_epi8(y + i, mask, _mm512_ternarylogic_epi64(low, even, other, 0xca));
        }
}

AVX512 static void line_rows_avx512 ROWS
{
    (void)table;
    const HnInt8Line *l = &m->line;
    const __m512i by = _mm512_set1_epi16((short)l->by), low = _mm512_set1_epi8((char)l->low);
    const __m512i plus = _mm512_set1_epi16((short)l->plus), minus = _mm512_set1_epi16((short)l->minus);
    const __m512i x_flip = _mm512_set1_epi8((char)l->x_flip), y_flip = _mm512_set1_epi8((char)l->y_flip);
    const __m512i lo = _mm512_set1_epi8((char)l->lo), hi = _mm512_set1_epi8((char)l->hi);
    const __m128i shift = _mm_cvtsi32_si128(l->shift);
    for (; rows > 0; rows--, y += yp, x += xp)
        for (int64_t i = 0; i < n; i += 64) {
            const __mmask64 mask = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
            const __m512i v = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, x + i), x_flip);
            __m512i a = _mm512_mulhi_epu16(_mm512_unpacklo_epi8(low, v), by);
            __m512i b = _mm512_mulhi_epu16(_mm512_unpackhi_epi8(low, v), by);
            a = _mm512_srl_epi16(_mm512_subs_epu16(_mm512_adds_epu16(a, plus), minus), shift);
            b = _mm512_srl_epi16(_mm512_subs_epu16(_mm512_adds_epu16(b, plus), minus), shift);
            const __m512i limited = _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), lo), hi);
            _mm512_mask_storeu_epi8(y + i, mask, _mm512_xor_si512(limited, y_flip));
        }
}

gboolean hn_int8_has_vbmi(void)
{
    static gsize least; /* level that has them, and 1; asking the machine takes microseconds */
    if (g_once_init_enter(&least))
        g_once_init_leave(&least, 1 + (gsize)(hn_cpu_machine_isa() > HN_ISA_VNNI ? HN_ISA_BF16 : HN_ISA_VNNI));
    return (gsize)hn_cpu_isa() + 1 >= least && __builtin_cpu_supports("avx512vbmi");
}

VBMI static void table_rows_vbmi ROWS
{
    (void)m;
    LOAD_TABLE
    for (; rows > 0; rows--, y += yp, x += xp)
        for (int64_t i = 0; i < n; i += 64) {
            const __mmask64 mask = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
            const __m512i v = _mm512_maskz_loadu_epi8(mask, x + i);
            const __m512i lower = _mm512_permutex2var_epi8(t0, v, t1), upper = _mm512_permutex2var_epi8(t2, v, t3);
            _mm512_mask_storeu_epi8(y + i, mask, _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), lower, upper));
        }
}

/* --- rows ----------------------------------------------------------------------------------------------------------
 */

static int level_of(int64_t rows, int64_t n, gboolean is_line)
{
    const HnIsa isa = hn_cpu_isa();
    if (isa < HN_ISA_AVX2 || n < 8)
        return 0;
    if (hn_int8_has_vbmi())
        return 3;
    if (is_line)
        return isa >= HN_ISA_AVX512 && n >= 64 ? 2 : 1;
    return isa >= HN_ISA_AVX512 ? 2 : n >= 12 && rows * n >= 64 ? 1 : 0;
}

static void run_rows ROWS
{
    static const RowsFn looked_up[] = { rows_plain, table_rows_avx2, table_rows_avx512, table_rows_vbmi };
    static const RowsFn computed[] = { rows_plain, line_rows_avx2, line_rows_avx512, table_rows_vbmi };
    const gboolean is_line = m != NULL && m->is_line;
    if (xp == n && yp == n) {
        n *= rows;
        rows = 1;
    }
    (is_line ? computed : looked_up)[level_of(rows, n, is_line)](y, yp, x, xp, table, m, rows, n);
}

void hn_int8_lut_rows(const HnInt8Lut *m, uint8_t *y, int64_t y_pitch, const uint8_t *x, int64_t x_pitch, int64_t rows,
                      int64_t n)
{
    run_rows(y, y_pitch, x, x_pitch, m->table, m, rows, n);
}

void hn_int8_exchange_rows(uint8_t *y, int64_t y_pitch, const uint8_t *x, int64_t x_pitch, const uint8_t *table,
                           int64_t rows, int64_t n)
{
    run_rows(y, y_pitch, x, x_pitch, table, NULL, rows, n);
}
