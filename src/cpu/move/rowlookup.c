/*
 * RowLookup: rows copied.
 */
#include <string.h>

#include "cpu/core/cpu_kernel.h"

static const char *lookup_reject(const HnStep *s)
{
    if (hn_cpu_in(s, 0)->dtype != HN_F32)
        return "only f32";
    return s->out[0].slot->tensor->n == 0 ? "nothing to compute" : NULL;
}

static gboolean lookup_prepare(HnStep *s, GError **error)
{
    (void)error;
    int *threads = g_new(int, 1);
    s->state = threads;
    *threads = (int)MIN(hn_cpu_threads_for(s, 0), hn_cpu_in(s, 1)->n);
    return TRUE;
}

static void look_up(const HnStep *s, int64_t first, int64_t last)
{
    const HnTensor *table = hn_cpu_in(s, 0), *x = hn_cpu_in(s, 1);
    const int64_t rows = table->dims[0], cols = table->dims[1];
    const int32_t *narrow = x->dtype == HN_I32 ? x->data : NULL;
    const int64_t *wide = x->data;
    const float *from = table->data;
    float *y = hn_cpu_data(&s->out[0]);
    for (int64_t i = first; i < last; i++) {
        const int64_t row = narrow != NULL ? narrow[i] : wide[i];
        if (row >= 0 && row < rows)
            memcpy(y + i * cols, from + row * cols, (gsize)cols * sizeof *y);
        else
            memset(y + i * cols, 0, (gsize)cols * sizeof *y);
    }
}

static gboolean lookup_run(HnStep *s, GError **error)
{
    (void)error;
    const int threads = *(const int *)s->state;
    const int64_t n = hn_cpu_in(s, 1)->n;
    if (threads == 1) {
        look_up(s, 0, n);
        return TRUE;
    }
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++)
        look_up(s, n * t / threads, n * (t + 1) / threads);
    return TRUE;
}

static const HnKernel lookup = {
    .name = "cpu.rowlookup",
    .reject = lookup_reject,
    .prepare = lookup_prepare,
    .run = lookup_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_rowlookup[] = { &lookup, NULL };
