/*
 * CumSum and CumProd, in double, or in unsigned numbers, which wrap.
 */
#include "op/cumsum.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/move/cuda_cumsum_args.h"
#include "op/index.h"
#include "run/axis_forms.h"

#define THREADS 256
#define SHORT 16 /* elements that a thread may add up alone */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaCumArgs args;
} Cum;

static const char *cum_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    if (!hn_cuda_is_float(x->dtype) && x->dtype != HN_F64 && x->dtype != HN_I32 && x->dtype != HN_I64)
        return "only f32, f16, bf16, f64, i32, i64";
    return x->n == 0 ? "nothing to compute" : hn_cumulated_axis(s);
}

static gboolean cum_prepare(HnStep *s, GError **error)
{
    const HnCum *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    const int64_t given = hn_tensor_get_i64(hn_cuda_in(s, 1), 0);
    const int axis = hn_axis(given, x->ndim);
    Cum *c = g_new0(Cum, 1);
    s->state = c;
    HnCudaCumArgs *a = &c->args;
    a->outer = hn_span(x->dims, 0, axis);
    a->n = x->dims[axis];
    a->inner = hn_span(x->dims, axis + 1, x->ndim);
    a->product = s->op == &hn_op_cumprod;
    a->exclusive = p->exclusive;
    a->reverse = p->reverse;
    const gboolean columns = a->inner >= HN_CUDA_WARP || a->n <= SHORT;
    c->grid = columns ? hn_cuda_loop(s, a->outer * a->inner, THREADS)
                      : hn_cuda_row(a->outer * a->inner, a->n > HN_CUDA_WARP ? THREADS : HN_CUDA_WARP);
    c->f = hn_cuda_typed(s, "cuda_cumsum", columns ? "cum_columns" : "cum_rows", x->dtype, error);
    s->in[1].unread = TRUE;
    return c->f != NULL;
}

static gboolean cum_run(HnStep *s, GError **error)
{
    const Cum *c = s->state;
    HnCudaCumArgs a = c->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, c->f, c->grid, &a, error);
}

static const HnKernel cum = {
    .name = "cuda.cum",
    .reject = cum_reject,
    .prepare = cum_prepare,
    .run = cum_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};
const HnKernel *const hn_cuda_cumsum[] = { &cum, NULL };
const HnKernel *const hn_cuda_cumprod[] = { &cum, NULL };
