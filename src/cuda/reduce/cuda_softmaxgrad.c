/*
 * Gradients of Softmax and LogSoftmax along any axis; sums in f32.
 */
#include "cuda/reduce/cuda_softmaxgrad_args.h"

#include "cuda/reduce/cuda_element.h"
#include "op/index.h"
#include "op/softmax.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaSoftmaxGradArgs args;
} SoftmaxGrad;

static gboolean softmaxgrad_prepare(HnStep *s, GError **error)
{
    const HnSoftmaxGrad *p = s->params;
    const HnTensor *y = hn_cuda_in(s, 1);
    const int axis = hn_axis(p->axis, y->ndim);
    SoftmaxGrad *g = g_new0(SoftmaxGrad, 1);
    s->state = g;
    g->args.outer = hn_span(y->dims, 0, axis);
    g->args.n = y->dims[axis];
    g->args.inner = hn_span(y->dims, axis + 1, y->ndim);
    g->args.logs = p->log;
    const gboolean rows = g->args.inner == 1;
    g->grid = rows ? hn_cuda_row(g->args.outer, hn_cuda_threads(g->args.n, THREADS))
                   : hn_cuda_loop(s, g->args.outer * g->args.inner, THREADS);
    g->f = hn_cuda_typed(s, "cuda_softmaxgrad", rows ? "softmaxgrad_rows" : "softmaxgrad_columns", y->dtype, error);
    return g->f != NULL;
}

static gboolean softmaxgrad_run(HnStep *s, GError **error)
{
    const SoftmaxGrad *g = s->state;
    HnCudaSoftmaxGradArgs a = g->args;
    a.dy = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_in_address(s, 1);
    a.dx = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, g->f, g->grid, &a, error);
}

static const HnKernel softmaxgrad = {
    .name = "cuda.softmaxgrad",
    .reject = hn_cuda_reject_floats,
    .prepare = softmaxgrad_prepare,
    .run = softmaxgrad_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_softmaxgrad[] = { &softmaxgrad, NULL };
