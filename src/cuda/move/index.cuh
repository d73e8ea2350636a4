/*
 * Tensors of indices, for .cu files.
 */
#pragma once

#include "cuda/core/device.cuh"
#include "cuda/move/cuda_gather_args.h"

__device__ inline int64_t hn_index_load(const HnCudaIndices &at, int64_t i)
{
    return at.wide ? hn_at<const int64_t>(at.data)[i] : hn_at<const int32_t>(at.data)[i];
}

/* Index k, at position `at`, into an axis of n, counted from the back where negative: then from the front. FALSE: it is
 * outside, which the kernel complains of. */
__device__ inline bool hn_index(const HnCudaIndices &i, int64_t at, int64_t &k, int64_t n)
{
    if (k < -n || k >= n) {
        hn_complain(i.complaint, at);
        return false;
    }
    k += k < 0 ? n : 0;
    return true;
}

/* Where element i of the indices' shape is; -1: its index is outside. */
__device__ inline int64_t hn_element_place(const HnCudaElementsArgs &a, uint32_t i)
{
    int64_t k = hn_index_load(a.at, i), place = 0;
    if (!hn_index(a.at, i, k, a.size))
        return -1;
    for (int axis = a.ndim - 1; axis >= 0; axis--) {
        const uint32_t q = axis > 0 ? hn_divide(i, a.dims[axis]) : 0;
        place += (i - q * a.dims[axis].by) * a.strides[axis];
        i = q;
    }
    return place + k * a.stride;
}
