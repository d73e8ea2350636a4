/*
 * DFT and STFT of signals of any length: short ones in shared memory, long ones by a launch for each factor.
 */
#include "cuda/core/cuda_kernel.h"
#include "cuda/fourier/cuda_fourier_args.h"
#include "op/index.h"
#include "run/fourier_forms.h"

#define THREADS 256
#define MODULE "cuda_fourier"
#define LONGEST ((int64_t)1 << 26) /* points of a signal */
#define PRIME_MOST 4096            /* of its factors: a point is a sum of so many */
#define SHORT 2048                 /* points, at most, whose three arrays fit into shared memory */

typedef struct {
    HnCuFunction f, begin, end; /* short: f alone */
    HnCudaGrid grid;
    HnCudaFourierArgs args;
    gboolean is_short;
} Fourier;

/* Factors of n, as many fours as there are; FALSE: one of them is large. */
static gboolean set_factors(HnCudaFourierArgs *a)
{
    int64_t rest = a->n;
    a->factors = 0;
    for (; rest % 4 == 0; rest /= 4)
        a->factor[a->factors++] = 4;
    for (int64_t f = 2; rest > 1 && f <= PRIME_MOST; f++)
        for (; rest % f == 0; rest /= f)
            a->factor[a->factors++] = (int32_t)f;
    return rest == 1;
}

static const char *fourier_reject(const HnStep *s, int64_t length)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    HnCudaFourierArgs a = { .n = length };
    if (!hn_cuda_is_float(x->dtype))
        return "only f32, f16, bf16";
    if (y == NULL || y->n == 0)
        return "nothing to compute";
    if (length < 1)
        return "a length, axis or step that is computed when it runs";
    if (length > LONGEST)
        return "signals that are too long";
    return set_factors(&a) ? NULL : "a length with a large prime factor";
}

static gboolean fourier_begin(HnStep *s, const HnCudaFourierArgs *args, GError **error)
{
    Fourier *f = g_new0(Fourier, 1);
    const HnDtype dtype = hn_cuda_in(s, 0)->dtype;
    s->state = f;
    f->args = *args;
    set_factors(&f->args);
    f->is_short = args->n <= SHORT;
    if (f->is_short) {
        f->grid = hn_cuda_row(MIN(args->signals, G_MAXINT16), args->n <= 128 ? 64 : THREADS);
        f->grid.shared = 3 * (gsize)args->n * 2 * sizeof(float);
        f->f = hn_cuda_typed(s, MODULE, "fourier_short", dtype, error);
        return f->f != NULL;
    }
    f->grid = hn_cuda_loop(s, args->signals * args->n, THREADS);
    s->scratch_bytes = 2 * (gsize)(args->signals * args->n) * 2 * sizeof(float);
    f->begin = hn_cuda_typed(s, MODULE, "fourier_begin", dtype, error);
    f->end = f->begin != NULL ? hn_cuda_typed(s, MODULE, "fourier_end", dtype, error) : NULL;
    f->f = f->end != NULL ? hn_cuda_named(s, MODULE, "fourier_pass", error) : NULL;
    return f->f != NULL;
}

static gboolean run_passes(const HnStep *s, const Fourier *f, HnCudaFourierArgs *a, GError **error)
{
    uint64_t other = hn_cuda_scratch(s);
    a->to = other + (uint64_t)(a->signals * a->n) * 2 * sizeof(float);
    if (!hn_cuda_launch(s, f->begin, f->grid, a, error))
        return FALSE;
    a->done = 1;
    for (int k = 0; k < a->factors; k++) {
        a->from = a->to;
        a->to = other;
        other = a->from;
        a->radix = a->factor[k];
        if (!hn_cuda_launch(s, f->f, f->grid, a, error))
            return FALSE;
        a->done *= a->radix;
    }
    a->from = a->to;
    return hn_cuda_launch(s, f->end, f->grid, a, error);
}

static gboolean run(const HnStep *s, int window, GError **error)
{
    const Fourier *f = s->state;
    HnCudaFourierArgs a = f->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    a.window = window > 0 ? hn_cuda_in_address(s, window) : 0;
    return f->is_short ? hn_cuda_launch(s, f->f, f->grid, &a, error) : run_passes(s, f, &a, error);
}

/* --- DFT ---------------------------------------------------------------------------------------------------------- */

static const char *dft_reject(const HnStep *s)
{
    return fourier_reject(s, hn_fourier_length(s));
}

static gboolean dft_prepare(HnStep *s, GError **error)
{
    const HnDft *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    const int axis = hn_fourier_axis(s);
    const int64_t inner = hn_span(x->dims, axis + 1, x->ndim - 1);
    const HnCudaFourierArgs a = {
        .signals = hn_span(x->dims, 0, axis) * inner,
        .n = hn_fourier_length(s),
        .points = x->dims[axis],
        .bins = y->dims[axis],
        .group = inner,
        .x_far = x->dims[axis] * inner,
        .x_near = 1,
        .x_step = inner,
        .y_far = y->dims[axis] * inner,
        .y_near = 1,
        .y_step = inner,
        .x_parts = (int32_t)x->dims[x->ndim - 1],
        .y_parts = (int32_t)y->dims[y->ndim - 1],
        .inverse = p->inverse,
        .half = p->inverse && p->onesided,
    };
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = TRUE;
    return fourier_begin(s, &a, error);
}

static gboolean dft_run(HnStep *s, GError **error)
{
    return run(s, -1, error);
}

static const HnKernel dft = {
    .name = "cuda.dft",
    .reject = dft_reject,
    .prepare = dft_prepare,
    .run = dft_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_dft[] = { &dft, NULL };

/* --- STFT --------------------------------------------------------------------------------------------------------- */

static const char *stft_reject(const HnStep *s)
{
    const HnTensor *window = hn_cuda_in(s, HN_STFT_WINDOW);
    if (window != NULL && window->dtype != hn_cuda_in(s, 0)->dtype)
        return "a window of another type";
    return fourier_reject(s, hn_fourier_frame(s));
}

static gboolean stft_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    int64_t step = 1;
    hn_fourier_number(s, HN_STFT_STEP, &step);
    const HnCudaFourierArgs a = {
        .signals = y->dims[0] * y->dims[1],
        .n = hn_fourier_frame(s),
        .points = hn_fourier_frame(s),
        .bins = y->dims[2],
        .group = y->dims[1],
        .x_far = x->dims[1],
        .x_near = step,
        .x_step = 1,
        .y_far = y->dims[1] * y->dims[2],
        .y_near = y->dims[2],
        .y_step = 1,
        .x_parts = x->ndim == 3 ? (int32_t)x->dims[2] : 1,
        .y_parts = 2,
    };
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = i != HN_STFT_WINDOW;
    return fourier_begin(s, &a, error);
}

static gboolean stft_run(HnStep *s, GError **error)
{
    return run(s, HN_STFT_WINDOW, error);
}

static const HnKernel stft = {
    .name = "cuda.stft",
    .reject = stft_reject,
    .prepare = stft_prepare,
    .run = stft_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_stft[] = { &stft, NULL };
