/*
 * Trilu: an element stays, or is a zero.
 */
#include "op/trilu.h"

#include "cuda/move/cuda_strided.h"
#include "cuda/move/cuda_write_args.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaTriluArgs args;
} Trilu;

static const char *trilu_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0), *k = hn_cuda_in(s, 1);
    if (x->ndim < 2 || (k != NULL && (k->n != 1 || k->dtype != HN_I64)))
        return "shapes that do not fit";
    return x->n >= HN_DIVIDE_LIMIT ? "2^31 elements or more" : hn_copy_reject(x);
}

static gboolean trilu_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    Trilu *t = g_new0(Trilu, 1);
    s->state = t;
    if (x->n == 0)
        return TRUE;
    t->args.n = (uint32_t)x->n;
    t->args.upper = ((const HnTrilu *)s->params)->upper;
    t->args.rows = hn_divisor(x->dims[x->ndim - 2]);
    t->args.cols = hn_divisor(x->dims[x->ndim - 1]);
    t->f = hn_cuda_sized(s, "cuda_write", "trilu", hn_dtype_size(x->dtype), error);
    return t->f != NULL;
}

static gboolean trilu_run(HnStep *s, GError **error)
{
    const Trilu *t = s->state;
    HnCudaTriluArgs a = t->args;
    a.y = hn_cuda_out_address(s, 0);
    a.x = hn_cuda_in_address(s, 0);
    a.k = hn_cuda_in_address(s, 1);
    return a.n == 0 || hn_cuda_launch(s, t->f, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static const HnKernel trilu = {
    .name = "cuda.trilu",
    .reject = trilu_reject,
    .prepare = trilu_prepare,
    .run = trilu_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};
const HnKernel *const hn_cuda_trilu[] = { &trilu, NULL };
