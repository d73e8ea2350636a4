/*
 * Where: three operands that broadcast, by the size of their elements.
 */
#include "cuda/elementwise/cuda_pair_args.h"
#include "cuda/elementwise/cuda_walk.h"
#include "run/move_forms.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaWhereArgs args;
} Where;

static const char *where_reject(const HnStep *s)
{
    return hn_few_bytes_reject(s, 1);
}

static gboolean where_prepare(HnStep *s, GError **error)
{
    const HnTensor *const x[] = { hn_cuda_in(s, 0), hn_cuda_in(s, 1), hn_cuda_in(s, 2) };
    Where *w = g_new0(Where, 1);
    s->state = w;
    hn_cuda_walk(&w->args.walk, w->args.seen, hn_cuda_out(s, 0), x, 3);
    w->grid = hn_cuda_quads(s, w->args.walk.shape.total, THREADS);
    g_autofree char *name = g_strdup_printf("where_%d", (int)hn_dtype_size(x[1]->dtype));
    w->f = hn_cuda_named(s, "cuda_where", name, error);
    return w->f != NULL;
}

static gboolean where_run(HnStep *s, GError **error)
{
    const Where *w = s->state;
    HnCudaWhereArgs a = w->args;
    a.z = hn_cuda_out_address(s, 0);
    a.c = hn_cuda_in_address(s, 0);
    a.x = hn_cuda_in_address(s, 1);
    a.y = hn_cuda_in_address(s, 2);
    return a.walk.shape.total == 0 || hn_cuda_launch(s, w->f, w->grid, &a, error);
}

static const HnKernel where = {
    .name = "cuda.where",
    .reject = where_reject,
    .prepare = where_prepare,
    .run = where_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_where[] = { &where, NULL };
