/*
 * InstanceNormalization and GroupNormalization: a block for each group of a sample, or, of few large ones, for each of
 * its parts, as many as the shape says.
 */
#include "cuda/core/cuda_kernel.h"
#include "cuda/reduce/cuda_groupnorm_args.h"
#include "op/index.h"
#include "op/instancenorm.h"

enum { X, SCALE, BIAS };

#define THREADS 256
#define BLOCKS 512         /* that parts make, about */
#define PART_ELEMENTS 8192 /* at least */

typedef struct {
    HnCuFunction f, joined; /* joined: where there are several parts */
    HnCudaGrid grid;
    HnCudaGroupNormArgs args;
} GroupNorm;

static const char *groupnorm_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_floats(s);
    const HnTensor *x = hn_cuda_in(s, X);
    if (reason != NULL)
        return reason;
    if (hn_cuda_in(s, SCALE)->dtype != x->dtype || hn_cuda_in(s, BIAS)->dtype != x->dtype)
        return "weights of another type than the elements";
    return x->ndim < 2 ? "no axis of channels" : NULL;
}

static gboolean groupnorm_prepare(HnStep *s, GError **error)
{
    const HnGroupNorm *p = s->params;
    const HnTensor *x = hn_cuda_in(s, X);
    GroupNorm *g = g_new0(GroupNorm, 1);
    HnCudaGroupNormArgs *a = &g->args;
    s->state = g;
    a->groups = p->groups > 0 ? p->groups : x->dims[1];
    a->each = x->dims[1] / a->groups;
    a->inner = hn_span(x->dims, 2, x->ndim);
    a->size = a->each * a->inner;
    a->epsilon = p->epsilon;
    a->per_group = p->per_group;
    const int64_t factors = p->per_group ? a->groups : x->dims[1];
    if (x->dims[1] % a->groups != 0 || hn_cuda_in(s, SCALE)->n != factors || hn_cuda_in(s, BIAS)->n != factors) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "scale or bias of node '%s' does not have %" PRId64 " elements",
                    hn_node_label(s->node), factors);
        return FALSE;
    }
    a->sets = x->n / a->size;
    a->parts = CLAMP(BLOCKS / a->sets, 1, MAX(a->size / PART_ELEMENTS, 1));
    a->part = ((a->size + a->parts - 1) / a->parts + 3) / 4 * 4;
    a->parts = (a->size + a->part - 1) / a->part;
    g->grid = hn_cuda_row(a->sets * a->parts, THREADS);
    if (a->parts > 1) {
        s->scratch_bytes = (gsize)(2 * a->sets * a->parts) * sizeof(float);
        g->joined = hn_cuda_typed(s, "cuda_groupnorm", "groupnorm_joined", x->dtype, error);
        if (g->joined == NULL)
            return FALSE;
    }
    g->f = hn_cuda_typed(s, "cuda_groupnorm", a->parts > 1 ? "groupnorm_parts" : "groupnorm_whole", x->dtype, error);
    return g->f != NULL;
}

static gboolean groupnorm_run(HnStep *s, GError **error)
{
    const GroupNorm *g = s->state;
    HnCudaGroupNormArgs a = g->args;
    a.x = hn_cuda_in_address(s, X);
    a.scale = hn_cuda_in_address(s, SCALE);
    a.bias = hn_cuda_in_address(s, BIAS);
    a.y = hn_cuda_out_address(s, 0);
    a.partial = hn_cuda_scratch(s);
    a.vector = a.inner % 4 == 0 && (a.x | a.y) % 16 == 0;
    return hn_cuda_launch(s, g->f, g->grid, &a, error) &&
           (g->joined == NULL || hn_cuda_launch(s, g->joined, g->grid, &a, error));
}

static const HnKernel groupnorm = {
    .name = "cuda.groupnorm",
    .reject = groupnorm_reject,
    .prepare = groupnorm_prepare,
    .run = groupnorm_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_instancenormalization[] = { &groupnorm, NULL };
const HnKernel *const hn_cuda_groupnormalization[] = { &groupnorm, NULL };
