#include "cuda/core/device.cuh"
#include "cuda/move/cuda_pad_args.h"

/* The element among the kept ones that stands at k; -1: the value. Borders are no longer than what they repeat. */
__device__ inline int64_t source_of(int mode, int64_t k, int64_t kept)
{
    if (k >= 0 && k < kept)
        return k;
    switch (mode) {
    case HN_CUDA_PAD_REFLECT:
        return k < 0 ? -k : 2 * (kept - 1) - k;
    case HN_CUDA_PAD_EDGE:
        return k < 0 ? 0 : kept - 1;
    case HN_CUDA_PAD_WRAP:
        return k < 0 ? k + kept : k - kept;
    default:
        return -1;
    }
}

template <typename E> __device__ void pad(const HnCudaPadArgs &a)
{
    const E value = a.given != 0 ? *hn_at<const E>(a.given) : *reinterpret_cast<const E *>(a.value);
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t rest = i;
        int64_t from = 0;
        bool inside = true;
        for (int axis = a.ndim - 1; axis >= 0; axis--) {
            const uint32_t q = axis > 0 ? hn_divide(rest, a.dims[axis]) : 0;
            const int64_t at = (int64_t)(rest - q * a.dims[axis].by) - a.lead[axis];
            const int64_t k = source_of(a.mode, at, a.kept[axis]);
            inside = inside && k >= 0;
            from += (k + a.first[axis]) * a.strides[axis];
            rest = q;
        }
        hn_at<E>(a.y)[i] = inside ? hn_at<const E>(a.x)[from] : value;
    }
}

#define DEFINE(size, type)                                                         \
    extern "C" __global__ void pad_##size(const __grid_constant__ HnCudaPadArgs a) \
    {                                                                              \
        pad<type>(a);                                                              \
    }
DEFINE(1, uint8_t)
DEFINE(2, uint16_t)
DEFINE(4, uint32_t)
DEFINE(8, uint2)
DEFINE(16, uint4)
