/*
 * TrainDropout: the elements that the CPU drops, too.
 */
#include "op/traindropout.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/train/cuda_traindropout_args.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaTrainDropoutArgs args;
} Dropout;

static gboolean traindropout_prepare(HnStep *s, GError **error)
{
    const HnTrainDropout *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    Dropout *d = g_new0(Dropout, 1);
    s->state = d;
    d->args.n = x->n;
    d->args.scale = (float)(1 / (1 - p->ratio));
    d->args.threshold = p->threshold;
    d->args.salt = p->salt;
    d->grid = hn_cuda_loop(s, (x->n + 3) / 4, THREADS);
    d->f = hn_cuda_typed(s, "cuda_traindropout", "traindropout", x->dtype, error);
    return d->f != NULL;
}

static gboolean traindropout_run(HnStep *s, GError **error)
{
    const Dropout *d = s->state;
    HnCudaTrainDropoutArgs a = d->args;
    if (a.n == 0)
        return TRUE;
    a.x = hn_cuda_in_address(s, 0);
    a.state = hn_cuda_in_address(s, 1);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, d->f, d->grid, &a, error);
}

static const char *traindropout_reject(const HnStep *s)
{
    if (!hn_cuda_is_float(hn_cuda_in(s, 0)->dtype))
        return "only f32, f16, bf16";
    return hn_cuda_in(s, 1)->n != HN_DROPOUT_STATE ? "a state of another size" : NULL;
}

static const HnKernel traindropout = {
    .name = "cuda.traindropout",
    .reject = traindropout_reject,
    .prepare = traindropout_prepare,
    .run = traindropout_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_traindropout[] = { &traindropout, NULL };
