/*
 * LayerNormalization and RMSNormalization, a warp or a block for each row, and their gradients, whose sums over rows
 * are cut into parts, as many as the shape says.
 */
#include "op/layernorm.h"

#include "cuda/reduce/cuda_element.h"
#include "cuda/reduce/cuda_layernorm_args.h"
#include "cuda/reduce/cuda_rows.h"
#include "op/index.h"

enum { X, SCALE, BIAS };

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaLayerNormArgs args;
} LayerNorm;

static const char *layernorm_reject(const HnStep *s)
{
    const HnLayerNorm *p = s->params;
    const char *reason = hn_cuda_reject_floats(s);
    const HnTensor *x = hn_cuda_in(s, X), *y = hn_cuda_out(s, 0);
    if (reason != NULL)
        return reason;
    for (int i = SCALE; i <= BIAS; i++)
        if (hn_cuda_in(s, i) != NULL && !hn_is_norm_row(hn_cuda_in(s, i), x, hn_axis(p->axis, x->ndim)))
            return "a scale or bias that is not one row";
    if (y == NULL || !hn_cuda_is_float(y->dtype))
        return "only f32, f16, bf16";
    for (int i = SCALE; i <= BIAS; i++)
        if (hn_cuda_in(s, i) != NULL && hn_cuda_in(s, i)->dtype != y->dtype)
            return "weights of another type than the result";
    return NULL;
}

static gboolean prepare(HnStep *s, gboolean centre, GError **error)
{
    const HnLayerNorm *p = s->params;
    const HnTensor *x = hn_cuda_in(s, X);
    LayerNorm *n = g_new0(LayerNorm, 1);
    s->state = n;
    n->args.rows = hn_span(x->dims, 0, hn_axis(p->axis, x->ndim));
    n->args.cols = x->n / n->args.rows;
    n->args.epsilon = p->epsilon;
    n->args.centre = centre;
    n->args.weight_type = hn_cuda_out_element(s, 0);
    n->args.moment_type = hn_cuda_element(p->stash);
    n->f = hn_cuda_rows(s, "cuda_layernorm", "layernorm", n->args.rows, n->args.cols, &n->grid, error);
    return n->f != NULL;
}

static gboolean layernorm_prepare(HnStep *s, GError **error)
{
    return prepare(s, TRUE, error);
}

static gboolean rmsnorm_prepare(HnStep *s, GError **error)
{
    return prepare(s, FALSE, error);
}

static gboolean layernorm_run(HnStep *s, GError **error)
{
    const LayerNorm *n = s->state;
    HnCudaLayerNormArgs a = n->args;
    a.x = hn_cuda_in_address(s, X);
    a.scale = hn_cuda_in_address(s, SCALE);
    a.bias = hn_cuda_in_address(s, BIAS);
    a.y = hn_cuda_out_address(s, 0);
    a.mean = hn_cuda_out_address(s, 1);
    a.inv = hn_cuda_out_address(s, 2);
    a.vector = a.cols % 4 == 0 && (a.x | a.scale | a.bias | a.y) % 16 == 0;
    return hn_cuda_launch(s, n->f, n->grid, &a, error);
}

#define KERNEL(title)                                                                                         \
    {                                                                                                         \
        .name = "cuda." #title, .reject = layernorm_reject, .prepare = title##_prepare, .run = layernorm_run, \
        .release = hn_cuda_release, .inplace = TRUE                                                           \
    }

static const HnKernel layernorm = KERNEL(layernorm), rmsnorm = KERNEL(rmsnorm);

const HnKernel *const hn_cuda_layernormalization[] = { &layernorm, NULL };
const HnKernel *const hn_cuda_rmsnormalization[] = { &rmsnorm, NULL };

/* --- gradient ----------------------------------------------------------------------------------------------------- */

enum { G_DY, G_X, G_SCALE };

#define PARTS 64 /* at most */
#define PART_ROWS 64

typedef struct {
    HnCuFunction rows, columns, join;
    HnCudaGrid grid, columns_grid, join_grid;
    HnCudaLayerNormGradArgs args;
} NormGrad;

static const char *grad_reject(const HnStep *s)
{
    const HnLayerNormGrad *p = s->params;
    const char *reason = hn_cuda_reject_floats(s);
    const HnTensor *x = hn_cuda_in(s, G_X);
    if (reason != NULL)
        return reason;
    if (hn_cuda_out(s, 0) == NULL)
        return "no gradient of the elements";
    return hn_cuda_in(s, G_SCALE)->n == hn_span(x->dims, hn_axis(p->axis, x->ndim), x->ndim) ? NULL
                                                                                             : "a scale that is no row";
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    const HnLayerNormGrad *p = s->params;
    const HnTensor *x = hn_cuda_in(s, G_X);
    NormGrad *g = g_new0(NormGrad, 1);
    HnCudaLayerNormGradArgs *a = &g->args;
    s->state = g;
    a->rows = hn_span(x->dims, 0, hn_axis(p->axis, x->ndim));
    a->cols = x->n / a->rows;
    a->part = MAX(PART_ROWS, (a->rows + PARTS - 1) / PARTS);
    a->parts = (a->rows + a->part - 1) / a->part;
    a->epsilon = p->epsilon;
    a->centred = p->centred;
    g->grid = hn_cuda_row(a->rows, hn_cuda_threads(a->cols / 4, 256));
    g->columns_grid = hn_cuda_row((a->cols + HN_CUDA_WARP - 1) / HN_CUDA_WARP * a->parts, 256);
    g->join_grid = hn_cuda_loop(s, 2 * a->cols, 128);
    s->scratch_bytes = (gsize)(2 * a->rows + 2 * a->parts * a->cols) * sizeof(float);
    g->rows = hn_cuda_typed(s, "cuda_layernorm", "layernorm_grad_rows", x->dtype, error);
    if (g->rows == NULL || (hn_cuda_out(s, 1) == NULL && hn_cuda_out(s, 2) == NULL))
        return g->rows != NULL;
    g->columns = hn_cuda_typed(s, "cuda_layernorm", "layernorm_grad_columns", x->dtype, error);
    g->join = g->columns != NULL ? hn_cuda_typed(s, "cuda_layernorm", "layernorm_grad_join", x->dtype, error) : NULL;
    return g->join != NULL;
}

static gboolean grad_run(HnStep *s, GError **error)
{
    const NormGrad *g = s->state;
    HnCudaLayerNormGradArgs a = g->args;
    a.dy = hn_cuda_in_address(s, G_DY);
    a.x = hn_cuda_in_address(s, G_X);
    a.scale = hn_cuda_in_address(s, G_SCALE);
    a.dx = hn_cuda_out_address(s, 0);
    a.dscale = hn_cuda_out_address(s, 1);
    a.dbias = hn_cuda_out_address(s, 2);
    a.moments = hn_cuda_scratch(s);
    a.partial = a.moments + (uint64_t)a.rows * 2 * sizeof(float);
    if (!hn_cuda_launch(s, g->rows, g->grid, &a, error))
        return FALSE;
    return g->join == NULL || (hn_cuda_launch(s, g->columns, g->columns_grid, &a, error) &&
                               hn_cuda_launch(s, g->join, g->join_grid, &a, error));
}

static const HnKernel layernorm_grad = {
    .name = "cuda.layernorm_grad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_layernormgrad[] = { &layernorm_grad, NULL };
