/*
 * FakeQuantize and FakeQuantizeGrad of floats. The gradient of a scale is a sum of parts, as many as shapes say, in
 * double and in order.
 */
#include "op/fakequantize.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/elementwise/cuda_fakequantize_args.h"

#define THREADS 256
#define CHUNK ((int64_t)4096) /* elements of a part that a block adds up */
#define ROWS ((int64_t)64)    /* ... that a thread does */
#define FEW 64                /* elements of a scale for which a block would be too much */

typedef struct {
    HnCuFunction f, sum;
    HnCudaGrid grid;
    HnCudaFakeArgs args;
    HnCudaFakeSumArgs sums;
} Fake;

/* Inputs from `first` on are x, scale and zero. */
static const char *reject(const HnStep *s, int first)
{
    const HnFakeQuantize *p = s->params;
    const HnTensor *x = hn_cuda_in(s, first), *scale = hn_cuda_in(s, first + 1), *zero = hn_cuda_in(s, first + 2);
    HnFakeGrid g;
    if (!hn_cuda_is_float(x->dtype))
        return "only f32, f16, bf16";
    if (scale->dtype != x->dtype || (zero != NULL && zero->dtype != x->dtype))
        return "inputs of different types";
    if (x->n == 0)
        return "nothing to compute";
    if (p->smooth)
        return "without rounding";
    if (!hn_fake_grid(p, x, scale, &g) || (zero != NULL && zero->n != scale->n) || hn_cuda_in(s, 0)->n != x->n)
        return "shapes that do not fit";
    return NULL;
}

static Fake *prepare(HnStep *s, int first)
{
    const HnFakeQuantize *p = s->params;
    const HnTensor *x = hn_cuda_in(s, first), *scale = hn_cuda_in(s, first + 1);
    HnFakeGrid g;
    Fake *f = g_new0(Fake, 1);
    s->state = f;
    hn_fake_grid(p, x, scale, &g);
    f->args = (HnCudaFakeArgs){
        .n = x->n,
        .size = g.size,
        .inner = g.inner,
        .block = g.block,
        .blocks = g.scales,
        .blocked = g.blocked,
        .one = scale->n == 1,
        .lowest = (float)p->lowest,
        .highest = (float)p->highest,
        .scales = scale->n,
    };
    f->sums = (HnCudaFakeSumArgs){
        .scales = scale->n,
        .gain = p->gain,
        .elements = hn_fake_elements(p, x, &g),
        .lowest = p->lowest,
        .highest = p->highest,
    };
    return f;
}

static const char *fake_reject(const HnStep *s)
{
    return reject(s, 0);
}

static gboolean fake_prepare(HnStep *s, GError **error)
{
    Fake *f = prepare(s, 0);
    f->grid = hn_cuda_loop(s, f->args.n, THREADS);
    f->f = hn_cuda_typed(s, "cuda_fakequantize", "fake", hn_cuda_in(s, 0)->dtype, error);
    return f->f != NULL;
}

static gboolean fake_run(HnStep *s, GError **error)
{
    const Fake *f = s->state;
    HnCudaFakeArgs a = f->args;
    a.y = hn_cuda_out_address(s, 0);
    a.x = hn_cuda_in_address(s, 0);
    a.scale = hn_cuda_in_address(s, 1);
    a.zero = hn_cuda_in_address(s, 2);
    return hn_cuda_launch(s, f->f, f->grid, &a, error);
}

static const HnKernel fake = {
    .name = "cuda.fakequantize",
    .reject = fake_reject,
    .prepare = fake_prepare,
    .run = fake_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_fakequantize[] = { &fake, NULL };

/* --- backward ----------------------------------------------------------------------------------------------------- */

static const char *back_reject(const HnStep *s)
{
    return reject(s, 1);
}

static gboolean back_prepare(HnStep *s, GError **error)
{
    Fake *f = prepare(s, 1);
    HnCudaFakeArgs *a = &f->args;
    const HnDtype type = hn_cuda_in(s, 0)->dtype;
    const int64_t each = a->n / a->scales; /* elements of a scale */
    /* elements of scales side by side lie side by side */
    const gboolean lanes = !a->one && (a->blocked ? a->inner > 1 : a->inner == 1);
    const gboolean threads = lanes || each < FEW;
    a->n_parts = CLAMP(each / (threads ? ROWS : CHUNK), 1, 1024);
    f->sums.n_parts = a->n_parts;
    f->grid = threads ? hn_cuda_loop(s, a->scales * a->n_parts, THREADS)
                      : hn_cuda_row(MIN(a->scales * a->n_parts, G_MAXINT32), THREADS);
    s->scratch_bytes = (gsize)(a->scales * a->n_parts) * sizeof(float);
    f->f = hn_cuda_typed(s, "cuda_fakequantize", threads ? "fake_back_thread" : "fake_back_block", type, error);
    f->sum = f->f != NULL ? hn_cuda_typed(s, "cuda_fakequantize", "fake_join", type, error) : NULL;
    return f->sum != NULL;
}

static gboolean back_run(HnStep *s, GError **error)
{
    const Fake *f = s->state;
    HnCudaFakeArgs a = f->args;
    HnCudaFakeSumArgs sums = f->sums;
    a.y = hn_cuda_out_address(s, 0);
    a.dy = hn_cuda_in_address(s, 0);
    a.x = hn_cuda_in_address(s, 1);
    a.scale = hn_cuda_in_address(s, 2);
    a.zero = hn_cuda_in_address(s, 3);
    a.parts = hn_cuda_scratch(s);
    sums.parts = a.parts;
    sums.zero = a.zero;
    sums.ds = hn_cuda_out_address(s, 1);
    return hn_cuda_launch(s, f->f, f->grid, &a, error) &&
           (sums.ds == 0 || hn_cuda_launch(s, f->sum, hn_cuda_loop(s, sums.scales, THREADS), &sums, error));
}

static const HnKernel back = {
    .name = "cuda.fakequantize_grad",
    .reject = back_reject,
    .prepare = back_prepare,
    .run = back_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_fakequantizegrad[] = { &back, NULL };
