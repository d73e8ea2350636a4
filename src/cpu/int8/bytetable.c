/*
 * ByteTable: bytes in whatever order they lie.
 */
#include "cpu/int8/int8_lut.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/core/cpu_level.h"

#include <string.h>

static const char *table_reject(const HnStep *s)
{
    if (!s->in[1].slot->constant)
        return "a table that is known only at run time";
    if (s->out[0].slot->tensor->dtype == HN_F32)
        return "numbers";
    return s->out[0].slot->tensor->n == 0 ? "nothing to compute" : NULL;
}

typedef struct {
    HnInt8Lut map;
    int threads;
} Table;

static gboolean table_prepare(HnStep *s, GError **error)
{
    (void)error;
    Table *t = g_new0(Table, 1);
    s->state = t;
    hn_int8_lut_init(&t->map, s->in[1].slot->tensor->data);
    t->threads = hn_cpu_threads_for(s, 0);
    s->in[0].any = TRUE;
    s->in[1].unread = TRUE;
    s->out[0].slot->layout = s->in[0].slot->layout != NULL ? hn_layout_last(s->out[0].slot->tensor) : NULL;
    return TRUE;
}

/* Pixels [from, to), or bytes where there are no pitches. */
static void exchange(const HnStep *s, int64_t from, int64_t to, int64_t channels)
{
    const HnInt8Lut *map = &((const Table *)s->state)->map;
    const uint8_t *x = hn_cpu_data(&s->in[0]);
    uint8_t *y = hn_cpu_data(&s->out[0]);
    if (channels == 0) {
        hn_int8_lut_rows(map, y + from, 0, x + from, 0, 1, to - from);
        return;
    }
    const int64_t xp = hn_slot_pitch(s->in[0].slot), yp = hn_slot_pitch(s->out[0].slot);
    hn_int8_lut_rows(map, y + from * yp, yp, x + from * xp, xp, to - from, channels);
}

static gboolean table_run(HnStep *s, GError **error)
{
    (void)error;
    const int threads = ((const Table *)s->state)->threads;
    const HnTensor *y = s->out[0].slot->tensor;
    const gboolean apart = s->in[0].slot->pitch > 0 || s->out[0].slot->pitch > 0;
    const int64_t channels = apart ? y->dims[1] : 0, n = apart ? y->n / channels : y->n;
    if (threads == 1) {
        exchange(s, 0, n, channels);
        return TRUE;
    }
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++)
        exchange(s, n * t / threads, n * (t + 1) / threads, channels);
    return TRUE;
}

static const HnKernel byte_table = {
    .name = "cpu.int8_table",
    .reject = table_reject,
    .prepare = table_prepare,
    .run = table_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
    .pitched = TRUE,
};

/* --- bytes as numbers ----------------------------------------------------------------------------------------------
 */

typedef struct {
    gboolean steps; /* the table is (byte - zero) * scale */
    gboolean is_signed;
    int zero;
    float scale;
    int threads;
} Numbers;

static const char *numbers_reject(const HnStep *s)
{
    if (!s->in[1].slot->constant)
        return "a table that is known only at run time";
    return s->out[0].slot->tensor->dtype == HN_F32 ? NULL : "bytes";
}

static int byte_number(gboolean is_signed, int byte)
{
    return is_signed ? (int8_t)byte : byte;
}

/* Most tables are those of DequantizeLinear. */
static void find_steps(Numbers *n, const float *table)
{
    int zero = 0;
    while (zero < 255 && table[zero] != 0)
        zero++;
    n->zero = byte_number(n->is_signed, zero);
    const int other = zero == 127 || zero == 255 ? zero - 1 : zero + 1;
    n->scale = table[other] / (float)(byte_number(n->is_signed, other) - n->zero);
    n->steps = TRUE;
    for (int i = 0; i < 256 && n->steps; i++)
        n->steps = table[i] == (float)(byte_number(n->is_signed, i) - n->zero) * n->scale;
}

static gboolean numbers_prepare(HnStep *s, GError **error)
{
    (void)error;
    Numbers *n = g_new0(Numbers, 1);
    s->state = n;
    n->is_signed = s->in[0].slot->tensor->dtype == HN_I8;
    n->threads = hn_cpu_threads_for(s, 0);
    find_steps(n, s->in[1].slot->tensor->data);
    s->in[0].any = TRUE;
    s->out[0].slot->layout = s->in[0].slot->layout != NULL ? hn_layout_last(s->out[0].slot->tensor) : NULL;
    return TRUE;
}

static inline __attribute__((always_inline)) void steps_row(const Numbers *p, float *restrict y,
                                                            const uint8_t *restrict x, int64_t n)
{
    const int zero = p->zero;
    const float scale = p->scale;
    if (p->is_signed)
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)((int8_t)x[i] - zero) * scale;
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(x[i] - zero) * scale;
}

#define DEFINE_STEPS(name, attribute)                                                   \
    attribute static void name(const Numbers *p, float *y, const uint8_t *x, int64_t n) \
    {                                                                                   \
        steps_row(p, y, x, n);                                                          \
    }
DEFINE_STEPS(steps_plain, )
DEFINE_STEPS(steps_avx2, HN_TARGET_avx2)
DEFINE_STEPS(steps_avx512, HN_TARGET_avx512)

static inline void look_up_8(const float *table, float *restrict y, const uint8_t *x)
{
    uint64_t all;
    memcpy(&all, x, sizeof all);
    for (int k = 0; k < 8; k++)
        y[k] = table[all >> 8 * k & 255];
}

/* Eight at a time: pixels have few channels, and where each of their loops ends is hard to predict. */
static void look_up(const float *restrict table, float *restrict y, const uint8_t *restrict x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        look_up_8(table, y + i, x + i);
    for (; i < n; i++)
        y[i] = table[x[i]];
}

/* Pixels [from, to), or elements where there are no pitches (channels 0). */
static void write_numbers(const HnStep *s, int64_t from, int64_t to, int64_t channels)
{
    static void (*const steps[HN_LEVELS])(const Numbers *, float *, const uint8_t *, int64_t) =
        HN_TABLE_OF_LEVELS(steps);
    const Numbers *p = s->state;
    const float *table = s->in[1].slot->tensor->data;
    const int64_t xp = channels > 0 ? hn_slot_pitch(s->in[0].slot) : to;
    const int64_t yp = channels > 0 ? hn_slot_pitch(s->out[0].slot) : to;
    const int64_t rows = channels > 0 ? to - from : 1, n = channels > 0 ? channels : to - from;
    const int64_t first = channels > 0 ? from : 0, at = channels > 0 ? 0 : from;
    for (int64_t r = first; r < first + rows; r++) {
        const uint8_t *x = (const uint8_t *)hn_cpu_data(&s->in[0]) + r * xp + at;
        float *y = (float *)hn_cpu_data(&s->out[0]) + r * yp + at;
        if (p->steps)
            steps[hn_cpu_level()](p, y, x, n);
        else
            look_up(table, y, x, n);
    }
}

static gboolean numbers_run(HnStep *s, GError **error)
{
    (void)error;
    const Numbers *p = s->state;
    const HnTensor *y = s->out[0].slot->tensor;
    const gboolean apart = s->in[0].slot->pitch > 0 || s->out[0].slot->pitch > 0;
    const int64_t channels = apart ? y->dims[1] : 0, n = apart ? y->n / channels : y->n;
    if (p->threads == 1) {
        write_numbers(s, 0, n, channels);
        return TRUE;
    }
#pragma omp parallel for num_threads(p->threads)
    for (int t = 0; t < p->threads; t++)
        write_numbers(s, n * t / p->threads, n * (t + 1) / p->threads, channels);
    return TRUE;
}

static const HnKernel byte_numbers = {
    .name = "cpu.int8_numbers",
    .reject = numbers_reject,
    .prepare = numbers_prepare,
    .run = numbers_run,
    .release = hn_cpu_release,
    .pitched = TRUE,
};

const HnKernel *const hn_cpu_bytetable[] = { &byte_table, &byte_numbers, NULL };
