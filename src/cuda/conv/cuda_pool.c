/*
 * MaxPool, AveragePool, their gradients, GlobalAveragePool and GlobalMaxPool.
 */
#include "op/pool.h"

#include <string.h>

#include "cuda/conv/cuda_last.h"
#include "cuda/conv/cuda_pool_args.h"
#include "cuda/conv/cuda_window.h"
#include "op/index.h"

#define THREADS 256
#define LONG_PLANE 1024 /* elements: a block has enough to do */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaPoolArgs args;
    HnCudaPlanePoolArgs plane; /* n: 0 where there is no kernel for planes */
} Pool;

/* dims: of the windows' results. */
static const char *reject_windows(const HnStep *s, const HnTensor *x, const HnTensor *dims)
{
    HnWindowAxis axis[HN_MAX_RANK];
    int64_t out[HN_MAX_RANK];
    if (!hn_pool_place(s->params, x->ndim, x->dims, axis, out, NULL))
        return "the window does not fit";
    if (dims->ndim != x->ndim || memcmp(out, dims->dims, (gsize)x->ndim * sizeof *out) != 0)
        return "inputs that do not fit";
    return hn_cuda_reject_axes(x->ndim - 2, axis);
}

static gboolean pool_new(HnStep *s, const char *name, const HnTensor *x, int64_t n, GError **error)
{
    const HnPool *params = s->params;
    HnWindowAxis axis[HN_MAX_RANK];
    int64_t out[HN_MAX_RANK];
    Pool *p = g_new0(Pool, 1);
    s->state = p;
    if (!hn_pool_place(params, x->ndim, x->dims, axis, out, error))
        return FALSE;
    hn_cuda_axes(x->ndim - 2, axis, p->args.axis);
    p->args.planes = x->dims[0] * x->dims[1];
    p->args.count_pad = params->count_pad;
    p->args.by_columns = params->by_columns;
    p->args.sums = params->p > 0;
    p->grid = hn_cuda_loop(s, n, THREADS);
    p->f = hn_cuda_typed(s, "cuda_pool", name, x->dtype, error);
    return p->f != NULL;
}

/* --- forward ----------------------------------------------------------------------------------------------------- */

static const char *pool_reject(const HnStep *s, gboolean bytes)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    const gboolean byte = x->dtype == HN_I8 || x->dtype == HN_U8;
    if (!hn_cuda_is_float(x->dtype) && !(byte && bytes))
        return bytes ? "only f32, f16, bf16, i8, u8" : "only f32, f16, bf16";
    if (y == NULL)
        return "only places are wanted";
    if (x->n == 0 || y->n == 0)
        return "nothing to compute";
    return reject_windows(s, x, y);
}

static const char *max_reject(const HnStep *s)
{
    return hn_cuda_goes_last(s, &hn_cuda_max_pool_last) ? HN_CUDA_GOES_LAST : pool_reject(s, TRUE);
}

static const char *mean_reject(const HnStep *s)
{
    return hn_cuda_goes_last(s, &hn_cuda_mean_pool_last) ? HN_CUDA_GOES_LAST : pool_reject(s, FALSE);
}

/* The last two axes alone have windows, of so few elements that 32 bits count them. */
static gboolean fits_plane(const HnStep *s)
{
    const Pool *p = s->state;
    const HnCudaWindowAxis *depth = &p->args.axis[0];
    if (depth->in != 1 || depth->out != 1 || depth->kernel != 1 || depth->pad != 0 || depth->pad_end != 0)
        return FALSE;
    return MAX(hn_cuda_in(s, 0)->n, hn_cuda_out(s, 0)->n) < HN_DIVIDE_LIMIT && hn_cuda_wants_only(s, 1);
}

static gboolean use_plane(HnStep *s, const char *name, GError **error)
{
    Pool *p = s->state;
    const HnCudaWindowAxis *h = &p->args.axis[1], *w = &p->args.axis[2];
    if (!fits_plane(s))
        return TRUE;
    p->plane.n = (uint32_t)hn_cuda_out(s, 0)->n;
    p->plane.count_pad = p->args.count_pad;
    p->plane.height = *h;
    p->plane.width = *w;
    p->plane.out_height = hn_divisor(h->out);
    p->plane.out_width = hn_divisor(w->out);
    const gboolean known = h->kernel == w->kernel && h->dilation == 1 && w->dilation == 1;
    const int side = known && (h->kernel == 2 || h->kernel == 3) ? h->kernel : 0;
    g_autofree char *prefix = g_strdup_printf("%s_plane_%d", name, side);
    p->grid = hn_cuda_spread(s, p->plane.n, THREADS);
    p->f = hn_cuda_typed(s, "cuda_pool", prefix, hn_cuda_in(s, 0)->dtype, error);
    return p->f != NULL;
}

static gboolean max_prepare(HnStep *s, GError **error)
{
    return pool_new(s, "pool_max", hn_cuda_in(s, 0), hn_cuda_out(s, 0)->n, error) && use_plane(s, "pool_max", error);
}

static gboolean mean_prepare(HnStep *s, GError **error)
{
    return pool_new(s, "pool_mean", hn_cuda_in(s, 0), hn_cuda_out(s, 0)->n, error) && use_plane(s, "pool_mean", error);
}

static gboolean pool_run(HnStep *s, GError **error)
{
    const Pool *p = s->state;
    if (p->plane.n > 0) {
        HnCudaPlanePoolArgs a = p->plane;
        a.x = hn_cuda_in_address(s, 0);
        a.y = hn_cuda_out_address(s, 0);
        return hn_cuda_launch(s, p->f, p->grid, &a, error);
    }
    HnCudaPoolArgs a = p->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    a.places = hn_cuda_out_address(s, 1);
    return hn_cuda_launch(s, p->f, p->grid, &a, error);
}

static const HnKernel max_pool = {
    .name = "cuda.max_pool",
    .reject = max_reject,
    .prepare = max_prepare,
    .run = pool_run,
    .release = hn_cuda_release,
};

static const HnKernel mean_pool = {
    .name = "cuda.mean_pool",
    .reject = mean_reject,
    .prepare = mean_prepare,
    .run = pool_run,
    .release = hn_cuda_release,
};

/* --- gradients --------------------------------------------------------------------------------------------------- */

enum { DY, X, Y }; /* Y: of MaxPoolGrad */

static const char *mean_grad_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_values(s);
    return reason != NULL ? reason : reject_windows(s, hn_cuda_in(s, X), hn_cuda_in(s, DY));
}

static const char *max_grad_reject(const HnStep *s)
{
    const char *reason = mean_grad_reject(s);
    return reason != NULL ? reason : reject_windows(s, hn_cuda_in(s, X), hn_cuda_in(s, Y));
}

static gboolean mean_grad_prepare(HnStep *s, GError **error)
{
    s->in[X].unread = TRUE; /* its shape is known */
    return pool_new(s, "pool_mean_grad", hn_cuda_in(s, X), hn_cuda_in(s, X)->n, error);
}

static gboolean max_grad_prepare(HnStep *s, GError **error)
{
    return pool_new(s, "pool_max_grad", hn_cuda_in(s, X), hn_cuda_in(s, X)->n, error);
}

static gboolean mean_grad_run(HnStep *s, GError **error)
{
    const Pool *p = s->state;
    HnCudaPoolArgs a = p->args;
    a.dy = hn_cuda_in_address(s, DY);
    a.dx = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, p->f, p->grid, &a, error);
}

static gboolean max_grad_run(HnStep *s, GError **error)
{
    const Pool *p = s->state;
    HnCudaPoolArgs a = p->args;
    a.dy = hn_cuda_in_address(s, DY);
    a.x = hn_cuda_in_address(s, X);
    a.y = hn_cuda_in_address(s, Y);
    a.dx = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, p->f, p->grid, &a, error);
}

static const HnKernel max_grad = {
    .name = "cuda.max_pool_grad",
    .reject = max_grad_reject,
    .prepare = max_grad_prepare,
    .run = max_grad_run,
    .release = hn_cuda_release,
};

static const HnKernel mean_grad = {
    .name = "cuda.mean_pool_grad",
    .reject = mean_grad_reject,
    .prepare = mean_grad_prepare,
    .run = mean_grad_run,
    .release = hn_cuda_release,
};

/* --- whole planes ------------------------------------------------------------------------------------------------ */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaGlobalPoolArgs args;
} GlobalPool;

static const char *global_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_values(s);
    if (reason != NULL)
        return reason;
    if (hn_cuda_in(s, 0)->ndim < 2)
        return "no channels";
    return hn_cuda_goes_last(s, &hn_cuda_global_mean_last) ? HN_CUDA_GOES_LAST : NULL;
}

static gboolean global_new(HnStep *s, gboolean mean, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    GlobalPool *p = g_new0(GlobalPool, 1);
    s->state = p;
    p->args.planes = x->dims[0] * x->dims[1];
    p->args.n = x->n / p->args.planes;
    p->args.mean = mean;
    const gboolean block = p->args.n >= LONG_PLANE;
    const int each = block ? 1 : THREADS / HN_CUDA_WARP;
    p->grid = hn_cuda_row((p->args.planes + each - 1) / each, THREADS);
    p->f = hn_cuda_typed(s, "cuda_pool", block ? "pool_global_block" : "pool_global_warp", x->dtype, error);
    return p->f != NULL;
}

static gboolean global_max_prepare(HnStep *s, GError **error)
{
    return global_new(s, FALSE, error);
}

static gboolean global_mean_prepare(HnStep *s, GError **error)
{
    return global_new(s, TRUE, error);
}

static gboolean global_run(HnStep *s, GError **error)
{
    const GlobalPool *p = s->state;
    HnCudaGlobalPoolArgs a = p->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, p->f, p->grid, &a, error);
}

static const HnKernel global_max = {
    .name = "cuda.global_max_pool",
    .reject = global_reject,
    .prepare = global_max_prepare,
    .run = global_run,
    .release = hn_cuda_release,
};

static const HnKernel global_mean = {
    .name = "cuda.global_mean_pool",
    .reject = global_reject,
    .prepare = global_mean_prepare,
    .run = global_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_maxpool[] = { &max_pool, &hn_cuda_max_pool_last, NULL };
const HnKernel *const hn_cuda_averagepool[] = { &mean_pool, &hn_cuda_mean_pool_last, NULL };
const HnKernel *const hn_cuda_maxpoolgrad[] = { &max_grad, NULL };
const HnKernel *const hn_cuda_poolgrad[] = { &mean_grad, NULL };
const HnKernel *const hn_cuda_globalmaxpool[] = { &global_max, &hn_cuda_global_max_last, NULL };
const HnKernel *const hn_cuda_globalaveragepool[] = { &global_mean, &hn_cuda_global_mean_last, NULL };
