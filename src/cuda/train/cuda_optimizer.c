/*
 * Optimizers of f32 in one pass over weights, state and gradient, and the norm of gradients. What changes from step to
 * step is read on the device.
 */
#include "op/optimizer.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/train/cuda_optimizer_args.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaOptimizerArgs args;
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
    o->args.n = hn_cuda_in(s, 0)->n;
    o->args.states = s->in[1].slot != NULL ? s->n_out : 1;
    o->args.decay = (float)p->weight_decay;
    o->args.momentum = (float)p->momentum;
    o->args.epsilon = (float)p->epsilon;
    o->args.new1 = (float)(1 - p->beta1);
    o->args.new2 = (float)(1 - p->beta2);
    o->args.keep2 = (float)p->beta2;
    o->grid = hn_cuda_loop(s, (o->args.n + 3) / 4, THREADS);
    o->f = hn_cuda_typed(s, "cuda_optimizer", name, HN_F32, error);
    return o->f != NULL;
}

static gboolean adamw_prepare(HnStep *s, GError **error)
{
    return prepare(s, "optimizer_adamw", error);
}

static gboolean sgd_prepare(HnStep *s, GError **error)
{
    const HnOptimizer *p = s->params;
    return prepare(s,
                   s->in[1].slot == NULL ? "optimizer_descend"
                   : p->nesterov         ? "optimizer_nesterov"
                                         : "optimizer_momentum",
                   error);
}

static gboolean lion_prepare(HnStep *s, GError **error)
{
    return prepare(s, "optimizer_lion", error);
}

static gboolean average_prepare(HnStep *s, GError **error)
{
    if (!prepare(s, "optimizer_average", error))
        return FALSE;
    Optimizer *o = s->state;
    o->args.states = 1;
    o->args.new1 = (float)(1 - ((const HnOptimizer *)s->params)->decay);
    return TRUE;
}

/* With the gradient and `hyper` as these inputs. */
static gboolean run(const HnStep *s, int gradient, int hyper, GError **error)
{
    const Optimizer *o = s->state;
    HnCudaOptimizerArgs a = o->args;
    for (int k = 0; k < a.states; k++) {
        a.in[k] = hn_cuda_in_address(s, k);
        a.out[k] = hn_cuda_out_address(s, k);
    }
    a.dw = hn_cuda_in_address(s, gradient);
    a.hyper = hn_cuda_in_address(s, hyper);
    return hn_cuda_launch(s, o->f, o->grid, &a, error);
}

static gboolean optimizer_run(HnStep *s, GError **error)
{
    return run(s, s->n_in - 2, s->n_in - 1, error);
}

static gboolean average_run(HnStep *s, GError **error)
{
    return run(s, 1, 2, error);
}

#define OPTIMIZER(title)                                                                                      \
    {                                                                                                         \
        .name = "cuda." #title, .reject = optimizer_reject, .prepare = title##_prepare, .run = optimizer_run, \
        .release = hn_cuda_release, .inplace = TRUE, .inplace_each = TRUE                                     \
    }

static const HnKernel adamw = OPTIMIZER(adamw), sgd = OPTIMIZER(sgd), lion = OPTIMIZER(lion);

static const HnKernel moving_average = {
    .name = "cuda.movingaverage",
    .reject = reject_f32,
    .prepare = average_prepare,
    .run = average_run,
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
