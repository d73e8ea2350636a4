/*
 * QuantAdd and QuantMul: rows of bytes with rows of bytes or numbers. The second operand becomes numbers of steps
 * first, a piece at a time, or once for all rows that meet the same.
 *
 * Rows are pixels channels last, or whatever lies side by side of plain tensors.
 */
#include "cpu/int8/quantbinary.h"

#include <immintrin.h>
#include <math.h>

#include "base/cpu.h"
#include "cpu/int8/int8_lut.h"
#include "cpu/core/cpu_kernel.h"
#include "op/quantbinary.h"
#include "op/quantlinear.h"

#define HN_LEVEL plain
#include "cpu/int8/quantbinary_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/int8/quantbinary_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#define HN_NUMBERS_ONLY /* bytes are made 64 at a time */
#include "cpu/int8/quantbinary_loops.h"
#undef HN_LEVEL

/* --- 64 at a time -------------------------------------------------------------------------------------------------
 */

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl" HN_WIDE)))
#define INLINE static inline __attribute__((always_inline))

/* 16 bytes, as numbers of steps */
AVX512 INLINE __m512 numbers_of(__m128i x, __m512 by, __m512 plus)
{
    return _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(x)), by), plus);
}

/* What all rows have in common */
typedef struct {
    __m512 by, plus, b_by, b_plus, lo, hi;
    __m128i x_flip, b_flip;
} WidePair;

/* 16 elements, as whole numbers of steps */
AVX512 INLINE __m512i wide_steps(const WidePair *w, __m128i x, __m128i b, __m512 c, const gboolean bytes,
                                 const gboolean product, const gboolean easy)
{
    const __m512 a = numbers_of(easy ? x : _mm_xor_si128(x, w->x_flip), w->by, w->plus);
    if (bytes)
        c = numbers_of(easy ? b : _mm_xor_si128(b, w->b_flip), w->b_by, w->b_plus);
    const __m512 sum = product ? _mm512_mul_ps(a, c) : _mm512_add_ps(a, c);
    if (easy) /* packing limits them */
        return _mm512_cvtps_epi32(sum);
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(sum, w->lo), w->hi)); /* of NaN the second operand */
}

AVX512 INLINE void wide_rows(const HnPairRows *r, const HnPairRow *p, const HnPairRow *q, const gboolean bytes,
                             const gboolean one, const gboolean product, const gboolean easy)
{
    const WidePair w = { .by = _mm512_set1_ps(p->by),
                         .plus = _mm512_set1_ps(p->plus),
                         .b_by = _mm512_set1_ps(q->by),
                         .b_plus = _mm512_set1_ps(q->plus),
                         .lo = _mm512_set1_ps(p->lo),
                         .hi = _mm512_set1_ps(p->hi),
                         .x_flip = _mm_set1_epi8((char)p->x_flip),
                         .b_flip = _mm_set1_epi8((char)q->x_flip) };
    const __m512i zero = _mm512_set1_epi16((short)p->zero), y_flip = _mm512_set1_epi8((char)p->y_flip);
    const __m512i zeros = _mm512_set1_epi32(p->zero);
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i none = _mm_setzero_si128();
    for (int64_t row = 0; row < r->rows; row++) {
        const uint8_t *x = r->a + row * r->a_pitch, *b = bytes ? r->b + row * r->b_pitch : NULL;
        uint8_t *y = r->y + row * r->y_pitch;
        const __m512 same = _mm512_set1_ps(one ? r->other[row] : 0);
        int64_t i = 0;
        for (; i + 64 <= r->n; i += 64) {
            __m512i v[4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                const int64_t at = i + 16 * j;
                v[j] = wide_steps(&w, _mm_loadu_si128((const __m128i *)(const void *)(x + at)),
                                  bytes ? _mm_loadu_si128((const __m128i *)(const void *)(b + at)) : none,
                                  bytes || one ? same : _mm512_loadu_ps(r->other + at), bytes, product, easy);
            }
            const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
            const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
            const __m512i all = _mm512_permutexvar_epi32(in_order, _mm512_packus_epi16(low, high));
            _mm512_storeu_si512(y + i, easy ? all : _mm512_xor_si512(all, y_flip));
        }
        for (; i < r->n; i += 16) {
            const __mmask16 mask = (__mmask16)(r->n - i >= 16 ? 0xffff : (1u << (r->n - i)) - 1);
            const __m512i v =
                wide_steps(&w, _mm_maskz_loadu_epi8(mask, x + i), bytes ? _mm_maskz_loadu_epi8(mask, b + i) : none,
                           bytes || one ? same : _mm512_maskz_loadu_ps(mask, r->other + i), bytes, product, FALSE);
            const __m128i some = _mm512_cvtepi32_epi8(_mm512_add_epi32(v, zeros));
            _mm_mask_storeu_epi8(y + i, mask, _mm_xor_si128(some, _mm512_castsi512_si128(y_flip)));
        }
    }
}

#define DEFINE_WIDE(name, product)                                                       \
    AVX512 static void name(const HnPairRows *r, const HnPairRow *p, const HnPairRow *q) \
    {                                                                                    \
        if (r->b != NULL && p->easy)                                                     \
            wide_rows(r, p, q, TRUE, FALSE, product, TRUE);                              \
        else if (r->b != NULL)                                                           \
            wide_rows(r, p, q, TRUE, FALSE, product, FALSE);                             \
        else if (r->one)                                                                 \
            wide_rows(r, p, q, FALSE, TRUE, product, FALSE);                             \
        else if (p->easy)                                                                \
            wide_rows(r, p, q, FALSE, FALSE, product, TRUE);                             \
        else                                                                             \
            wide_rows(r, p, q, FALSE, FALSE, product, FALSE);                            \
    }
DEFINE_WIDE(wide_sums, FALSE)
DEFINE_WIDE(wide_products, TRUE)

/* --- 32 at a time -------------------------------------------------------------------------------------------------
 */

#define AVX2 __attribute__((target("avx2")))

/* 8 bytes, as numbers of steps */
AVX2 INLINE __m256 few_numbers_of(const uint8_t *x, __m128i flip, __m256 by, __m256 plus)
{
    const __m128i v = _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)x), flip);
    return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)), by), plus);
}

/* The first bytes, a multiple of 8; returns how many. b: bytes, or NULL and `other` holds their numbers. */
AVX2 INLINE int64_t row_avx2(uint8_t *y, const uint8_t *x, const uint8_t *b, const float *other, int64_t n,
                             const HnPairRow *p, const HnPairRow *q, const gboolean product)
{
    const __m256 by = _mm256_set1_ps(p->by), plus = _mm256_set1_ps(p->plus);
    const __m256 b_by = _mm256_set1_ps(q->by), b_plus = _mm256_set1_ps(q->plus);
    const __m256 lo = _mm256_set1_ps(p->lo), hi = _mm256_set1_ps(p->hi);
    const __m256i zero = _mm256_set1_epi16((short)p->zero), y_flip = _mm256_set1_epi8((char)p->y_flip);
    const __m128i x_flip = _mm_set1_epi8((char)p->x_flip), b_flip = _mm_set1_epi8((char)q->x_flip);
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int64_t i = 0;
#define STEPS(at, v)                                                                                                 \
    {                                                                                                                \
        const __m256 a = few_numbers_of(x + (at), x_flip, by, plus);                                                 \
        const __m256 c = b != NULL ? few_numbers_of(b + (at), b_flip, b_by, b_plus) : _mm256_loadu_ps(other + (at)); \
        const __m256 sum = product ? _mm256_mul_ps(a, c) : _mm256_add_ps(a, c);                                      \
        v = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(sum, lo), hi)); /* of NaN the second operand */           \
    }
    for (; i + 32 <= n; i += 32) {
        __m256i v[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            STEPS(i + 8 * j, v[j])
        const __m256i low = _mm256_add_epi16(_mm256_packs_epi32(v[0], v[1]), zero);
        const __m256i high = _mm256_add_epi16(_mm256_packs_epi32(v[2], v[3]), zero);
        const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), in_order);
        _mm256_storeu_si256((__m256i *)(void *)(y + i), _mm256_xor_si256(bytes, y_flip));
    }
    for (; i + 8 <= n; i += 8) {
        __m256i v;
        STEPS(i, v)
        const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        const __m128i words = _mm_add_epi16(packed, _mm256_castsi256_si128(zero));
        const __m128i bytes = _mm_xor_si128(_mm_packus_epi16(words, words), _mm256_castsi256_si128(y_flip));
        _mm_storel_epi64((__m128i *)(void *)(y + i), bytes);
    }
#undef STEPS
    return i;
}

#define DEFINE_ROWS(name, rest_bytes, product)                                                              \
    AVX2 static void name(const HnPairRows *r, const HnPairRow *p, const HnPairRow *q)                      \
    {                                                                                                       \
        float rest[8];                                                                                      \
        for (int64_t row = 0; row < r->rows; row++) {                                                       \
            const uint8_t *x = r->a + row * r->a_pitch, *b = r->b != NULL ? r->b + row * r->b_pitch : NULL; \
            uint8_t *y = r->y + row * r->y_pitch;                                                           \
            const int64_t i = b != NULL ? row_avx2(y, x, b, NULL, r->n, p, q, product)                      \
                                        : row_avx2(y, x, NULL, r->other, r->n, p, q, product);              \
            if (i == r->n)                                                                                  \
                continue;                                                                                   \
            if (b != NULL)                                                                                  \
                scale_bytes_avx2(rest, b + i, r->n - i, q->x_flip, q->by, q->plus);                         \
            rest_bytes(y + i, x + i, b != NULL ? rest : r->other + i, r->n - i, p);                         \
        }                                                                                                   \
    }
DEFINE_ROWS(few_sums, sum_bytes_avx2, FALSE)
DEFINE_ROWS(few_products, product_bytes_avx2, TRUE)

/* --- what meets what ------------------------------------------------------------------------------------------------
 */

#define PIECE 512 /* numbers at a time */
#define LARGE 1e9 /* a number of steps below this fits into 32 bits */

typedef struct {
    HnPairRow a, b; /* b: by, plus and x_flip */
    gboolean product, f32_b;
    gboolean last;             /* rows are pixels */
    int64_t images, rows, n;   /* rows of n elements in an image */
    int64_t image_b, row_b;    /* elements of b from image to image and row to row; one: no pitch counts */
    gboolean one_b, pitched_b; /* of b a row meets a single element; its steps are pixels */
    int threads;
    HnInt8Lut map; /* of HnStep.table */
} Pair;

static int64_t dim_of(const HnTensor *t, int rank, int i)
{
    return i < rank - t->ndim ? 1 : t->dims[i - (rank - t->ndim)];
}

/* Plain: b repeats what is at the end, or is one for each of what is at the front. */
static gboolean meets_plain(Pair *p, const HnTensor *a, const HnTensor *b)
{
    int start = 0, stop = a->ndim, first, end;
    while (start < stop && a->dims[start] == 1)
        start++;
    while (stop > start && a->dims[stop - 1] == 1)
        stop--;
    for (first = start; first < stop && dim_of(b, a->ndim, first) == 1;)
        first++;
    for (end = stop; end > first && dim_of(b, a->ndim, end - 1) == 1;)
        end--;
    *p = (Pair){ .images = 1, .rows = 1, .n = 1 };
    if (first == end) { /* one element */
        p->n = a->n;
        p->one_b = TRUE;
        return TRUE;
    }
    const gboolean by_rows = first > start || end == stop; /* what b repeats is at the end */
    const int to = by_rows ? stop : end;
    for (int i = first; i < to; i++)
        if (dim_of(b, a->ndim, i) != a->dims[i])
            return FALSE;
    for (int i = start; i < stop; i++)
        *((by_rows ? i < first : i < to) ? &p->rows : &p->n) *= a->dims[i];
    p->one_b = !by_rows;
    p->row_b = by_rows ? 0 : 1;
    return TRUE;
}

/* Channels last: b is of all pixels or one, of all channels or one. */
static gboolean meets_last(Pair *p, const HnTensor *a, const HnTensor *b)
{
    gboolean all = TRUE, none = TRUE;
    int64_t pixels = 1;
    for (int i = 2; i < a->ndim; i++) {
        all = all && dim_of(b, a->ndim, i) == a->dims[i];
        none = none && dim_of(b, a->ndim, i) == 1;
        pixels *= a->dims[i];
    }
    const int64_t images = dim_of(b, a->ndim, 0), channels = dim_of(b, a->ndim, 1);
    if ((!all && !none) || (b->ndim != a->ndim && !none && channels != 1))
        return FALSE;
    *p = (Pair){ .last = TRUE, .images = a->dims[0], .rows = pixels, .n = a->dims[1] };
    p->one_b = channels == 1;
    p->pitched_b = b->ndim == a->ndim;
    p->row_b = none ? 0 : 1;
    p->image_b = images == 1 ? 0 : none ? 1 : pixels;
    return TRUE;
}

/* b lies channels last as it is, and may be part of something wider. */
static gboolean may_be_pitched(const HnPort *b, int rank)
{
    return !b->slot->constant && b->slot->tensor->ndim == rank && hn_slot_is_last(b->slot);
}

static gboolean meet(const HnStep *s, Pair *p)
{
    const HnTensor *a = hn_cpu_in(s, HN_QUANTBINARY_A), *b = hn_cpu_in(s, HN_QUANTBINARY_B);
    const HnSlot *sa = s->in[HN_QUANTBINARY_A].slot, *sb = s->in[HN_QUANTBINARY_B].slot;
    if (a->ndim < 3 || a->ndim > 5)
        return meets_plain(p, a, b);
    if (hn_slot_is_last(sa) || may_be_pitched(&s->in[HN_QUANTBINARY_B], a->ndim))
        return meets_last(p, a, b);
    return (sa->layout == NULL && sb->layout == NULL && meets_plain(p, a, b)) || meets_last(p, a, b);
}

static gboolean is_byte(const HnTensor *t)
{
    return t->dtype == HN_U8 || t->dtype == HN_I8;
}

static gboolean is_positive(const HnTensor *t)
{
    return t == NULL || (isfinite(*(const float *)t->data) && *(const float *)t->data > 0);
}

static const char *pair_reject(const HnStep *s)
{
    const HnTensor *a = hn_cpu_in(s, HN_QUANTBINARY_A), *b = hn_cpu_in(s, HN_QUANTBINARY_B),
                   *y = s->out[0].slot->tensor;
    Pair p;
    for (int i = HN_QUANTBINARY_A_SCALE; i < HN_QUANTBINARY_INPUTS; i++)
        if (hn_cpu_in(s, i) != NULL && (!s->in[i].slot->constant || hn_cpu_in(s, i)->n != 1))
            return "parameters that are known only at run time, or of another size";
    if (!is_positive(hn_cpu_in(s, HN_QUANTBINARY_A_SCALE)) || !is_positive(hn_cpu_in(s, HN_QUANTBINARY_B_SCALE)) ||
        !is_positive(hn_cpu_in(s, HN_QUANTBINARY_Y_SCALE)))
        return "scales that are no numbers above 0";
    if ((b->dtype == HN_F32) != (hn_cpu_in(s, HN_QUANTBINARY_B_SCALE) == NULL))
        return "bytes without a scale, or numbers with one";
    if (y->n == 0)
        return "nothing to compute";
    if (!hn_tensor_same_dims(y, a))
        return "a first operand that broadcasts";
    return is_byte(a) && meet(s, &p) ? NULL : "operands that broadcast along some axes in between";
}

static int whole(const HnTensor *t)
{
    return t != NULL ? (int)hn_tensor_get_i64(t, 0) : 0;
}

static float number(const HnTensor *t)
{
    return t != NULL ? *(const float *)t->data : 1;
}

/* What bytes are as unsigned ones is larger by 128 where they are signed. */
static void set_rows(Pair *p, const HnStep *s)
{
    const HnQuantBinary *limits = s->params;
    const HnTensor *a = hn_cpu_in(s, HN_QUANTBINARY_A), *b = hn_cpu_in(s, HN_QUANTBINARY_B),
                   *y = s->out[0].slot->tensor;
    const gboolean a_signed = a->dtype == HN_I8, b_signed = b->dtype == HN_I8, y_signed = y->dtype == HN_I8;
    const int az = whole(hn_cpu_in(s, HN_QUANTBINARY_A_ZERO)) + (a_signed ? 128 : 0);
    const int bz = whole(hn_cpu_in(s, HN_QUANTBINARY_B_ZERO)) + (b_signed ? 128 : 0);
    const int yz = whole(hn_cpu_in(s, HN_QUANTBINARY_Y_ZERO));
    const float as = number(hn_cpu_in(s, HN_QUANTBINARY_A_SCALE)), bs = number(hn_cpu_in(s, HN_QUANTBINARY_B_SCALE));
    const float ys = number(hn_cpu_in(s, HN_QUANTBINARY_Y_SCALE));
    p->product = s->op == &hn_op_quantmul;
    p->f32_b = b->dtype == HN_F32;
    const HnQuantBinarySteps k =
        p->product ? hn_quant_mul_steps(as, az, bs, bz, ys) : hn_quant_add_steps(limits, as, az, bs, bz, ys);
    const HnQuantProduct within = { .lo = limits->lo, .hi = limits->hi };
    HnQuantBounds bound = { limits->lo, limits->hi };
    if (y->dtype != HN_F32)
        bound = hn_quant_bounds(&within, y->dtype, ys, yz);
    p->a = (HnPairRow){
        k.a_by, k.a_plus, bound.lo, bound.hi, yz + (y_signed ? 128 : 0), a_signed ? 128 : 0, y_signed ? 128 : 0, FALSE
    };
    p->b = (HnPairRow){ .by = k.b_by, .plus = k.b_plus, .x_flip = b_signed ? 128 : 0 };
    const double a_most = 255 * fabs(k.a_by) + fabs(k.a_plus), b_most = 255 * fabs(k.b_by) + fabs(k.b_plus);
    const gboolean limits_of_type = y->dtype == HN_U8 && bound.lo + yz <= 0 && bound.hi + yz >= 255;
    p->a.easy = !a_signed && !b_signed && !p->f32_b && limits_of_type &&
                (p->product ? a_most * b_most : a_most + b_most) < LARGE;
}

static gboolean pair_prepare(HnStep *s, GError **error)
{
    (void)error;
    Pair *p = g_new0(Pair, 1);
    s->state = p;
    meet(s, p);
    set_rows(p, s);
    p->threads = hn_cpu_threads_for(s, (double)s->out[0].slot->tensor->n);
    for (int i = HN_QUANTBINARY_A_SCALE; i < s->n_in; i++)
        s->in[i].unread = TRUE;
    if (!p->last)
        return TRUE;
    s->in[HN_QUANTBINARY_A].want = hn_layout_last(hn_cpu_in(s, HN_QUANTBINARY_A));
    if (p->pitched_b)
        s->in[HN_QUANTBINARY_B].want = hn_layout_last(hn_cpu_in(s, HN_QUANTBINARY_B));
    s->out[0].slot->layout = hn_layout_last(s->out[0].slot->tensor);
    return TRUE;
}

/* --- run -----------------------------------------------------------------------------------------------------------
 */

typedef struct {
    const HnStep *s;
    const Pair *p;
    const uint8_t *a;
    const char *b;
    char *y;
    int64_t a_pitch, b_pitch, y_pitch;
} Run;

/* Rows of bytes; `one` at the widest level only */
static void combine_bytes(const Run *r, const HnPairRows *rows)
{
    typedef void (*BytesFn)(const HnPairRows *, const HnPairRow *, const HnPairRow *);
    static const BytesFn bytes[2][HN_LEVELS] = { { NULL, few_sums, wide_sums }, { NULL, few_products, wide_products } };
    const Pair *p = r->p;
    const int level = hn_cpu_level();
    if (level > 0)
        bytes[p->product][level](rows, &p->a, &p->b);
    for (int64_t i = 0; level == 0 && i < rows->rows; i++)
        (p->product ? product_bytes_plain : sum_bytes_plain)(rows->y + i * rows->y_pitch, rows->a + i * rows->a_pitch,
                                                             rows->other, rows->n, &p->a);
    if (r->s->table != NULL)
        hn_int8_lut_rows(&p->map, rows->y, rows->y_pitch, rows->y, rows->y_pitch, rows->rows, rows->n);
}

/* The same, or rows of numbers. */
static void combine(const Run *r, const HnPairRows *rows)
{
    typedef void (*NumbersFn)(float *, const uint8_t *, const float *, int64_t, const HnPairRow *);
    static const NumbersFn numbers[2][HN_LEVELS] = { HN_TABLE_OF_LEVELS(sum_numbers),
                                                     HN_TABLE_OF_LEVELS(product_numbers) };
    const Pair *p = r->p;
    if (r->s->out[0].slot->tensor->dtype != HN_F32) {
        combine_bytes(r, rows);
        return;
    }
    for (int64_t i = 0; i < rows->rows; i++)
        numbers[p->product][hn_cpu_level()]((float *)(void *)(rows->y + i * rows->y_pitch), rows->a + i * rows->a_pitch,
                                            rows->other, rows->n, &p->a);
}

/* n numbers of steps of b from element `at` on. */
static void load_numbers(const Run *r, float *to, int64_t at, int64_t n)
{
    static void (*const bytes[HN_LEVELS])(float *, const uint8_t *, int64_t, uint8_t, float, float) =
        HN_TABLE_OF_LEVELS(scale_bytes);
    static void (*const numbers[HN_LEVELS])(float *, const float *, int64_t, float, float) =
        HN_TABLE_OF_LEVELS(scale_numbers);
    const HnPairRow *q = &r->p->b;
    if (r->p->f32_b)
        numbers[hn_cpu_level()](to, (const float *)(const void *)r->b + at, n, q->by, q->plus);
    else
        bytes[hn_cpu_level()](to, (const uint8_t *)r->b + at, n, q->x_flip, q->by, q->plus);
}

/* The same, or n times that of one element. */
static void load_other(const Run *r, float *to, int64_t at, int64_t n)
{
    load_numbers(r, to, at, r->p->one_b ? 1 : n);
    for (int64_t i = 1; i < n && r->p->one_b; i++)
        to[i] = to[0];
}

/* Adjacent rows that all meet the same few numbers are taken as longer ones, of `other` several times: rows [from, to)
 * of an image; FALSE: they are not such rows. */
static gboolean run_repeated(const Run *r, int64_t image, int64_t from, int64_t to)
{
    const Pair *p = r->p;
    const gsize size = hn_dtype_size(r->s->out[0].slot->tensor->dtype);
    const int64_t most = MIN(PIECE / p->n, to - from);
    if (p->one_b || p->row_b > 0 || most < 2 || r->a_pitch != p->n || r->y_pitch != p->n)
        return FALSE;
    float other[PIECE];
    load_numbers(r, other, image * p->image_b * r->b_pitch, p->n);
    for (int64_t i = p->n; i < most * p->n; i++)
        other[i] = other[i - p->n];
    for (int64_t i = from, some; i < to; i += some) {
        some = MIN(most, to - i);
        const int64_t at = (image * p->rows + i) * p->n;
        combine(
            r,
            &(HnPairRows){
                .y = (uint8_t *)r->y + (gsize)at * size, .a = r->a + at, .other = other, .rows = 1, .n = some * p->n });
    }
    return TRUE;
}

/* Elements [c, c + n) of rows [from, to) of an image; as many rows at once as meet bytes, the same, or one each. */
static void run_piece(const Run *r, int64_t image, int64_t from, int64_t to, int64_t c, int64_t n)
{
    const Pair *p = r->p;
    const gsize size = hn_dtype_size(r->s->out[0].slot->tensor->dtype);
    const gboolean straight = hn_cpu_level() > 0 && !p->f32_b && !p->one_b && p->row_b > 0 && size == 1;
    const gboolean each = hn_cpu_level() == 2 && p->one_b && p->row_b > 0 && r->b_pitch == 1 && size == 1;
    const int64_t most = straight || p->row_b == 0 ? to - from : each ? PIECE : 1;
    float other[PIECE];
    for (int64_t i = from, some; i < to; i += some) {
        const int64_t row = image * p->rows + i;
        const int64_t at = (image * p->image_b + i * p->row_b) * r->b_pitch + (p->one_b ? 0 : c);
        some = MIN(most, to - i);
        if (each)
            load_numbers(r, other, at, some);
        else if (!straight)
            load_other(r, other, at, n);
        combine(r, &(HnPairRows){ .y = (uint8_t *)r->y + (gsize)(row * r->y_pitch + c) * size,
                                  .a = r->a + row * r->a_pitch + c,
                                  .b = straight ? (const uint8_t *)r->b + at : NULL,
                                  .other = other,
                                  .y_pitch = r->y_pitch * (int64_t)size,
                                  .a_pitch = r->a_pitch,
                                  .b_pitch = r->b_pitch,
                                  .rows = some,
                                  .n = n,
                                  .one = each });
    }
}

/* Plain tensors of one shape, or one with a single element. */
static void run_flat(const Run *r, int64_t from, int64_t to)
{
    const Pair *p = r->p;
    const gsize size = hn_dtype_size(r->s->out[0].slot->tensor->dtype);
    const gboolean straight = hn_cpu_level() > 0 && !p->f32_b && !p->one_b && size == 1;
    float other[PIECE];
    for (int64_t i = from, n; i < to; i += n) {
        n = straight ? to - from : MIN(PIECE, to - i);
        if (!straight && (i == from || !p->one_b))
            load_other(r, other, p->one_b ? 0 : i, n);
        combine(r, &(HnPairRows){ .y = (uint8_t *)r->y + (gsize)i * size,
                                  .a = r->a + i,
                                  .b = straight ? (const uint8_t *)r->b + i : NULL,
                                  .other = other,
                                  .rows = 1,
                                  .n = n });
    }
}

/* Part `part` of the rows of all images, or of all elements. */
static gboolean is_flat(const Run *r)
{
    const Pair *p = r->p;
    if (!p->last)
        return p->rows == 1;
    if (p->one_b || p->row_b == 0 || (p->images > 1 && p->image_b == 0))
        return FALSE;
    return r->a_pitch == p->n && r->y_pitch == p->n && r->b_pitch == p->n;
}

/* Elements [first, end). */
static void run_elements(gpointer run, G_GNUC_UNUSED int thread, int64_t first, int64_t end)
{
    run_flat(run, first, end);
}

/* Rows [first, end) of all images. */
static void run_rows(gpointer run, G_GNUC_UNUSED int thread, int64_t first, int64_t end)
{
    const Run *r = run;
    const Pair *p = r->p;
    for (int64_t i = first, next; i < end; i = next) {
        const int64_t image = i / p->rows;
        next = MIN(end, (image + 1) * p->rows);
        if (run_repeated(r, image, i - image * p->rows, next - image * p->rows))
            continue;
        for (int64_t c = 0; c < p->n; c += PIECE)
            run_piece(r, image, i - image * p->rows, next - image * p->rows, c, MIN(PIECE, p->n - c));
    }
}

static gboolean pair_run(HnStep *s, GError **error)
{
    (void)error;
    Pair *p = s->state;
    hn_int8_lut_once(&p->map, s->table);
    const HnSlot *b = s->in[HN_QUANTBINARY_B].slot;
    Run r = { .s = s,
              .p = p,
              .a = hn_cpu_data(&s->in[HN_QUANTBINARY_A]),
              .b = hn_cpu_data(&s->in[HN_QUANTBINARY_B]),
              .y = hn_cpu_data(&s->out[0]),
              .a_pitch = p->last ? hn_slot_pitch(s->in[HN_QUANTBINARY_A].slot) : p->n,
              .b_pitch = p->pitched_b           ? hn_slot_pitch(b)
                         : p->last && !p->one_b ? p->n
                                                : 1,
              .y_pitch = p->last ? hn_slot_pitch(s->out[0].slot) : p->n };
    const int64_t rows = p->images * p->rows;
    const gboolean flat = is_flat(&r);
    hn_parallel_for(flat ? rows * p->n : rows, p->threads, flat ? run_elements : run_rows, &r);
    return TRUE;
}

static const HnKernel quantpair = {
    .name = "cpu.quantbinary",
    .reject = pair_reject,
    .prepare = pair_prepare,
    .run = pair_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
    .pitched = TRUE,
    .exchanges = TRUE,
};

const HnKernel *const hn_cpu_quantadd[] = { &quantpair, NULL };
const HnKernel *const hn_cpu_quantmul[] = { &quantpair, NULL };
