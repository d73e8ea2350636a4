#include "cpu/int8/int8_kernel.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"
#include "cpu/int8/int8_lut_avx2.h"

/* --- products with vectors ---------------------------------------------------------------------------------------- */

#define HN_LEVEL avx2
#include "cpu/int8/int8_kernel_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/int8/int8_kernel_loops.h"
#undef HN_LEVEL
#define HN_LEVEL vnni
#include "cpu/int8/int8_kernel_loops.h"
#undef HN_LEVEL
#include "cpu/int8/int8_narrow_vnni.h"

/* Few rows wait for their sums, which whole vectors take in several chains. */
#define NARROW_FNS(one)                                                                                          \
    {                                                                                                            \
        byte_##one##_1_vnni, byte_##one##_2_vnni, byte_##one##_3_vnni, byte_##one##_4_vnni, byte_##one##_5_vnni, \
            byte_##one##_6_vnni, narrow_##one##_7, narrow_##one##_8, narrow_##one##_9, narrow_##one##_10,        \
            narrow_##one##_11, narrow_##one##_12                                                                 \
    }
static const HnInt8KernelFn narrow_fns[2][HN_INT8_MAX_ROWS] = { NARROW_FNS(one), NARROW_FNS(two) };

/* --- ... and in plain C --------------------------------------------------------------------------------------------
 */

#define PLAIN_ROWS 4
#define PLAIN_COLS 8

static void plain_group(int32_t *sum, const uint8_t *k, const int8_t *w)
{
    for (int c = 0; c < PLAIN_COLS; c++, w += HN_INT8_GROUP) {
        const int32_t four = k[0] * w[0] + k[1] * w[1] + k[2] * w[2] + k[3] * w[3];
        sum[c] = (int32_t)((uint32_t)sum[c] + (uint32_t)four);
    }
}

static inline __attribute__((always_inline)) void plain_tile(const HnInt8Kernel *t, const int rows)
{
    for (int r = 0; r < rows; r++) {
        const int8_t *b = t->b;
        int32_t sum[PLAIN_COLS];
        memcpy(sum, t->begin, sizeof sum);
        for (int64_t s = 0; s < t->segs; s++)
            for (int64_t g = 0; g < t->groups; g++, b += PLAIN_COLS * HN_INT8_GROUP)
                plain_group(sum, t->a + r * t->step + t->seg_at[s] + g * HN_INT8_GROUP, b);
        memcpy(t->c + r * PLAIN_COLS, sum, sizeof sum);
    }
}

#define PLAIN(n)                                 \
    static void plain_##n(const HnInt8Kernel *t) \
    {                                            \
        plain_tile(t, n);                        \
    }
PLAIN(1)
PLAIN(2)
PLAIN(3)
PLAIN(4)

static const HnInt8KernelFn fns_plain[2][HN_INT8_MAX_ROWS] = { { plain_1, plain_2, plain_3, plain_4 },
                                                               { plain_1, plain_2, plain_3, plain_4 } };

typedef struct {
    int rows, cols;
    const HnInt8KernelFn (*fns)[HN_INT8_MAX_ROWS];
} Level;

static const Level *level(void)
{
    static const Level levels[] = {
        { PLAIN_ROWS, PLAIN_COLS, fns_plain },
        { HN_INT8_ROWS_avx2, 2 * HN_INT8_LANES_avx2, byte_fns_avx2 },
        { HN_INT8_ROWS_avx512, 2 * HN_INT8_LANES_avx512, byte_fns_avx512 },
        { HN_INT8_ROWS_vnni, 2 * HN_INT8_LANES_vnni, byte_fns_vnni },
    };
    const HnIsa isa = hn_cpu_isa();
    return &levels[isa >= HN_ISA_VNNI ? 3 : isa >= HN_ISA_AVX512 ? 2 : isa >= HN_ISA_AVX2 ? 1 : 0];
}

int hn_int8_rows(void)
{
    return level()->rows;
}

int hn_int8_cols(void)
{
    return level()->cols;
}

const HnInt8KernelFn *hn_int8_fns(int cols)
{
    const Level *l = level();
    const int whole = cols > l->cols / 2 ? 1 : 0;
    const gboolean narrow = cols - whole * l->cols / 2 <= l->cols / 4;
    return narrow && l->fns == byte_fns_vnni ? narrow_fns[whole] : l->fns[whole];
}

const HnInt8KernelFn *hn_int8_pair_fns(gboolean whole)
{
    return hn_cpu_isa() >= HN_ISA_AVX2 ? level()->fns[whole ? 3 : 2] : NULL;
}

const HnInt8KernelFn *hn_int8_two_fns(gboolean whole)
{
    return hn_int8_saturates() ? level()->fns[whole ? 5 : 4] : NULL;
}

gboolean hn_int8_saturates(void)
{
    const HnIsa isa = hn_cpu_isa();
    return isa == HN_ISA_AVX2 || isa == HN_ISA_AVX512;
}

/* Bytes of 255 times two weights stay in 16 bits where those above 0 add up to 128 at most, and those below 0 too. */
gboolean hn_int8_split(int8_t *w, int8_t *rest)
{
    gboolean any = FALSE;
    memset(rest, 0, HN_INT8_GROUP);
    for (int i = 0; i < HN_INT8_GROUP; i += 2) {
        const int sum = w[i] + w[i + 1];
        if ((w[i] < 0) != (w[i + 1] < 0) || (sum <= 128 && sum >= -128))
            continue;
        const int too_much = sum > 0 ? sum - 128 : sum + 128;
        rest[i] = (int8_t)too_much;
        w[i] = (int8_t)(w[i] - too_much);
        any = TRUE;
    }
    return any;
}

/* Takes up to `too_much` (above 0, or below) off two weights, at most 128 of both. */
static int take(int8_t *w, int8_t *rest, int too_much)
{
    int left = CLAMP(too_much, -128, 128);
    for (int i = 0; i < 2; i++) {
        const int some = left > 0 ? CLAMP(w[i], 0, left) : CLAMP(w[i], left, 0);
        rest[i] = (int8_t)(rest[i] + some);
        w[i] = (int8_t)(w[i] - some);
        left -= some;
    }
    return CLAMP(too_much, -128, 128) - left;
}

gboolean hn_int8_split_two(int8_t *w, int8_t *rest, gboolean *fits)
{
    gboolean any = FALSE;
    memset(rest, 0, 2 * HN_INT8_GROUP);
    for (int i = 0; i < HN_INT8_GROUP; i += 2) {
        const int8_t four[] = { w[i], w[i + 1], w[i + HN_INT8_GROUP], w[i + HN_INT8_GROUP + 1] };
        int above = -128, below = 128;
        for (int k = 0; k < 4; k++) {
            above += MAX(four[k], 0);
            below += MIN(four[k], 0);
        }
        for (int at = i + HN_INT8_GROUP; at >= 0; at -= HN_INT8_GROUP) { /* of the second group as much as possible */
            above -= above > 0 ? take(w + at, rest + at, above) : 0;
            below -= below < 0 ? take(w + at, rest + at, below) : 0;
        }
        any = any || memcmp(rest + i, &(int16_t){ 0 }, 2) != 0 ||
              memcmp(rest + i + HN_INT8_GROUP, &(int16_t){ 0 }, 2) != 0;
        *fits = *fits && above <= 0 && below >= 0;
    }
    return any;
}

/* --- matrix units --------------------------------------------------------------------------------------------------
 */

#define AMX __attribute__((target("amx-tile,amx-int8")))
#define REQUEST_PERMISSION 0x1023 /* arch_prctl(): registers that the kernel saves only for those who asked */
#define TILE_DATA 18

static gboolean ask_permission(void)
{
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

gboolean hn_int8_has_blocks(void)
{
    static gsize once; /* 1: no, 2: yes */
    if (hn_cpu_isa() < HN_ISA_AMX)
        return FALSE;
    if (g_once_init_enter(&once))
        g_once_init_leave(&once, ask_permission() ? 2 : 1);
    return once == 2;
}

/* Tiles 0 to 3: sums of 16 rows and columns; 4, 5: A; 6, 7: B. */
AMX void hn_int8_blocks_begin(int chunk)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = (uint16_t)(i == 4 || i == 5 ? chunk : 64);
        config.rows[i] = (uint8_t)(i >= 6 ? chunk / HN_INT8_GROUP : 16);
    }
    __asm__ volatile("" : : "r"(&config) : "memory"); /* compilers do not know that all of it is read */
    _tile_loadconfig(&config);
}

AMX void hn_int8_blocks_end(void)
{
    _tile_release();
}

#define HALF 16
#define C_ROW ((gsize)HN_INT8_MAX_COLS * sizeof(int32_t))
#define B_ROW ((gsize)HN_INT8_MAX_COLS * HN_INT8_GROUP)

#define BLOCK(name, DOT)                                                                                 \
    static inline __attribute__((always_inline)) AMX void name(const HnInt8Block *t, const gboolean low, \
                                                               const gboolean right)                     \
    {                                                                                                    \
        const int8_t *b = t->b;                                                                          \
        const gsize b_size = (gsize)t->chunk / HN_INT8_GROUP * B_ROW, step = (gsize)t->a_step;           \
        _tile_loadd(0, t->begin, 0);                                                                     \
        if (right)                                                                                       \
            _tile_loadd(1, t->begin + HALF, 0);                                                          \
        if (low)                                                                                         \
            _tile_loadd(2, t->begin, 0);                                                                 \
        if (low && right)                                                                                \
            _tile_loadd(3, t->begin + HALF, 0);                                                          \
        for (int64_t s = 0; s < t->segs; s++) {                                                          \
            const uint8_t *a = t->a + t->seg_at[s];                                                      \
            for (int64_t k = 0; k < t->chunks; k++, a += t->chunk, b += b_size) {                        \
                _tile_loadd(4, a, step);                                                                 \
                _tile_loadd(6, b, B_ROW);                                                                \
                DOT(0, 4, 6);                                                                            \
                if (low) {                                                                               \
                    _tile_loadd(5, a + HALF * t->a_step, step);                                          \
                    DOT(2, 5, 6);                                                                        \
                }                                                                                        \
                if (right) {                                                                             \
                    _tile_loadd(7, b + HALF * HN_INT8_GROUP, B_ROW);                                     \
                    DOT(1, 4, 7);                                                                        \
                }                                                                                        \
                if (low && right)                                                                        \
                    DOT(3, 5, 7);                                                                        \
            }                                                                                            \
        }                                                                                                \
        _tile_stored(0, t->c, C_ROW);                                                                    \
        if (right)                                                                                       \
            _tile_stored(1, t->c + HALF, C_ROW);                                                         \
        if (low)                                                                                         \
            _tile_stored(2, t->c + HALF * HN_INT8_MAX_COLS, C_ROW);                                      \
        if (low && right)                                                                                \
            _tile_stored(3, t->c + HALF * HN_INT8_MAX_COLS + HALF, C_ROW);                               \
    }                                                                                                    \
    static AMX void name##_any(const HnInt8Block *t)                                                     \
    {                                                                                                    \
        if (t->rows > HALF && t->cols > HALF)                                                            \
            name(t, TRUE, TRUE);                                                                         \
        else if (t->rows > HALF)                                                                         \
            name(t, TRUE, FALSE);                                                                        \
        else if (t->cols > HALF)                                                                         \
            name(t, FALSE, TRUE);                                                                        \
        else                                                                                             \
            name(t, FALSE, FALSE);                                                                       \
    }
BLOCK(of_unsigned, _tile_dpbusd)
BLOCK(of_signed, _tile_dpbssd)

void hn_int8_block(const HnInt8Block *b)
{
    if (b->is_signed)
        of_signed_any(b);
    else
        of_unsigned_any(b);
}

/* --- results -------------------------------------------------------------------------------------------------------
 */

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl" HN_WIDE)))
#define VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi" HN_WIDE)))
#define INLINE static inline __attribute__((always_inline))

INLINE void f32_row(const HnInt8Out *o, float *restrict y, const int32_t *restrict c, int cols, int64_t col)
{
    const float *restrict scale = o->scale + col, *restrict shift = o->shift != NULL ? o->shift + col : NULL;
    const float lo = o->lo, hi = o->hi;
    if (shift != NULL) {
        for (int i = 0; i < cols; i++) {
            float v = (float)c[i] * scale[i] + shift[i];
            v = lo > v ? lo : v;
            y[i] = hi < v ? hi : v;
        }
        return;
    }
    for (int i = 0; i < cols; i++) {
        float v = (float)c[i] * scale[i];
        v = lo > v ? lo : v;
        y[i] = hi < v ? hi : v;
    }
}

#define ROUND 12582912.0f /* 1.5 * 2^23: adding it rounds to a whole number, halves to even */

INLINE void byte_row(const HnInt8Out *o, uint8_t *restrict y, const int32_t *restrict c, int cols, int64_t col)
{
    const float *restrict scale = o->scale + col, *restrict shift = o->shift != NULL ? o->shift + col : NULL;
    const float lo = o->lo, hi = o->hi;
    const int zero = o->zero;
    for (int i = 0; i < cols; i++) {
        float v = (float)c[i] * scale[i];
        v = shift != NULL ? v + shift[i] : v;
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        y[i] = (uint8_t)((int)((v + ROUND) - ROUND) + zero);
    }
    for (int i = 0; o->table != NULL && i < cols; i++)
        y[i] = o->table[y[i]];
}

INLINE void any_rows(const HnInt8Out *o, void *y, int64_t pitch, const int32_t *c, int64_t c_pitch, int64_t rows,
                     int cols, int64_t col)
{
    for (int64_t r = 0; r < rows; r++, c += c_pitch)
        if (o->dtype == HN_I32)
            memcpy((int32_t *)y + r * pitch, c, (gsize)cols * sizeof *c);
        else if (o->dtype == HN_F32)
            f32_row(o, (float *)y + r * pitch, c, cols, col);
        else
            byte_row(o, (uint8_t *)y + r * pitch, c, cols, col);
}

static void finish_plain(const HnInt8Out *o, void *y, int64_t pitch, const int32_t *c, int64_t rows, int cols,
                         int64_t col)
{
    any_rows(o, y, pitch, c, PLAIN_COLS, rows, cols, col);
}

/* 8 sums as rounded numbers of steps */
AVX2 INLINE __m256i steps_avx2(const int32_t *c, __m256 scale, __m256 shift, gboolean shifted)
{
    const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)c)), scale);
    return _mm256_cvtps_epi32(shifted ? _mm256_add_ps(v, shift) : v);
}

/* The first n bytes, up to 16. */
INLINE void store_bytes(uint8_t *y, const uint8_t *from, int n)
{
    if (n == 16)
        memcpy(y, from, 16);
    else if (n == 8)
        memcpy(y, from, 8);
    else
        memcpy(y, from, (gsize)n);
}

/* Rows of up to 16 bytes, two at a time. */
AVX2 INLINE void finish_bytes_avx2(const HnInt8Out *o, uint8_t *y, int64_t pitch, const int32_t *c, int64_t rows,
                                   const int cols, int64_t col)
{
    const gboolean shifted = o->shift != NULL, plain = hn_int8_only_saturates(o);
    const __m256 scale0 = _mm256_loadu_ps(o->scale + col), scale1 = _mm256_loadu_ps(o->scale + col + 8);
    const __m256 shift0 = shifted ? _mm256_loadu_ps(o->shift + col) : scale0;
    const __m256 shift1 = shifted ? _mm256_loadu_ps(o->shift + col + 8) : scale1;
    const __m256i zero = _mm256_set1_epi16((short)o->zero), in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i lo = _mm256_set1_epi16((short)((int)o->lo + o->zero));
    const __m256i hi = _mm256_set1_epi16((short)((int)o->hi + o->zero));
    static const HnInt8Line none;
    const gboolean is_line = o->map != NULL && o->map->is_line, is_table = o->map != NULL && !is_line;
    const HnMapLine line = hn_map_line(is_line ? &o->map->line : &none);
    for (int64_t r = 0; r < rows; r += 2, c += 4 * HN_INT8_LANES_avx2, y += 2 * pitch) {
        const int32_t *next = r + 1 < rows ? c + 2 * HN_INT8_LANES_avx2 : c;
        uint8_t *second = r + 1 < rows ? y + pitch : y;
        const __m256i a = _mm256_packs_epi32(steps_avx2(c, scale0, shift0, shifted),
                                             steps_avx2(c + HN_INT8_LANES_avx2, scale1, shift1, shifted));
        const __m256i b = _mm256_packs_epi32(steps_avx2(next, scale0, shift0, shifted),
                                             steps_avx2(next + HN_INT8_LANES_avx2, scale1, shift1, shifted));
        const __m256i p = plain ? a : _mm256_min_epi16(_mm256_max_epi16(_mm256_adds_epi16(a, zero), lo), hi);
        const __m256i q = plain ? b : _mm256_min_epi16(_mm256_max_epi16(_mm256_adds_epi16(b, zero), lo), hi);
        __m256i v = _mm256_permutevar8x32_epi32(
            o->dtype == HN_I8 ? _mm256_packs_epi16(p, q) : _mm256_packus_epi16(p, q), in_order);
        if (is_line)
            v = hn_map_compute(&line, v);
        else if (is_table)
            v = hn_map_look_up(o->map->steps, v);
        if (cols == 16) {
            _mm_storeu_si128((__m128i *)(void *)second, _mm256_extracti128_si256(v, 1));
            _mm_storeu_si128((__m128i *)(void *)y, _mm256_castsi256_si128(v));
            continue;
        }
        uint8_t two[32];
        _mm256_storeu_si256((__m256i *)(void *)two, v);
        store_bytes(second, two + 16, cols);
        store_bytes(y, two, cols);
    }
}

AVX2 static void finish_avx2(const HnInt8Out *o, void *y, int64_t pitch, const int32_t *c, int64_t rows, int cols,
                             int64_t col)
{
    const gboolean bytes = o->small && (o->dtype == HN_U8 || o->dtype == HN_I8);
    if (bytes && cols == 2 * HN_INT8_LANES_avx2)
        finish_bytes_avx2(o, y, pitch, c, rows, 2 * HN_INT8_LANES_avx2, col);
    else if (bytes && cols == HN_INT8_LANES_avx2)
        finish_bytes_avx2(o, y, pitch, c, rows, HN_INT8_LANES_avx2, col);
    else if (bytes)
        finish_bytes_avx2(o, y, pitch, c, rows, cols, col);
    else
        any_rows(o, y, pitch, c, 2 * HN_INT8_LANES_avx2, rows, cols, col);
    if (bytes && o->table != NULL && o->map == NULL)
        hn_int8_exchange_rows(y, pitch, y, pitch, o->table, rows, cols);
}

/* 16 sums as rounded numbers of steps. */
#define STEPS(c, scale, shift)                                                                                         \
    _mm512_cvtps_epi32(shifted ? _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(c)), scale), shift) \
                               : _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(c)), scale))

/* 4 x 16 of them as bytes, one after the other. None was too large for 32 bits (HnInt8Out.small). Where the limits are
 * those of the type and the zero point is 0, saturation is all that is left to do. */
#define LIMITED(v) (plain ? (v) : _mm512_min_epi16(_mm512_max_epi16(_mm512_adds_epi16(v, zero), lo), hi))
#define BYTES(a, b, c, d) bytes_of(LIMITED(_mm512_packs_epi32(a, b)), LIMITED(_mm512_packs_epi32(c, d)), is_signed)

AVX512 INLINE __m512i bytes_of(__m512i low, __m512i high, gboolean is_signed)
{
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(in_order,
                                    is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high));
}

/* Rows of sums to bytes, 64 at a time: two rows of a panel, or four of half of one. EXCHANGE: by the table in t0 to t3.
 */
#define DEFINE_FINISH(name, attribute, LOAD, EXCHANGE)                                                                \
    attribute static void name(const HnInt8Out *o, uint8_t *y, int64_t pitch, const int32_t *c, int64_t rows,         \
                               int cols, int64_t col)                                                                 \
    {                                                                                                                 \
        const __m512 none = _mm512_setzero_ps();                                                                      \
        const __m512i zero = _mm512_set1_epi16((short)o->zero);                                                       \
        const __m512i lo = _mm512_set1_epi16((short)((int)o->lo + o->zero));                                          \
        const __m512i hi = _mm512_set1_epi16((short)((int)o->hi + o->zero));                                          \
        const gboolean shifted = o->shift != NULL;                                                                    \
        const __m512 scale0 = _mm512_loadu_ps(o->scale + col), scale1 = _mm512_loadu_ps(o->scale + col + 16);         \
        const __m512 shift0 = o->shift != NULL ? _mm512_loadu_ps(o->shift + col) : none;                              \
        const __m512 shift1 = o->shift != NULL ? _mm512_loadu_ps(o->shift + col + 16) : none;                         \
        const __mmask32 mask = cols == 32 ? ~(__mmask32)0 : ((__mmask32)1 << cols) - 1;                               \
        const gboolean is_signed = o->dtype == HN_I8, plain = hn_int8_only_saturates(o);                              \
        LOAD if (cols <= 16)                                                                                          \
        {                                                                                                             \
            const int32_t *const end = c + (rows - 1) * HN_INT8_MAX_COLS;                                             \
            for (; rows > 0; rows -= 4, c += 4 * HN_INT8_MAX_COLS, y += 4 * pitch) {                                  \
                const int32_t *c1 = MIN(c + HN_INT8_MAX_COLS, end), *c2 = MIN(c + 2 * HN_INT8_MAX_COLS, end);         \
                const int32_t *c3 = MIN(c + 3 * HN_INT8_MAX_COLS, end);                                               \
                __m512i v = BYTES(STEPS(c, scale0, shift0), STEPS(c1, scale0, shift0), STEPS(c2, scale0, shift0),     \
                                  STEPS(c3, scale0, shift0));                                                         \
                EXCHANGE                                                                                              \
                if (rows > 3 && cols == 16 && pitch == 16) {                                                          \
                    _mm512_storeu_si512(y, v);                                                                        \
                    continue;                                                                                         \
                }                                                                                                     \
                _mm_mask_storeu_epi8(y, (__mmask16)mask, _mm512_castsi512_si128(v));                                  \
                if (rows > 1)                                                                                         \
                    _mm_mask_storeu_epi8(y + pitch, (__mmask16)mask, _mm512_extracti32x4_epi32(v, 1));                \
                if (rows > 2)                                                                                         \
                    _mm_mask_storeu_epi8(y + 2 * pitch, (__mmask16)mask, _mm512_extracti32x4_epi32(v, 2));            \
                if (rows > 3)                                                                                         \
                    _mm_mask_storeu_epi8(y + 3 * pitch, (__mmask16)mask, _mm512_extracti32x4_epi32(v, 3));            \
            }                                                                                                         \
            return;                                                                                                   \
        }                                                                                                             \
        for (; rows > 1; rows -= 2, c += 2 * HN_INT8_MAX_COLS, y += 2 * pitch) {                                      \
            __m512i v = BYTES(STEPS(c, scale0, shift0), STEPS(c + 16, scale1, shift1), STEPS(c + 32, scale0, shift0), \
                              STEPS(c + 48, scale1, shift1));                                                         \
            EXCHANGE                                                                                                  \
            _mm256_mask_storeu_epi8(y, mask, _mm512_castsi512_si256(v));                                              \
            _mm256_mask_storeu_epi8(y + pitch, mask, _mm512_extracti64x4_epi64(v, 1));                                \
        }                                                                                                             \
        if (rows > 0) {                                                                                               \
            __m512i v = BYTES(STEPS(c, scale0, shift0), STEPS(c + 16, scale1, shift1), zero, zero);                   \
            EXCHANGE                                                                                                  \
            _mm256_mask_storeu_epi8(y, mask, _mm512_castsi512_si256(v));                                              \
        }                                                                                                             \
    }
DEFINE_FINISH(finish_bytes_avx512, AVX512, , )
#define LOAD_TABLE                                                                           \
    const __m512i t0 = _mm512_loadu_si512(o->table), t1 = _mm512_loadu_si512(o->table + 64); \
    const __m512i t2 = _mm512_loadu_si512(o->table + 128), t3 = _mm512_loadu_si512(o->table + 192);
#define EXCHANGE_BYTES                                                                      \
    v = _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), _mm512_permutex2var_epi8(t0, v, t1), \
                               _mm512_permutex2var_epi8(t2, v, t3));
DEFINE_FINISH(finish_exchanged_vbmi, VBMI, LOAD_TABLE, EXCHANGE_BYTES)

/* 16 sums as numbers */
AVX512 INLINE __m512 numbers_avx512(const int32_t *c, __m512 scale, __m512 shift, __m512 lo, __m512 hi,
                                    const gboolean shifted)
{
    const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(c)), scale);
    return _mm512_min_ps(hi, _mm512_max_ps(lo, shifted ? _mm512_add_ps(v, shift) : v)); /* NaN stays */
}

AVX512 INLINE void finish_numbers(const HnInt8Out *o, float *y, int64_t pitch, const int32_t *c, int64_t rows, int cols,
                                  int64_t col, const gboolean shifted)
{
    const __m512 lo = _mm512_set1_ps(o->lo), hi = _mm512_set1_ps(o->hi);
    const __mmask16 first = (__mmask16)(cols >= 16 ? 0xffff : (1u << cols) - 1);
    const __mmask16 second = (__mmask16)(cols > 16 ? (1u << (cols - 16)) - 1 : 0);
    const __m512 scale0 = _mm512_maskz_loadu_ps(first, o->scale + col);
    const __m512 scale1 = _mm512_maskz_loadu_ps(second, o->scale + col + 16);
    const __m512 shift0 = shifted ? _mm512_maskz_loadu_ps(first, o->shift + col) : scale0;
    const __m512 shift1 = shifted ? _mm512_maskz_loadu_ps(second, o->shift + col + 16) : scale1;
    for (int64_t r = 0; r < rows; r++, c += HN_INT8_MAX_COLS, y += pitch) {
        const __m512 v = numbers_avx512(c, scale0, shift0, lo, hi, shifted);
        if (cols == HN_INT8_MAX_COLS) {
            _mm512_storeu_ps(y, v);
            _mm512_storeu_ps(y + 16, numbers_avx512(c + 16, scale1, shift1, lo, hi, shifted));
            continue;
        }
        _mm512_mask_storeu_ps(y, first, v);
        if (second != 0)
            _mm512_mask_storeu_ps(y + 16, second, numbers_avx512(c + 16, scale1, shift1, lo, hi, shifted));
    }
}

AVX512 static void finish_avx512(const HnInt8Out *o, void *y, int64_t pitch, const int32_t *c, int64_t rows, int cols,
                                 int64_t col)
{
    if (o->dtype == HN_F32) {
        if (o->shift != NULL)
            finish_numbers(o, y, pitch, c, rows, cols, col, TRUE);
        else
            finish_numbers(o, y, pitch, c, rows, cols, col, FALSE);
        return;
    }
    if (o->dtype == HN_I32) {
        any_rows(o, y, pitch, c, HN_INT8_MAX_COLS, rows, cols, col);
        return;
    }
    if (!o->small) {
        any_rows(o, y, pitch, c, HN_INT8_MAX_COLS, rows, cols, col);
        return;
    }
    if (o->table != NULL && hn_int8_has_vbmi()) {
        finish_exchanged_vbmi(o, y, pitch, c, rows, cols, col);
        return;
    }
    finish_bytes_avx512(o, y, pitch, c, rows, cols, col);
    if (o->map != NULL)
        hn_int8_lut_rows(o->map, y, pitch, y, pitch, rows, cols);
    else if (o->table != NULL)
        hn_int8_exchange_rows(y, pitch, y, pitch, o->table, rows, cols);
}

void hn_int8_finish(const HnInt8Out *o, void *y, int64_t pitch, const int32_t *c, int64_t rows, int cols, int64_t col)
{
    static void (*const finish[])(const HnInt8Out *, void *, int64_t, const int32_t *, int64_t, int,
                                  int64_t) = { finish_plain, finish_avx2, finish_avx512 };
    const HnIsa isa = hn_cpu_isa();
    finish[isa >= HN_ISA_AVX512 ? 2 : isa >= HN_ISA_AVX2 ? 1 : 0](o, y, pitch, c, rows, cols, col);
}

/* --- bytes for bytes -----------------------------------------------------------------------------------------------
 */

INLINE void flip_row(uint8_t *restrict to, const uint8_t *restrict from, uint8_t flip, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i] ^ flip;
}

void hn_int8_flip(uint8_t *to, const uint8_t *from, uint8_t flip, int64_t n)
{
    flip_row(to, from, flip, n);
}
