/*
 * DFT and STFT of f32: as many signals at a time as a vector has lanes, twice as many where they are real (fft.h).
 */
#include "op/dft.h"

#include "cpu/core/cpu_kernel.h"
#include "cpu/fourier/fft.h"
#include "op/index.h"
#include "run/fourier_forms.h"

#define HN_LOOPS "cpu/fourier/fft_loops.h"
#include "base/every_level.h"

#define BLOCK_MAX ((gsize)1 << 26) /* bytes of a thread's two blocks */

typedef struct {
    HnFft *fft;
    HnFftBatch batch;
    float *scale;      /* [used] of an inverse transform; NULL: none */
    gboolean windowed; /* input HN_STFT_WINDOW holds factors ... */
    gboolean doubled;  /* ... of points of two numbers: written out in scratch memory */
    int lanes;
    int64_t steps; /* batches of hn_fft_step() rows */
    double flops;
    gsize block; /* bytes of each of a thread's two blocks */
} Transform;

static int lanes_here(void)
{
    static const int lanes[] = { HN_LANES_plain, HN_LANES_avx2, HN_LANES_avx512 };
    return lanes[hn_cpu_level()];
}

static const char *transform_reject(const HnStep *s, int64_t length)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    if (x->dtype != HN_F32)
        return "only f32";
    if (s->out[0].slot == NULL || s->out[0].slot->tensor->n == 0)
        return "nothing to compute";
    if (length < 1)
        return "a length, axis or step that is computed when it runs";
    return length > HN_FFT_LENGTH_MAX / 16 ? "signals that are too long" : NULL;
}

/* With b set but for fft and factor. */
static void transform_begin(HnStep *s, HnFftBatch b, int64_t length, gboolean windowed)
{
    Transform *t = g_new0(Transform, 1);
    s->state = t;
    t->fft = hn_fft_new(length);
    t->batch = b;
    t->batch.fft = t->fft;
    t->lanes = lanes_here();
    t->windowed = windowed;
    t->doubled = windowed && b.parts_in == 2;
    const int64_t rows = hn_fft_step(&b, t->lanes);
    t->steps = (b.rows + rows - 1) / rows;
    t->flops = (double)t->steps * t->lanes * (hn_fft_flops(t->fft) + 6 * (double)length);
    t->block = (gsize)hn_fft_points(t->fft) * 2 * (gsize)t->lanes * sizeof(float);
    const int threads = (int)MIN(hn_cpu_threads_for(s, t->flops), t->steps);
    s->scratch_bytes = 2 * t->block * (gsize)MAX(threads, 1) + (t->doubled ? 2 * (gsize)length * sizeof(float) : 0);
    if (!b.inverse)
        return;
    t->scale = g_new(float, b.used);
    for (int64_t c = 0; c < b.used; c++)
        t->scale[c] = (float)(1 / (double)length);
}

static const float *factors_of(const HnStep *s, const Transform *t, float *room)
{
    if (!t->windowed)
        return t->scale;
    const float *w = hn_cpu_data(&s->in[HN_STFT_WINDOW]);
    if (!t->doubled)
        return w;
    for (int64_t c = 0; c < t->batch.used; c++)
        room[c] = w[c / 2];
    return room;
}

static void run_part(const Transform *t, const HnFftBatch *b, char *block, int64_t from, int64_t to)
{
    static void (*const fns[])(const HnFftBatch *, int64_t, int, float *, float *) = HN_TABLE_OF_LEVELS(fft_rows);
    const int64_t rows = hn_fft_step(b, t->lanes);
    for (int64_t i = from; i < to; i++)
        fns[hn_cpu_level()](b, i * rows, (int)MIN(rows, b->rows - i * rows), (float *)(void *)block,
                            (float *)(void *)(block + t->block));
}

static gboolean transform_run(HnStep *s, GError **error)
{
    const Transform *t = s->state;
    const int threads = (int)MIN(hn_cpu_threads_for(s, t->flops), t->steps);
    char *room = (char *)s->scratch + 2 * t->block * (gsize)MAX(threads, 1);
    HnFftBatch b = t->batch;
    (void)error;
    b.x = hn_cpu_data(&s->in[0]);
    b.y = hn_cpu_data(&s->out[0]);
    b.factor = factors_of(s, t, (float *)(void *)room);
    if (threads <= 1) {
        run_part(t, &b, s->scratch, 0, t->steps);
        return TRUE;
    }
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < threads; i++)
        run_part(t, &b, (char *)s->scratch + 2 * t->block * (gsize)i, t->steps * i / threads,
                 t->steps * (i + 1) / threads);
    return TRUE;
}

static void transform_release(HnStep *s)
{
    Transform *t = s->state;
    if (t != NULL) {
        hn_fft_free(t->fft);
        g_free(t->scale);
    }
    hn_cpu_release(s);
}

/* --- DFT --------------------------------------------------------------------------------------------------------- */

static const char *dft_reject(const HnStep *s)
{
    return transform_reject(s, hn_fourier_length(s));
}

static gboolean dft_prepare(HnStep *s, GError **error)
{
    const HnDft *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const int axis = hn_fourier_axis(s);
    const int64_t n = hn_fourier_length(s), parts = x->dims[x->ndim - 1], parts_out = y->dims[y->ndim - 1];
    const gboolean half = p->inverse && p->onesided;
    HnFftBatch b = { .inner = hn_span(x->dims, axis + 1, x->ndim - 1),
                     .group = 1,
                     .far = x->dims[axis] * parts,
                     .columns_in = x->dims[axis] * parts,
                     .columns_out = y->dims[axis] * parts_out,
                     .used = MIN(x->dims[axis], half ? n / 2 + 1 : n) * parts,
                     .parts_in = (int)parts,
                     .parts_out = (int)parts_out,
                     .half = half,
                     .inverse = p->inverse };
    (void)error;
    b.rows = hn_span(x->dims, 0, axis) * b.inner;
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = TRUE;
    transform_begin(s, b, n, FALSE);
    return TRUE;
}

static const HnKernel dft_fft = {
    .name = "cpu.dft",
    .reject = dft_reject,
    .prepare = dft_prepare,
    .run = transform_run,
    .release = transform_release,
};

const HnKernel *const hn_cpu_dft[] = { &dft_fft, NULL };

/* --- STFT -------------------------------------------------------------------------------------------------------- */

static const char *stft_reject(const HnStep *s)
{
    return transform_reject(s, hn_fourier_frame(s));
}

static gboolean stft_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const int64_t n = hn_fourier_frame(s), parts = x->ndim == 3 ? x->dims[2] : 1;
    int64_t step = 1;
    (void)error;
    hn_fourier_number(s, HN_STFT_STEP, &step);
    const HnFftBatch b = { .rows = y->dims[0] * y->dims[1],
                           .inner = 1,
                           .group = y->dims[1],
                           .far = x->dims[1] * parts,
                           .near = step * parts,
                           .columns_in = n * parts,
                           .columns_out = 2 * y->dims[2],
                           .used = n * parts,
                           .parts_in = (int)parts,
                           .parts_out = 2 };
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = i != HN_STFT_WINDOW;
    transform_begin(s, b, n, hn_cpu_in(s, HN_STFT_WINDOW) != NULL);
    return TRUE;
}

static const HnKernel stft_fft = {
    .name = "cpu.stft",
    .reject = stft_reject,
    .prepare = stft_prepare,
    .run = transform_run,
    .release = transform_release,
};

const HnKernel *const hn_cpu_stft[] = { &stft_fft, NULL };
