#include "cuda/elementwise/cuda_walk.h"

#include "op/index.h"

G_STATIC_ASSERT(HN_CUDA_AXES == HN_MAX_RANK);

static HnCudaAxis axis_of(int64_t n)
{
    HnCudaAxis a = { .n = n };
    if (n < 1 || n > G_MAXINT32)
        return a;
    while (((uint64_t)1 << a.shift) < (uint64_t)n)
        a.shift++;
    a.mul = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << a.shift) - (uint64_t)n)) / (uint64_t)n + 1);
    return a;
}

/* Makes one axis of those that all operands walk through as one, and leaves out those of one element: how many are
 * left. */
static int merge_axes(int ndim, int64_t *dims, HnCudaSeen *seen, int n)
{
    int left = 0;
    for (int k = 0; k < ndim; k++) {
        gboolean one = left > 0;
        if (dims[k] == 1)
            continue;
        for (int i = 0; i < n && one; i++)
            one = seen[i].stride[left - 1] == seen[i].stride[k] * dims[k];
        const int at = one ? left - 1 : left++;
        dims[at] = one ? dims[at] * dims[k] : dims[k];
        for (int i = 0; i < n; i++)
            seen[i].stride[at] = seen[i].stride[k];
    }
    return left;
}

static int kind_of(const HnCudaSeen *seen, int ndim, const int64_t *dims)
{
    gboolean dense = TRUE, number = TRUE;
    int64_t at = 1;
    for (int k = ndim - 1; k >= 0; k--) {
        dense = dense && seen->stride[k] == at;
        number = number && seen->stride[k] == 0;
        at *= dims[k];
    }
    return number && ndim > 0 ? HN_CUDA_NUMBER : dense ? HN_CUDA_DENSE : HN_CUDA_STRIDED;
}

void hn_cuda_walk(HnCudaWalk *w, HnCudaSeen *seen, const HnTensor *z, const HnTensor *const *x, int n)
{
    int64_t dims[HN_MAX_RANK];
    *w = (HnCudaWalk){ .shape = { .total = z->n, .narrow = z->n <= G_MAXINT32, .quads = TRUE } };
    for (int k = 0; k < z->ndim; k++)
        dims[k] = z->dims[k];
    for (int i = 0; i < n; i++) {
        seen[i] = (HnCudaSeen){ 0 };
        if (x[i] != NULL)
            hn_broadcast_strides(x[i], z->ndim, seen[i].stride);
    }
    const int ndim = merge_axes(z->ndim, dims, seen, n);
    w->shape.ndim = ndim;
    for (int k = 0; k < ndim; k++)
        w->axis[k] = axis_of(dims[k]);
    w->shape.quads = ndim == 0 || dims[ndim - 1] % 4 == 0;
    for (int i = 0; i < n; i++)
        seen[i].kind = x[i] == NULL ? HN_CUDA_NUMBER : kind_of(&seen[i], ndim, dims);
}

HnCudaGrid hn_cuda_quads(const HnStep *s, int64_t total, int threads)
{
    return hn_cuda_loop(s, total / 4 + (total % 4 != 0), threads);
}
