/*
 * Optimizers of f32 in one pass over weights, state and gradient, and the norm of gradients. What changes from step to
 * step is read on the device.
 */
#include <string.h>

#include "op/optimizer.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/train/cuda_optimizer_args.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaOptimizer how;
    int64_t n;
    float decay;
} Optimizer;

/* --- AdamW, Sgd, Lion, MovingAverage ------------------------------------------------------------------------------ */

static const char *reject_f32(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    return x->dtype != HN_F32 ? "only f32" : x->n == 0 ? "nothing to compute" : NULL;
}

static const char *optimizer_reject(const HnStep *s)
{
    for (int k = 0; k < s->n_in && s->op->out[k] != 0; k++)
        if (s->in[k].slot != NULL && (k >= s->n_out || s->out[k].slot == NULL))
            return "a state that nobody wants";
    return reject_f32(s);
}

static gboolean prepare(HnStep *s, const char *name, GError **error)
{
    const HnOptimizer *p = s->params;
    Optimizer *o = g_new0(Optimizer, 1);
    s->state = o;
    o->n = hn_cuda_in(s, 0)->n;
    o->decay = (float)p->weight_decay;
    o->how.states = s->in[1].slot != NULL ? s->n_out : 1;
    o->how.momentum = (float)p->momentum;
    o->how.epsilon = (float)p->epsilon;
    o->how.new1 = (float)(1 - p->beta1);
    o->how.new2 = (float)(1 - p->beta2);
    o->how.keep2 = (float)p->beta2;
    o->grid = hn_cuda_loop(s, (o->n + 3) / 4, THREADS);
    g_autofree char *full = g_strconcat("optimizer_", name, NULL);
    return (o->f = hn_cuda_typed(s, "cuda_optimizer", full, HN_F32, error)) != NULL;
}

static gboolean adamw_prepare(HnStep *s, GError **error)
{
    return prepare(s, "adamw", error);
}

static gboolean sgd_prepare(HnStep *s, GError **error)
{
    const HnOptimizer *p = s->params;
    return prepare(s, s->in[1].slot == NULL ? "descend" : p->nesterov ? "nesterov" : "momentum", error);
}

static gboolean lion_prepare(HnStep *s, GError **error)
{
    return prepare(s, "lion", error);
}

static gboolean average_prepare(HnStep *s, GError **error)
{
    if (!prepare(s, "average", error))
        return FALSE;
    Optimizer *o = s->state;
    o->how.states = 1;
    o->how.new1 = (float)(1 - ((const HnOptimizer *)s->params)->decay);
    return TRUE;
}

/* With the gradient and `hyper` as these inputs. */
static HnCudaOptimized weight_of(const HnStep *s, int gradient, int hyper)
{
    const Optimizer *o = s->state;
    HnCudaOptimized w = {
        .dw = hn_cuda_in_address(s, gradient), .hyper = hn_cuda_in_address(s, hyper), .n = o->n, .decay = o->decay
    };
    for (int k = 0; k < o->how.states; k++) {
        w.in[k] = hn_cuda_in_address(s, k);
        w.out[k] = hn_cuda_out_address(s, k);
    }
    return w;
}

/* The two have the same numbers, but for how much weights decay. */
static gboolean alike(const HnStep *a, const HnStep *b)
{
    const Optimizer *x = a->state, *y = b->state;
    return x->f == y->f && memcmp(&x->how, &y->how, sizeof x->how) == 0;
}

/* As many of the steps as one launch takes: how many. */
static int describe(HnStep *const *steps, int n, int gradient, int hyper, HnCudaOptimizersArgs *a)
{
    a->how = ((const Optimizer *)steps[0]->state)->how;
    a->weights = a->blocks = 0;
    while (a->weights < MIN(n, HN_CUDA_OPTIMIZERS) && alike(steps[0], steps[a->weights])) {
        const HnStep *s = steps[a->weights];
        HnCudaOptimized *w = &a->weight[a->weights++];
        *w = weight_of(s, gradient, hyper);
        w->first = a->blocks;
        a->blocks += (int32_t)((const Optimizer *)s->state)->grid.grid[0];
    }
    return a->weights;
}

static gboolean run(HnStep *const *steps, int n, int gradient, int hyper, GError **error)
{
    HnCudaOptimizersArgs a = { 0 };
    for (int i = 0, some; i < n; i += some) {
        some = describe(steps + i, n - i, gradient, hyper, &a);
        if (!hn_cuda_launch(steps[i], ((const Optimizer *)steps[i]->state)->f, hn_cuda_row(a.blocks, THREADS), &a,
                            error))
            return FALSE;
    }
    return TRUE;
}

static gboolean optimizer_run(HnStep *s, GError **error)
{
    return run(&s, 1, s->n_in - 2, s->n_in - 1, error);
}

static gboolean optimizer_run_many(HnStep *const *steps, int n, GError **error)
{
    return run(steps, n, steps[0]->n_in - 2, steps[0]->n_in - 1, error);
}

static gboolean average_run(HnStep *s, GError **error)
{
    return run(&s, 1, 1, 2, error);
}

static gboolean average_run_many(HnStep *const *steps, int n, GError **error)
{
    return run(steps, n, 1, 2, error);
}

#define OPTIMIZER(title)                                                                                      \
    {                                                                                                         \
        .name = "cuda." #title, .reject = optimizer_reject, .prepare = title##_prepare, .run = optimizer_run, \
        .run_many = optimizer_run_many, .release = hn_cuda_release, .inplace = TRUE, .inplace_each = TRUE     \
    }

static const HnKernel adamw = OPTIMIZER(adamw), sgd = OPTIMIZER(sgd), lion = OPTIMIZER(lion);

static const HnKernel moving_average = {
    .name = "cuda.movingaverage",
    .reject = reject_f32,
    .prepare = average_prepare,
    .run = average_run,
    .run_many = average_run_many,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

/* --- ClipByNorm --------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction squares, clip;
    int64_t chunks;
} Norm;

static const char *norm_reject(const HnStep *s)
{
    for (int i = 1; i < s->n_in; i++)
        if (hn_cuda_in(s, i) == NULL || hn_cuda_in(s, i)->dtype != HN_F32)
            return "only f32";
    return s->out[0].slot == NULL ? "only the norm is wanted" : NULL;
}

static int64_t chunks_of(const HnStep *s, int i)
{
    return (hn_cuda_in(s, i)->n + HN_CUDA_NORM_CHUNK - 1) / HN_CUDA_NORM_CHUNK;
}

static gboolean norm_prepare(HnStep *s, GError **error)
{
    Norm *n = g_new0(Norm, 1);
    s->state = n;
    for (int i = 1; i < s->n_in; i++)
        n->chunks += chunks_of(s, i);
    s->scratch_bytes = (gsize)n->chunks * sizeof(double);
    return (n->squares = hn_cuda_named(s, "cuda_optimizer", "optimizer_squares", error)) != NULL &&
           (n->clip = hn_cuda_named(s, "cuda_optimizer", "optimizer_clip", error)) != NULL;
}

static gboolean norm_run(HnStep *s, GError **error)
{
    const Norm *n = s->state;
    HnCudaNormArgs a = { .sums = hn_cuda_scratch(s) };
    for (int i = 1; i < s->n_in; i++) {
        if (chunks_of(s, i) > 0)
            a.input[a.inputs++] = (HnCudaNormInput){ hn_cuda_in_address(s, i), hn_cuda_in(s, i)->n, a.chunks };
        a.chunks += chunks_of(s, i);
        if (a.inputs == 0 || (a.inputs < HN_CUDA_NORM_INPUTS && i + 1 < s->n_in))
            continue;
        if (!hn_cuda_launch(s, n->squares, hn_cuda_row(a.chunks - a.from, THREADS), &a, error))
            return FALSE;
        a.from = a.chunks;
        a.inputs = 0;
    }
    const HnCudaClipArgs c = { .sums = a.sums,
                               .hyper = hn_cuda_in_address(s, 0),
                               .next = hn_cuda_out_address(s, 0),
                               .norm = hn_cuda_out_address(s, 1),
                               .chunks = n->chunks,
                               .limit = ((const HnOptimizer *)s->params)->limit };
    return hn_cuda_launch(s, n->clip, hn_cuda_row(1, THREADS), &c, error);
}

static const HnKernel clip_by_norm = {
    .name = "cuda.clipbynorm",
    .reject = norm_reject,
    .prepare = norm_prepare,
    .run = norm_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_adamw[] = { &adamw, NULL };
const HnKernel *const hn_cuda_sgd[] = { &sgd, NULL };
const HnKernel *const hn_cuda_lion[] = { &lion, NULL };
const HnKernel *const hn_cuda_movingaverage[] = { &moving_average, NULL };
const HnKernel *const hn_cuda_clipbynorm[] = { &clip_by_norm, NULL };
