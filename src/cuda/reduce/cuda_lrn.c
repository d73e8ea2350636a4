/*
 * LRN, a thread for each element.
 */
#include "cuda/core/cuda_kernel.h"
#include "cuda/reduce/cuda_lrn_args.h"
#include "op/index.h"
#include "op/lrn.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaLrnArgs args;
} Lrn;

static const char *lrn_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_floats(s);
    return reason != NULL ? reason : hn_cuda_in(s, 0)->ndim < 2 ? "no axis of channels" : NULL;
}

static gboolean lrn_prepare(HnStep *s, GError **error)
{
    const HnLrn *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    Lrn *l = g_new0(Lrn, 1);
    s->state = l;
    l->args.samples = x->dims[0];
    l->args.channels = x->dims[1];
    l->args.inner = hn_span(x->dims, 2, x->ndim);
    l->args.below = MIN((p->size - 1) / 2, x->dims[1]);
    l->args.above = MIN(p->size - 1 - (p->size - 1) / 2, x->dims[1]);
    l->args.alpha = (float)((double)p->alpha / (double)p->size);
    l->args.beta = p->beta;
    l->args.bias = p->bias;
    l->grid = hn_cuda_loop(s, x->n, THREADS);
    l->f = hn_cuda_typed(s, "cuda_lrn", "lrn", x->dtype, error);
    return l->f != NULL;
}

static gboolean lrn_run(HnStep *s, GError **error)
{
    const Lrn *l = s->state;
    HnCudaLrnArgs a = l->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, l->f, l->grid, &a, error);
}

static const HnKernel lrn = {
    .name = "cuda.lrn",
    .reject = lrn_reject,
    .prepare = lrn_prepare,
    .run = lrn_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_lrn[] = { &lrn, NULL };
