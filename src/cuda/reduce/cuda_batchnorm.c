/*
 * BatchNormalization by given moments, on the batch's moments, and its gradient.
 *
 * On the batch's: moments of parts, as many as the shape says; those of channels, by a warp for each; the elements.
 * The gradient goes the same way.
 */
#include "op/batchnorm.h"

#include "cuda/reduce/cuda_batchnorm_args.h"
#include "cuda/reduce/cuda_element.h"
#include "op/index.h"
#include "run/axis_forms.h"

enum { X, SCALE, BIAS, MEAN, VAR };
enum { Y, NEXT_MEAN, NEXT_VAR, BATCH_MEAN, BATCH_SPREAD };
enum { G_DY, G_X, G_SCALE, G_MEAN, G_SPREAD, G_BIAS };

#define THREADS 256
#define BLOCKS 1024        /* that parts make, about */
#define PART_ELEMENTS 4096 /* of a channel, at least, that a block takes alone */
#define PART_SAMPLES 128   /* where it takes a warp's channels */

typedef struct {
    HnCuFunction f[3]; /* in their order; of inference the first alone */
    HnCudaGrid elements, parts, channels;
    HnCudaBatchNormArgs args;
} BatchNorm;

typedef struct {
    HnCuFunction sums, finish, back;
    HnCudaGrid elements, parts, channels;
    HnCudaBatchNormGradArgs args;
} BatchNormGrad;

static const char *reject_channels(const HnStep *s, int x, int first, int last)
{
    const char *reason = hn_cuda_reject_floats(s);
    return reason != NULL ? reason : hn_channel_inputs(s, x, first, last);
}

static HnCudaChannels channels_of(const HnTensor *x)
{
    HnCudaChannels c = { x->dims[0], x->dims[1], hn_span(x->dims, 2, x->ndim), 1, 0, 1 };
    c.width = c.inner == 1 ? HN_CUDA_WARP : 1;
    const int64_t each = c.samples * c.inner, tiles = (c.channels + c.width - 1) / c.width;
    c.parts = CLAMP(BLOCKS / tiles, 1, MAX(each / (c.width > 1 ? PART_SAMPLES : PART_ELEMENTS), 1));
    c.part = (each + c.parts - 1) / c.parts;
    c.parts = (each + c.part - 1) / c.part;
    return c;
}

static HnCudaGrid parts_grid(const HnCudaChannels *c)
{
    return hn_cuda_row((c->channels + c->width - 1) / c->width * c->parts, THREADS);
}

/* Sums of parts, then two numbers for each channel. */
static gsize sums_bytes(const HnCudaChannels *c)
{
    return (gsize)(2 * c->channels * c->parts) * sizeof(float);
}

/* --- by given moments --------------------------------------------------------------------------------------------- */

static const char *infer_reject(const HnStep *s)
{
    const HnBatchNorm *p = s->params;
    if (p->training || p->per_element)
        return "only inference with one mean and variance per channel";
    return reject_channels(s, X, SCALE, VAR);
}

static BatchNorm *batchnorm_new(HnStep *s)
{
    const HnBatchNorm *p = s->params;
    const HnTensor *x = hn_cuda_in(s, X);
    BatchNorm *n = g_new0(BatchNorm, 1);
    s->state = n;
    n->args.shape = channels_of(x);
    n->args.epsilon = p->epsilon;
    n->args.momentum = p->momentum;
    n->args.inverse = p->inverse;
    n->args.weight_type = hn_cuda_in_element(s, SCALE);
    n->args.moment_type = hn_cuda_in_element(s, MEAN);
    n->elements = hn_cuda_loop(s, n->args.shape.inner % 4 == 0 ? x->n / 4 : x->n, THREADS);
    return n;
}

static gboolean infer_prepare(HnStep *s, GError **error)
{
    BatchNorm *n = batchnorm_new(s);
    n->f[0] = hn_cuda_typed(s, "cuda_batchnorm", "batchnorm_infer", hn_cuda_in(s, X)->dtype, error);
    return n->f[0] != NULL;
}

static HnCudaBatchNormArgs args_now(const HnStep *s)
{
    const BatchNorm *n = s->state;
    HnCudaBatchNormArgs a = n->args;
    a.x = hn_cuda_in_address(s, X);
    a.scale = hn_cuda_in_address(s, SCALE);
    a.bias = hn_cuda_in_address(s, BIAS);
    a.mean = hn_cuda_in_address(s, MEAN);
    a.var = hn_cuda_in_address(s, VAR);
    a.y = hn_cuda_out_address(s, Y);
    a.vector = a.shape.inner % 4 == 0 && (a.x | a.y) % 16 == 0;
    return a;
}

static gboolean infer_run(HnStep *s, GError **error)
{
    const BatchNorm *n = s->state;
    const HnCudaBatchNormArgs a = args_now(s);
    return hn_cuda_launch(s, n->f[0], n->elements, &a, error);
}

static const HnKernel infer = {
    .name = "cuda.batchnorm",
    .reject = infer_reject,
    .prepare = infer_prepare,
    .run = infer_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

/* --- on the batch's moments --------------------------------------------------------------------------------------- */

static const char *train_reject(const HnStep *s)
{
    const HnBatchNorm *p = s->params;
    if (!p->training || p->per_element)
        return "only training with one mean and variance per channel";
    return hn_cuda_out(s, Y) == NULL ? "no normalized elements" : reject_channels(s, X, SCALE, VAR);
}

static gboolean train_prepare(HnStep *s, GError **error)
{
    const HnDtype type = hn_cuda_in(s, X)->dtype;
    BatchNorm *n = batchnorm_new(s);
    const HnCudaChannels *c = &n->args.shape;
    n->parts = parts_grid(c);
    n->channels = hn_cuda_loop(s, c->channels * HN_CUDA_WARP, THREADS);
    s->scratch_bytes = sums_bytes(c) + (gsize)(2 * c->channels) * sizeof(float);
    return (n->f[0] = hn_cuda_typed(s, "cuda_batchnorm", "batchnorm_moments", type, error)) != NULL &&
           (n->f[1] = hn_cuda_named(s, "cuda_batchnorm", "batchnorm_finish", error)) != NULL &&
           (n->f[2] = hn_cuda_typed(s, "cuda_batchnorm", "batchnorm_apply", type, error)) != NULL;
}

static gboolean train_run(HnStep *s, GError **error)
{
    const BatchNorm *n = s->state;
    HnCudaBatchNormArgs a = args_now(s);
    a.next_mean = hn_cuda_out_address(s, NEXT_MEAN);
    a.next_var = hn_cuda_out_address(s, NEXT_VAR);
    a.batch_mean = hn_cuda_out_address(s, BATCH_MEAN);
    a.batch_spread = hn_cuda_out_address(s, BATCH_SPREAD);
    a.partial = hn_cuda_scratch(s);
    a.factors = a.partial + sums_bytes(&a.shape);
    return hn_cuda_launch(s, n->f[0], n->parts, &a, error) && hn_cuda_launch(s, n->f[1], n->channels, &a, error) &&
           hn_cuda_launch(s, n->f[2], n->elements, &a, error);
}

static const HnKernel train = {
    .name = "cuda.batchnorm_train",
    .reject = train_reject,
    .prepare = train_prepare,
    .run = train_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_batchnormalization[] = { &infer, &train, NULL };
const HnKernel *const hn_cuda_batchnormtrain[] = { &train, NULL };

/* --- gradient ----------------------------------------------------------------------------------------------------- */

static const char *grad_reject(const HnStep *s)
{
    return hn_cuda_out(s, 0) == NULL ? "no gradient of the elements" : reject_channels(s, G_X, G_SCALE, G_BIAS);
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    const HnBatchNormGrad *p = s->params;
    const HnTensor *x = hn_cuda_in(s, G_X);
    BatchNormGrad *g = g_new0(BatchNormGrad, 1);
    HnCudaBatchNormGradArgs *a = &g->args;
    s->state = g;
    a->shape = channels_of(x);
    a->epsilon = p->epsilon;
    a->lo = p->lo;
    a->hi = p->hi;
    a->frozen = p->frozen;
    a->mask = (int32_t)p->mask;
    a->weight_type = hn_cuda_in_element(s, G_SCALE);
    a->moment_type = hn_cuda_in_element(s, G_MEAN);
    g->elements = hn_cuda_loop(s, a->shape.inner % 4 == 0 ? x->n / 4 : x->n, THREADS);
    g->parts = parts_grid(&a->shape);
    g->channels = hn_cuda_loop(s, a->shape.channels * HN_CUDA_WARP, THREADS);
    s->scratch_bytes = sums_bytes(&a->shape) + (gsize)(2 * a->shape.channels) * sizeof(float);
    return (g->sums = hn_cuda_typed(s, "cuda_batchnorm", "batchnorm_grad_sums", x->dtype, error)) != NULL &&
           (g->finish = hn_cuda_named(s, "cuda_batchnorm", "batchnorm_grad_finish", error)) != NULL &&
           (g->back = hn_cuda_typed(s, "cuda_batchnorm", "batchnorm_grad_back", x->dtype, error)) != NULL;
}

static gboolean grad_run(HnStep *s, GError **error)
{
    const BatchNormGrad *g = s->state;
    HnCudaBatchNormGradArgs a = g->args;
    a.dy = hn_cuda_in_address(s, G_DY);
    a.x = hn_cuda_in_address(s, G_X);
    a.scale = hn_cuda_in_address(s, G_SCALE);
    a.mean = hn_cuda_in_address(s, G_MEAN);
    a.spread = hn_cuda_in_address(s, G_SPREAD);
    a.bias = hn_cuda_in_address(s, G_BIAS);
    a.dx = hn_cuda_out_address(s, 0);
    a.dscale = hn_cuda_out_address(s, 1);
    a.dbias = hn_cuda_out_address(s, 2);
    a.partial = hn_cuda_scratch(s);
    a.factors = a.partial + sums_bytes(&a.shape);
    a.vector = a.shape.inner % 4 == 0 && (a.dy | a.x | a.dx) % 16 == 0;
    return hn_cuda_launch(s, g->sums, g->parts, &a, error) && hn_cuda_launch(s, g->finish, g->channels, &a, error) &&
           hn_cuda_launch(s, g->back, g->elements, &a, error);
}

static const HnKernel grad = {
    .name = "cuda.batchnorm_grad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_batchnormgrad[] = { &grad, NULL };
