/*
 * ArgMax and ArgMin of floats. Of equal values the first counts, or the last; a NaN is more extreme than everything.
 */
#include "op/argmax.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/move/cuda_argmax_args.h"
#include "op/index.h"

#define THREADS 256
#define SHORT 128 /* elements that a warp is enough for */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaArgArgs args;
} Arg;

static const char *arg_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    return x->n > UINT32_MAX ? "2^32 elements or more" : hn_cuda_reject_floats(s);
}

static gboolean arg_prepare(HnStep *s, GError **error)
{
    const HnArg *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    const int axis = hn_axis(p->axis, x->ndim);
    Arg *m = g_new0(Arg, 1);
    s->state = m;
    HnCudaArgArgs *a = &m->args;
    a->outer = hn_span(x->dims, 0, axis);
    a->n = x->ndim > 0 ? x->dims[axis] : 1;
    a->inner = hn_span(x->dims, axis + 1, x->ndim);
    a->min = s->op == &hn_op_argmin;
    a->last = p->last;
    const gboolean columns = a->inner >= HN_CUDA_WARP || a->n < 8;
    m->grid = columns ? hn_cuda_loop(s, a->outer * a->inner, THREADS)
                      : hn_cuda_row(a->outer * a->inner, a->n > SHORT ? THREADS : HN_CUDA_WARP);
    m->f = hn_cuda_typed(s, "cuda_argmax", columns ? "arg_columns" : "arg_rows", x->dtype, error);
    return m->f != NULL;
}

static gboolean arg_run(HnStep *s, GError **error)
{
    const Arg *m = s->state;
    HnCudaArgArgs a = m->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, m->f, m->grid, &a, error);
}

static const HnKernel arg = {
    .name = "cuda.argmax",
    .reject = arg_reject,
    .prepare = arg_prepare,
    .run = arg_run,
    .release = hn_cuda_release,
};
const HnKernel *const hn_cuda_argmax[] = { &arg, NULL };
const HnKernel *const hn_cuda_argmin[] = { &arg, NULL };
