/*
 * Transpose, DepthToSpace and SpaceToDepth as one strided copy each.
 */
#include "op/transpose.h"

#include "cuda/move/cuda_copies.h"
#include "op/index.h"

static const char *transpose_reject(const HnStep *s)
{
    return hn_copy_reject(hn_cuda_in(s, 0));
}

/* The source's axes, in the order `perm` of the destination. */
static gboolean prepare_order(HnStep *s, int n, const int64_t *from, const int *perm, GError **error)
{
    int64_t own[HN_MAX_RANK], dims[HN_MAX_RANK], ys[HN_MAX_RANK], xs[HN_MAX_RANK];
    HnCudaCopies *c = hn_cuda_copies_new(s, 1);
    hn_strides(n, from, own);
    for (int a = 0; a < n; a++) {
        dims[a] = from[perm[a]];
        xs[a] = own[perm[a]];
    }
    hn_strides(n, dims, ys);
    c->part[0].copy = hn_cuda_strided_new(s, hn_dtype_size(hn_cuda_in(s, 0)->dtype), n, dims, 0, ys, 0, xs, error);
    return c->part[0].copy != NULL;
}

static gboolean transpose_prepare(HnStep *s, GError **error)
{
    const HnTranspose *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    int perm[HN_MAX_RANK];
    for (int a = 0; a < x->ndim; a++)
        perm[a] = p->perm != NULL ? (int)p->perm[a] : x->ndim - 1 - a;
    return prepare_order(s, x->ndim, x->dims, perm, error);
}

static gboolean depthtospace_prepare(HnStep *s, GError **error)
{
    static const int dcr[6] = { 0, 3, 4, 1, 5, 2 }, crd[6] = { 0, 1, 4, 2, 5, 3 };
    const HnDepthBlock *p = s->params;
    const int64_t *x = hn_cuda_in(s, 0)->dims, *y = hn_cuda_out(s, 0)->dims, b = p->block;
    const int64_t outside[6] = { x[0], b, b, y[1], x[2], x[3] }, inside[6] = { x[0], y[1], b, b, x[2], x[3] };
    return prepare_order(s, 6, p->crd ? inside : outside, p->crd ? crd : dcr, error);
}

static gboolean spacetodepth_prepare(HnStep *s, GError **error)
{
    static const int dcr[6] = { 0, 3, 5, 1, 2, 4 }, crd[6] = { 0, 1, 3, 5, 2, 4 };
    const HnDepthBlock *p = s->params;
    const int64_t *x = hn_cuda_in(s, 0)->dims, *y = hn_cuda_out(s, 0)->dims, b = p->block;
    const int64_t dims[6] = { x[0], x[1], y[2], b, y[3], b };
    return prepare_order(s, 6, dims, p->crd ? crd : dcr, error);
}

#define KERNEL(op)                         \
    static const HnKernel op##_copy = {    \
        .name = "cuda." #op,               \
        .reject = transpose_reject,        \
        .prepare = op##_prepare,           \
        .run = hn_cuda_copies_run,         \
        .release = hn_cuda_copies_release, \
        .splits = hn_cuda_copies_splits,   \
    };                                     \
    const HnKernel *const hn_cuda_##op[] = { &op##_copy, NULL };
KERNEL(transpose)
KERNEL(depthtospace)
KERNEL(spacetodepth)
