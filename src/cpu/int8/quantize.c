/*
 * QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear between f32 and 8-bit integers (from i32 too), with one
 * scale or one for each index of an axis.
 */
#include "op/quantize.h"

#include <immintrin.h>
#include <math.h>

#include "cpu/core/cpu_kernel.h"
#include "op/index.h"

#define HN_LOOPS "cpu/int8/quantize_loops.h"
#include "base/every_level.h"

#define CHUNK ((int64_t)1 << 12) /* elements that a thread takes at a time, of one scale for all */

typedef void (*QuantizeFn)(void *y, const float *x, const float *s, const void *zeros, int64_t n, gboolean each);
typedef void (*DequantizeFn)(float *y, const void *x, const float *s, const void *zeros, int64_t n, gboolean each);

#define PIECE ((int64_t)256)

/* With one scale, 64 at a time, and what is left over as in the loops. A quotient is x times the reciprocal of the
 * scale and, in a second step, what that leaves of x: together they round as a division does. It must not be infinite
 * before; what becomes NaN of large negative numbers is the least, as NaN itself. */
static inline __attribute__((always_inline)) HN_TARGET_avx512 void quick_avx512(QuantizeFn loops, uint8_t *y,
                                                                                const float *x, const float *s,
                                                                                const void *zeros, int64_t n,
                                                                                const gboolean is_signed)
{
    const int z = zeros == NULL ? 0 : is_signed ? *(const int8_t *)zeros : *(const uint8_t *)zeros;
    const __m512 by = _mm512_set1_ps(1 / *s), lo = _mm512_set1_ps((float)((is_signed ? -128 : 0) - z));
    const __m512 hi = _mm512_set1_ps((float)((is_signed ? 127 : 255) - z)), far = _mm512_set1_ps(70000);
    const __m512 scale = _mm512_set1_ps(*s);
    const __m512i zero = _mm512_set1_epi16((short)z);
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    int64_t i = 0;
    if (*s > 1e-30f && *s < 1e30f)
        for (; i + 64 <= n; i += 64) {
            __m512i v[4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                const __m512 f = _mm512_loadu_ps(x + i + 16 * j);
                const __m512 q = _mm512_min_ps(_mm512_mul_ps(f, by), far); /* of NaN the second operand */
                const __m512 exact = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, scale, f), by, q);
                v[j] = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(exact, lo), hi));
            }
            const __m512i a = _mm512_add_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
            const __m512i b = _mm512_add_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
            _mm512_storeu_si512(y + i, _mm512_permutexvar_epi32(in_order, is_signed ? _mm512_packs_epi16(a, b)
                                                                                    : _mm512_packus_epi16(a, b)));
        }
    if (i < n)
        loops(y + i, x + i, s, zeros, n - i, FALSE);
}

/* The same 32 at a time. */
static inline __attribute__((always_inline)) HN_TARGET_avx2 void quick_avx2(QuantizeFn loops, uint8_t *y,
                                                                            const float *x, const float *s,
                                                                            const void *zeros, int64_t n,
                                                                            const gboolean is_signed)
{
    const int z = zeros == NULL ? 0 : is_signed ? *(const int8_t *)zeros : *(const uint8_t *)zeros;
    const __m256 by = _mm256_set1_ps(1 / *s), lo = _mm256_set1_ps((float)((is_signed ? -128 : 0) - z));
    const __m256 hi = _mm256_set1_ps((float)((is_signed ? 127 : 255) - z)), sign = _mm256_set1_ps(-0.0f);
    const __m256 near = _mm256_set1_ps(0.4995f);
    const __m256i zero = _mm256_set1_epi16((short)z), in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int64_t i = 0;
    for (; i + PIECE <= n; i += PIECE) {
        __m256 most = _mm256_setzero_ps();
        for (int64_t k = i; k < i + PIECE; k += 32) {
            __m256i v[4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                const __m256 q = _mm256_mul_ps(_mm256_loadu_ps(x + k + 8 * j), by);
                const __m256 limited = _mm256_min_ps(_mm256_max_ps(q, lo), hi);
                v[j] = _mm256_cvtps_epi32(limited);
                const __m256 off = _mm256_sub_ps(limited, _mm256_cvtepi32_ps(v[j]));
                most = _mm256_max_ps(most, _mm256_andnot_ps(sign, off));
            }
            const __m256i a = _mm256_add_epi16(_mm256_packs_epi32(v[0], v[1]), zero);
            const __m256i b = _mm256_add_epi16(_mm256_packs_epi32(v[2], v[3]), zero);
            const __m256i bytes = is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
            _mm256_storeu_si256((__m256i *)(void *)(y + k), _mm256_permutevar8x32_epi32(bytes, in_order));
        }
        if (_mm256_movemask_ps(_mm256_cmp_ps(most, near, _CMP_NLT_UQ)) != 0 || !(1 / *s < 1e30f))
            loops(y + i, x + i, s, zeros, PIECE, FALSE);
    }
    if (i < n)
        loops(y + i, x + i, s, zeros, n - i, FALSE);
}

#define DEFINE_QUICK(T, level, is_signed)                                                                          \
    static HN_TARGET_##level void quick_##T##_##level(void *to, const float *x, const float *s, const void *zeros, \
                                                      int64_t n, gboolean each)                                    \
    {                                                                                                              \
        if (each)                                                                                                  \
            quantize_##T##_##level(to, x, s, zeros, n, TRUE);                                                      \
        else                                                                                                       \
            quick_##level(quantize_##T##_##level, to, x, s, zeros, n, is_signed);                                  \
    }
DEFINE_QUICK(uint8_t, avx2, FALSE)
DEFINE_QUICK(int8_t, avx2, TRUE)
DEFINE_QUICK(uint8_t, avx512, FALSE)
DEFINE_QUICK(int8_t, avx512, TRUE)

static const QuantizeFn quantize_u8[HN_LEVELS] = { quantize_uint8_t_plain, quick_uint8_t_avx2, quick_uint8_t_avx512 };
static const QuantizeFn quantize_i8[HN_LEVELS] = { quantize_int8_t_plain, quick_int8_t_avx2, quick_int8_t_avx512 };
static const DequantizeFn dequantize_u8[HN_LEVELS] = HN_TABLE_OF_LEVELS(dequantize_uint8_t);
static const DequantizeFn dequantize_i8[HN_LEVELS] = HN_TABLE_OF_LEVELS(dequantize_int8_t);
static const DequantizeFn dequantize_i32[HN_LEVELS] = HN_TABLE_OF_LEVELS(dequantize_int32_t);

typedef struct {
    QuantizeFn to;     /* either */
    DequantizeFn from; /* or */
    gsize in_size, out_size, zero_size;
    int64_t rows, n, scales; /* row r of n elements has scale r % scales */
    gboolean each;           /* an element of a row has its own */
    int threads;
} Quantize;

static gboolean small_int(HnDtype d)
{
    return d == HN_U8 || d == HN_I8;
}

static const char *quantize_reject(const HnStep *s)
{
    const HnQuantize *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *scale = hn_cpu_in(s, 1), *zero = hn_cpu_in(s, 2);
    const HnTensor *y = s->out[0].slot->tensor;
    const gboolean back = s->op == &hn_op_dequantizelinear;
    const HnTensor *real = back ? y : x, *ints = back ? x : y;
    if (real->dtype != HN_F32 || scale->dtype != HN_F32 || (p->precision != HN_UNDEFINED && p->precision != HN_F32))
        return "only f32";
    if (!small_int(ints->dtype) && !(back && ints->dtype == HN_I32))
        return "only 8-bit integers";
    if (zero != NULL && (zero->dtype != ints->dtype || zero->n != scale->n))
        return "a zero point that is not as the scale";
    if (x->n == 0)
        return "nothing to compute";
    if (scale->n == 1)
        return NULL;
    int64_t axis = x->ndim == 1 ? 0 : p->axis < 0 ? p->axis + x->ndim : p->axis;
    if (p->block != 0 || !p->per_axis || scale->ndim != 1)
        return "scales of blocks, or along several axes";
    if (axis < 0 || axis >= x->ndim || scale->n != x->dims[axis])
        return "scales that are not one for each index of an axis";
    return NULL;
}

static gboolean quantize_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnQuantize *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *scale = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    const int level = hn_cpu_level();
    Quantize *q = g_new0(Quantize, 1);
    s->state = q;
    if (s->op == &hn_op_quantizelinear)
        q->to = (y->dtype == HN_U8 ? quantize_u8 : quantize_i8)[level];
    else
        q->from = (x->dtype == HN_U8 ? dequantize_u8 : x->dtype == HN_I8 ? dequantize_i8 : dequantize_i32)[level];
    q->in_size = hn_dtype_size(x->dtype);
    q->out_size = hn_dtype_size(y->dtype);
    q->zero_size = hn_cpu_in(s, 2) != NULL ? hn_dtype_size(hn_cpu_in(s, 2)->dtype) : 0;
    q->threads = hn_cpu_threads_for(s, 0);
    q->scales = 1;
    q->rows = (x->n + CHUNK - 1) / CHUNK;
    q->n = CHUNK;
    if (scale->n > 1) {
        int axis = (int)(x->ndim == 1 ? 0 : p->axis < 0 ? p->axis + x->ndim : p->axis);
        int64_t inner = hn_span(x->dims, axis + 1, x->ndim);
        q->each = inner == 1;
        q->scales = q->each ? 1 : scale->n;
        q->n = q->each ? scale->n : inner;
        q->rows = x->n / q->n;
    } else if (hn_layout_is_last(s->in[0].slot->layout)) {
        s->in[0].any = TRUE;
        s->out[0].slot->layout = hn_layout_last(y);
    }
    return TRUE;
}

static gboolean quantize_run(HnStep *s, GError **error)
{
    (void)error;
    const Quantize *q = s->state;
    const char *x = hn_cpu_data(&s->in[0]), *zeros = q->zero_size > 0 ? hn_cpu_data(&s->in[2]) : NULL;
    const float *scale = hn_cpu_data(&s->in[1]);
    char *y = hn_cpu_data(&s->out[0]);
    const int64_t total = s->in[0].slot->tensor->n;
#pragma omp parallel for num_threads(q->threads) if (q->threads > 1)
    for (int64_t r = 0; r < q->rows; r++) {
        const int64_t at = r * q->n, n = MIN(q->n, total - at), k = r % q->scales;
        const void *z = zeros != NULL ? zeros + (gsize)k * q->zero_size : NULL;
        const char *from = x + (gsize)at * q->in_size;
        char *to = y + (gsize)at * q->out_size;
        if (q->to != NULL)
            q->to(to, (const float *)(const void *)from, scale + k, z, n, q->each);
        else
            q->from((float *)(void *)to, from, scale + k, z, n, q->each);
    }
    return TRUE;
}

static const HnKernel quantize = {
    .name = "cpu.quantize",
    .reject = quantize_reject,
    .prepare = quantize_prepare,
    .run = quantize_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_quantizelinear[] = { &quantize, NULL };
const HnKernel *const hn_cpu_dequantizelinear[] = { &quantize, NULL };

/* --- the range of the tensor itself --------------------------------------------------------------------------------
 */

static const char *dynamic_reject(const HnStep *s)
{
    (void)s; /* its types are fixed */
    return NULL;
}

/* As in the loops, 64 at a time. */
static HN_TARGET_avx512 void wide_range(const float *x, int64_t n, float *least, float *most)
{
    __m512 lo[4], hi[4];
    int64_t i = 0;
    for (int j = 0; j < 4; j++)
        lo[j] = hi[j] = _mm512_setzero_ps();
    for (; i + 64 <= n; i += 64)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const __m512 v = _mm512_loadu_ps(x + i + 16 * j);
            lo[j] = _mm512_min_ps(v, lo[j]); /* of NaN the second operand */
            hi[j] = _mm512_max_ps(v, hi[j]);
        }
    find_range_avx512(x + i, n - i, least, most);
    for (int j = 0; j < 4; j++) {
        *least = MIN(*least, _mm512_reduce_min_ps(lo[j]));
        *most = MAX(*most, _mm512_reduce_max_ps(hi[j]));
    }
}

typedef struct {
    int threads;
    int64_t parts; /* whose ranges lie in scratch memory, two numbers each */
} Dynamic;

static gboolean dynamic_prepare(HnStep *s, GError **error)
{
    (void)error;
    Dynamic *d = g_new0(Dynamic, 1);
    s->state = d;
    d->threads = hn_cpu_threads_for(s, (double)hn_cpu_in(s, 0)->n / 2);
    d->parts = d->threads > 1 ? d->threads : 1;
    s->scratch_bytes = (gsize)d->parts * 2 * sizeof(float);
    if (s->out[0].slot != NULL && hn_layout_is_last(s->in[0].slot->layout)) {
        s->in[0].any = TRUE;
        s->out[0].slot->layout = hn_layout_last(s->out[0].slot->tensor);
    }
    return TRUE;
}

static void find_part(const HnStep *s, int64_t part)
{
    static void (*const range[HN_LEVELS])(const float *, int64_t, float *, float *) = { find_range_plain,
                                                                                        find_range_avx2, wide_range };
    const Dynamic *d = s->state;
    const HnTensor *x = s->in[0].slot->tensor;
    const int64_t from = x->n * part / d->parts, to = x->n * (part + 1) / d->parts;
    float *found = (float *)s->scratch + 2 * part;
    range[hn_cpu_level()]((const float *)x->data + from, to - from, &found[0], &found[1]);
}

static gboolean dynamic_run(HnStep *s, GError **error)
{
    (void)error;
    const Dynamic *d = s->state;
    const HnTensor *x = s->in[0].slot->tensor;
    const float *found = s->scratch;
#pragma omp parallel for num_threads(d->threads) if (d->threads > 1)
    for (int64_t i = 0; i < d->parts; i++)
        find_part(s, i);
    float lo = found[0], hi = found[1];
    for (int64_t i = 1; i < d->parts; i++) {
        lo = found[2 * i] < lo ? found[2 * i] : lo;
        hi = found[2 * i + 1] > hi ? found[2 * i + 1] : hi;
    }
    const float scale = hi == lo ? 1.0f : (hi - lo) / 255.0f;
    float zero = 0.0f - lo / scale;
    zero = zero > 0 ? zero < 255 ? rintf(zero) : 255 : 0;
    const uint8_t z = (uint8_t)zero;
    char *y = s->out[0].slot != NULL ? hn_cpu_data(&s->out[0]) : NULL;
#pragma omp parallel for num_threads(d->threads) if (d->threads > 1)
    for (int64_t i = 0; i < d->parts; i++) {
        const int64_t from = x->n * i / d->parts, to = x->n * (i + 1) / d->parts;
        if (y != NULL)
            quantize_u8[hn_cpu_level()](y + from, (const float *)x->data + from, &scale, &z, to - from, FALSE);
    }
    if (s->n_out > 1 && s->out[1].slot != NULL)
        *(float *)hn_cpu_data(&s->out[1]) = scale;
    if (s->n_out > 2 && s->out[2].slot != NULL)
        *(uint8_t *)hn_cpu_data(&s->out[2]) = z;
    return TRUE;
}

static const HnKernel dynamic = {
    .name = "cpu.dynamicquantize",
    .reject = dynamic_reject,
    .prepare = dynamic_prepare,
    .run = dynamic_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_dynamicquantizelinear[] = { &dynamic, NULL };
