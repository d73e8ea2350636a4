#include "cuda/core/device.cuh"
#include "cuda/move/cuda_copies_args.h"

#define AT_ONCE 2 /* elements that a thread reads before it writes them */

template <typename E> __device__ void copies(const HnCudaCopiesArgs &a)
{
    const HnCudaRuns &p = a.part[blockIdx.y];
    const uint32_t step = blockDim.x;
    for (uint32_t i = blockIdx.x * step * AT_ONCE + threadIdx.x; i < p.n; i += gridDim.x * step * AT_ONCE) {
        E v[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            uint32_t at = i + k * step;
            if (at < p.n) {
                const uint32_t row = hn_divide_off(at, p.run);
                v[k] = hn_at<const E>(p.x)[(int64_t)row * p.x_row + at];
            }
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            uint32_t at = i + k * step;
            if (at < p.n) {
                const uint32_t row = hn_divide_off(at, p.run);
                hn_at<E>(p.y)[(int64_t)row * p.y_row + at] = v[k];
            }
        }
    }
}

#define DEFINE(size, type)                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) copies_##size(const __grid_constant__ HnCudaCopiesArgs a) \
    {                                                                                                           \
        copies<type>(a);                                                                                        \
    }
DEFINE(1, uint8_t)
DEFINE(2, uint16_t)
DEFINE(4, uint32_t)
DEFINE(8, uint2)
DEFINE(16, uint4)
