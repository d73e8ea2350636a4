/*
 * Softmax and LogSoftmax along any axis; sums in f32.
 */
#include "cuda/reduce/cuda_rows.h"
#include "cuda/reduce/cuda_softmax_args.h"
#include "op/index.h"
#include "op/softmax.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaSoftmaxArgs args;
} Softmax;

/* The rows that are normalised; an axis behind the last one makes rows of one element. */
static void rows_of(const HnStep *s, HnCudaSoftmaxArgs *a)
{
    const HnSoftmax *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    int axis = hn_axis(p->axis, x->ndim);
    const int end = p->flatten || x->ndim == 0 ? x->ndim : axis + 1;
    axis = CLAMP(axis, 0, x->ndim);
    a->outer = hn_span(x->dims, 0, axis);
    a->n = hn_span(x->dims, axis, end);
    a->inner = hn_span(x->dims, end, x->ndim);
}

static gboolean softmax_prepare(HnStep *s, GError **error)
{
    Softmax *m = g_new0(Softmax, 1);
    s->state = m;
    rows_of(s, &m->args);
    m->args.logs = s->op == &hn_op_logsoftmax;
    if (m->args.inner == 1) {
        m->f = hn_cuda_rows(s, "cuda_softmax", "softmax", m->args.outer, m->args.n, &m->grid, error);
        return m->f != NULL;
    }
    m->grid = hn_cuda_loop(s, m->args.outer * m->args.inner, THREADS);
    m->f = hn_cuda_typed(s, "cuda_softmax", "softmax_columns", hn_cuda_in(s, 0)->dtype, error);
    return m->f != NULL;
}

static gboolean softmax_run(HnStep *s, GError **error)
{
    const Softmax *m = s->state;
    HnCudaSoftmaxArgs a = m->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    a.vector = a.n % 4 == 0 && (a.x | a.y) % 16 == 0;
    return hn_cuda_launch(s, m->f, m->grid, &a, error);
}

static const HnKernel softmax = {
    .name = "cuda.softmax",
    .reject = hn_cuda_reject_floats,
    .prepare = softmax_prepare,
    .run = softmax_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_softmax[] = { &softmax, NULL };
const HnKernel *const hn_cuda_logsoftmax[] = { &softmax, NULL };
