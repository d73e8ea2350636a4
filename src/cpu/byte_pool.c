/*
 * MaxPool of bytes, channels last: vectors are channels.
 */
#include <immintrin.h>

#include "base/cpu.h"
#include "cpu/byte_conv.h"
#include "cpu/byte_tile.h"
#include "cpu/cpu.h"
#include "op/pool.h"

typedef struct {
    HnWindowAxis axis[2]; /* height, width */
    int64_t most;         /* taps of a window */
    gboolean joined;      /* lines are joined before columns: where windows overlap */
    gsize part_bytes;     /* scratch of a thread */
    int threads;
} Pool;

/* `count` results side by side, the largest of n >= 1 rows each. */
typedef void (*MostFn)(uint8_t *y, const uint8_t *const *from, int64_t n, int64_t count);

static inline __attribute__((always_inline)) void most_from(uint8_t *y, const uint8_t *const *from, int64_t n,
                                                            int64_t c, int64_t count, uint8_t flip)
{
    for (; c < count; c++) {
        uint8_t most = from[0][c] ^ flip;
        for (int64_t k = 1; k < n; k++)
            most = (from[k][c] ^ flip) > most ? from[k][c] ^ flip : most;
        y[c] = most ^ flip;
    }
}

#define DEFINE_MOST(name, flip, MAX256, MAX512)                                                                   \
    static void name##_plain(uint8_t *y, const uint8_t *const *from, int64_t n, int64_t count)                    \
    {                                                                                                             \
        most_from(y, from, n, 0, count, flip);                                                                    \
    }                                                                                                             \
    __attribute__((target("avx2"))) static void name##_avx2(uint8_t *y, const uint8_t *const *from, int64_t n,    \
                                                            int64_t count)                                        \
    {                                                                                                             \
        int64_t c = 0;                                                                                            \
        for (; c + 32 <= count; c += 32) {                                                                        \
            __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(from[0] + c));                         \
            for (int64_t k = 1; k < n; k++)                                                                       \
                v = MAX256(v, _mm256_loadu_si256((const __m256i *)(const void *)(from[k] + c)));                  \
            _mm256_storeu_si256((__m256i *)(void *)(y + c), v);                                                   \
        }                                                                                                         \
        most_from(y, from, n, c, count, flip);                                                                    \
    }                                                                                                             \
    __attribute__((target("avx512f,avx512bw"))) static void name##_avx512(uint8_t *y, const uint8_t *const *from, \
                                                                          int64_t n, int64_t count)               \
    {                                                                                                             \
        for (int64_t c = 0; c < count; c += 64) {                                                                 \
            const __mmask64 mask = count - c >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (count - c)) - 1;           \
            __m512i v = _mm512_maskz_loadu_epi8(mask, from[0] + c);                                               \
            for (int64_t k = 1; k < n; k++)                                                                       \
                v = MAX512(v, _mm512_maskz_loadu_epi8(mask, from[k] + c));                                        \
            _mm512_mask_storeu_epi8(y + c, mask, v);                                                              \
        }                                                                                                         \
    }
DEFINE_MOST(most_unsigned, 0, _mm256_max_epu8, _mm512_max_epu8)
DEFINE_MOST(most_signed, 128, _mm256_max_epi8, _mm512_max_epi8)

static MostFn most_of(HnDtype dtype)
{
    static const MostFn fns[2][3] = { { most_unsigned_plain, most_unsigned_avx2, most_unsigned_avx512 },
                                      { most_signed_plain, most_signed_avx2, most_signed_avx512 } };
    const HnIsa isa = hn_cpu_isa();
    return fns[dtype == HN_I8][isa >= HN_ISA_AVX512 ? 2 : isa >= HN_ISA_AVX2 ? 1 : 0];
}

static gboolean place(const HnStep *s, HnWindowAxis *axis)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    HnWindowAxis all[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK];
    if (!hn_pool_place(s->params, x->ndim, x->dims, all, dims, NULL))
        return FALSE;
    axis[0] = x->ndim > 3 ? all[0] : (HnWindowAxis){ .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1 };
    axis[1] = all[x->ndim - 3];
    return TRUE;
}

/* First tap of the window at o that lies in the source, and the one behind the last. */
static void taps_of(const HnWindowAxis *a, int64_t o, int64_t *from, int64_t *to)
{
    const int64_t begin = o * a->stride - a->pad;
    *from = begin >= 0 ? 0 : (-begin + a->dilation - 1) / a->dilation;
    *to = a->in <= begin ? 0 : MIN(a->kernel, (a->in - begin + a->dilation - 1) / a->dilation);
}

static gboolean sees_source(const HnWindowAxis *a)
{
    for (int64_t o = 0; o < a->out; o++) {
        int64_t from, to;
        taps_of(a, o, &from, &to);
        if (from >= to)
            return FALSE;
    }
    return TRUE;
}

static const char *pool_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    HnWindowAxis axis[2];
    if (x->dtype != HN_U8 && x->dtype != HN_I8)
        return "only bytes";
    if (!hn_cpu_wants_only(s, 1))
        return "indices are wanted";
    if (x->ndim != 3 && x->ndim != 4)
        return "only 1 or 2 spatial axes";
    if (x->n == 0 || s->out[0].slot->tensor->n == 0)
        return "nothing to compute";
    if (!place(s, axis))
        return "the window does not fit";
    return sees_source(&axis[0]) && sees_source(&axis[1]) ? NULL : "windows that see padding only";
}

static gboolean pool_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    Pool *p = g_new0(Pool, 1);
    s->state = p;
    place(s, p->axis);
    p->most = MIN(p->axis[0].kernel, p->axis[0].in) * MIN(p->axis[1].kernel, p->axis[1].in);
    p->threads = hn_cpu_threads_for(s, (double)y->n * (double)p->most / 16);
    p->joined = p->axis[0].kernel > 1 && p->axis[1].kernel > p->axis[1].stride;
    p->part_bytes = (gsize)p->most * sizeof(void *) + (p->joined ? (gsize)(p->axis[1].in * x->dims[1]) : 0);
    p->part_bytes = (p->part_bytes + 63) / 64 * 64;
    s->scratch_bytes = p->part_bytes * (gsize)p->threads;
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    return TRUE;
}

/* Rows [lo, hi) of the result. */
static void pool_rows(const HnStep *s, int part, int64_t lo, int64_t hi)
{
    const Pool *p = s->state;
    const HnWindowAxis *h = &p->axis[0], *w = &p->axis[1];
    const int64_t channels = hn_cpu_in(s, 0)->dims[1];
    const int64_t xp = hn_slot_pitch(s->in[0].slot), yp = hn_slot_pitch(s->out[0].slot);
    const uint8_t **tap = (const uint8_t **)(gpointer)((char *)s->scratch + (gsize)part * p->part_bytes);
    uint8_t *join = (uint8_t *)(tap + p->most);
    const MostFn most = most_of(hn_cpu_in(s, 0)->dtype);
    for (int64_t i = lo; i < hi; i++) {
        const uint8_t *x = (const uint8_t *)hn_cpu_data(&s->in[0]) + i / h->out * h->in * w->in * xp;
        uint8_t *y = (uint8_t *)hn_cpu_data(&s->out[0]) + i * w->out * yp;
        int64_t y0, y1, x0, x1;
        taps_of(h, i % h->out, &y0, &y1);
        const uint8_t *lines = x + (i % h->out * h->stride - h->pad) * w->in * xp; /* where tap 0 is */
        int64_t pixel = xp, line = h->dilation * w->in * xp;
        if (p->joined && xp == channels) {
            for (int64_t k = y0; k < y1; k++)
                tap[k - y0] = lines + k * line;
            most(join, tap, y1 - y0, w->in * channels);
            lines = join;
            y1 = 1;
            y0 = 0;
        }
        for (int64_t o = 0; o < w->out; o++, y += yp) {
            int64_t n = 0;
            taps_of(w, o, &x0, &x1);
            for (int64_t k = y0; k < y1; k++)
                for (int64_t j = x0; j < x1; j++)
                    tap[n++] = lines + k * line + (o * w->stride - w->pad + j * w->dilation) * pixel;
            most(y, tap, n, channels);
            if (s->table != NULL)
                hn_byte_exchange(y, y, s->table, channels);
        }
    }
}

static gboolean pool_run(HnStep *s, GError **error)
{
    (void)error;
    const Pool *p = s->state;
    const int64_t rows = hn_cpu_in(s, 0)->dims[0] * p->axis[0].out;
    if (p->threads == 1) {
        pool_rows(s, 0, 0, rows);
        return TRUE;
    }
#pragma omp parallel for num_threads(p->threads)
    for (int t = 0; t < p->threads; t++)
        pool_rows(s, t, rows * t / p->threads, rows * (t + 1) / p->threads);
    return TRUE;
}

static void pool_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

const HnKernel hn_cpu_byte_maxpool = {
    .name = "cpu.byte_maxpool",
    .reject = pool_reject,
    .prepare = pool_prepare,
    .run = pool_run,
    .release = pool_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};
