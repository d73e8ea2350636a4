/*
 * Windows on the device: taps that lie in the source, and numbers taken apart.
 */
#pragma once

#include "cuda/conv/cuda_window_args.h"
#include "cuda/core/device.cuh"

/* i / d, and the rest; both are below 2^31 as a rule, where dividing takes a third of the time. */
__device__ inline int64_t hn_divide(int64_t i, int32_t d, int32_t &rest)
{
    if (i >> 31 == 0) {
        const uint32_t q = (uint32_t)i / (uint32_t)d;
        rest = (int32_t)((uint32_t)i - q * (uint32_t)d);
        return q;
    }
    const int64_t q = i / d;
    rest = (int32_t)(i - q * d);
    return q;
}

/* Place i of a plane of these sizes: what is left is the plane. */
__device__ inline int64_t hn_place(int64_t i, int32_t d, int32_t h, int32_t w, int32_t *at)
{
    i = hn_divide(i, w, at[2]);
    i = hn_divide(i, h, at[1]);
    return hn_divide(i, d, at[0]);
}

/* Taps [from, to) of output o's window lie in places [lo, hi). */
__device__ inline void hn_taps_within(const HnCudaWindowAxis &a, int32_t o, int32_t lo, int32_t hi, int32_t &from,
                                      int32_t &to)
{
    const int32_t begin = o * a.stride - a.pad;
    from = begin >= lo ? 0 : (lo - begin + a.dilation - 1) / a.dilation;
    to = hi <= begin ? 0 : min(a.kernel, (hi - begin + a.dilation - 1) / a.dilation);
}

/* As hn_pool_held(). */
__device__ inline int32_t hn_held(const HnCudaWindowAxis &a, int32_t o, bool count_pad)
{
    int32_t from, to;
    hn_taps_within(a, o, count_pad ? -a.pad : 0, count_pad ? a.in + a.pad_end : a.in, from, to);
    return max(0, to - from);
}
