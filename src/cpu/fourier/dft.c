/*
 * DFT and STFT of f32: as many signals at a time as a vector has lanes (fft.h).
 */
#include "op/dft.h"

#include "cpu/fourier/fft_batch.h"
#include "op/index.h"
#include "run/fourier_forms.h"

typedef struct {
    HnFftWork work;
    float *scale;      /* [used] of an inverse transform; NULL: none */
    gboolean windowed; /* input HN_STFT_WINDOW holds factors ... */
    gboolean doubled;  /* ... of points of two numbers: written out in scratch memory */
} Transform;

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
    const gboolean real = b.parts_in == 1 && !b.inverse && length % 2 == 0;
    s->state = t;
    hn_fft_work_init(&t->work, real ? hn_fft_new_real(length) : hn_fft_new(length), b);
    t->windowed = windowed;
    t->doubled = windowed && b.parts_in == 2;
    s->scratch_bytes = hn_fft_work_bytes(&t->work, s) + (t->doubled ? 2 * (gsize)length * sizeof(float) : 0);
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
    for (int64_t c = 0; c < t->work.batch.used; c++)
        room[c] = w[c / 2];
    return room;
}

static gboolean transform_run(HnStep *s, GError **error)
{
    const Transform *t = s->state;
    char *room = (char *)s->scratch + hn_fft_work_bytes(&t->work, s);
    HnFftBatch b = t->work.batch;
    (void)error;
    b.x = hn_cpu_data(&s->in[0]);
    b.y = hn_cpu_data(&s->out[0]);
    b.factor = factors_of(s, t, (float *)(void *)room);
    hn_fft_work_run(&t->work, s, &b, s->scratch);
    return TRUE;
}

static void transform_release(HnStep *s)
{
    Transform *t = s->state;
    if (t != NULL) {
        hn_fft_work_clear(&t->work);
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
