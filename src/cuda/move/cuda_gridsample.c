/*
 * GridSample of images: a thread finds its place and weights once for some channels.
 */
#include "op/gridsample.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/move/cuda_gridsample_args.h"

#define THREADS 256

_Static_assert((int)HN_GRID_ZEROS == HN_CUDA_GRID_ZEROS && (int)HN_GRID_BORDER == HN_CUDA_GRID_BORDER &&
                   (int)HN_GRID_REFLECTION == HN_CUDA_GRID_REFLECTION,
               "ways of padding have the same numbers on the device");

typedef struct {
    HnCuFunction f;
    HnCudaGridArgs args;
} Grid;

static const char *grid_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0), *grid = hn_cuda_in(s, 1), *y = hn_cuda_out(s, 0);
    const char *reason = hn_cuda_reject_floats(s);
    if (reason != NULL)
        return reason;
    if (y->n == 0)
        return "nothing to compute";
    if (grid->dtype != x->dtype)
        return "places of another type";
    if (y->n >= HN_DIVIDE_LIMIT)
        return "2^31 elements or more";
    return x->ndim != 4 ? "other than 2 spatial axes" : NULL;
}

static gboolean grid_prepare(HnStep *s, GError **error)
{
    static const char *const names[] = {
        [HN_GRID_LINEAR] = "grid_linear", [HN_GRID_NEAREST] = "grid_nearest", [HN_GRID_CUBIC] = "grid_cubic"
    };
    const HnGridSample *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    const int64_t groups = (x->dims[1] + HN_CUDA_GRID_CHANNELS - 1) / HN_CUDA_GRID_CHANNELS;
    Grid *g = g_new0(Grid, 1);
    s->state = g;
    g->args.n = (uint32_t)(y->dims[0] * groups * y->dims[2] * y->dims[3]);
    g->args.padding = (int32_t)p->padding;
    g->args.align_corners = p->align_corners;
    g->args.channels = x->dims[1];
    g->args.height = x->dims[2];
    g->args.width = x->dims[3];
    g->args.places = hn_divisor(y->dims[2] * y->dims[3]);
    g->args.groups = hn_divisor(groups);
    g->f = hn_cuda_typed(s, "cuda_gridsample", names[p->mode], x->dtype, error);
    return g->f != NULL;
}

static gboolean grid_run(HnStep *s, GError **error)
{
    const Grid *g = s->state;
    HnCudaGridArgs a = g->args;
    a.x = hn_cuda_in_address(s, 0);
    a.grid = hn_cuda_in_address(s, 1);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, g->f, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static const HnKernel grid_sample = {
    .name = "cuda.gridsample",
    .reject = grid_reject,
    .prepare = grid_prepare,
    .run = grid_run,
    .release = hn_cuda_release,
};
const HnKernel *const hn_cuda_gridsample[] = { &grid_sample, NULL };
