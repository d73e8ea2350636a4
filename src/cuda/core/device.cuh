/*
 * What .cu files share: element types in and out of f32, loops over a grid, sums over warps and blocks.
 */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "cuda/core/complaint_args.h"

#define HN_WARP 32
#define HN_ALL_LANES 0xffffffffu

typedef __half hn_f16;
typedef __nv_bfloat16 hn_bf16;

/* Once for each float type: HN_EACH_FLOAT(DEFINE) with DEFINE(suffix, type); suffixes as hn_dtype_name(). */
#define HN_EACH_FLOAT(DEFINE) DEFINE(f32, float) DEFINE(f16, hn_f16) DEFINE(bf16, hn_bf16)

__device__ inline float hn_load(const float *p)
{
    return *p;
}
__device__ inline float hn_load(const hn_f16 *p)
{
    return __half2float(*p);
}
__device__ inline float hn_load(const hn_bf16 *p)
{
    return __bfloat162float(*p);
}
__device__ inline void hn_store(float *p, float x)
{
    *p = x;
}
__device__ inline void hn_store(hn_f16 *p, float x)
{
    *p = __float2half_rn(x);
}
__device__ inline void hn_store(hn_bf16 *p, float x)
{
    *p = __float2bfloat16_rn(x);
}

/* An address of the arguments as a pointer. */
template <typename T> __device__ inline T *hn_at(uint64_t address)
{
    return reinterpret_cast<T *>(address);
}

/* Element `at` is wrong. */
__device__ inline void hn_complain(const HnCudaComplaint &c, int64_t at)
{
    atomicMin(hn_at<unsigned long long>(c.place), (unsigned long long)(c.key | (uint64_t)at));
}

/* for (int64_t i = hn_first(); i < n; i += hn_stride()): the whole grid, whose rows and columns of blocks are one. */
__device__ inline int64_t hn_first()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline int64_t hn_stride()
{
    return (int64_t)gridDim.x * blockDim.x;
}

struct HnSum {
    __device__ static float of(float a, float b)
    {
        return a + b;
    }
    static constexpr float start = 0.0f;
};
struct HnMost { /* NaN stays */
    __device__ static float of(float a, float b)
    {
        return a > b || a != a ? a : b;
    }
    static constexpr float start = -__builtin_huge_valf();
};

/* Over the lanes of a warp; all of them get the result. */
template <typename How> __device__ inline float hn_warp_reduce(float x)
{
    for (int d = HN_WARP / 2; d > 0; d /= 2)
        x = How::of(x, __shfl_xor_sync(HN_ALL_LANES, x, d));
    return x;
}

/* Over the threads of a block, a multiple of 32 of them; all get the result. room: [32] in shared memory, which may be
 * used again at once. */
template <typename How> __device__ inline float hn_block_reduce(float x, float *room)
{
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    x = hn_warp_reduce<How>(x);
    __syncthreads();
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    return hn_warp_reduce<How>(lane < (int)blockDim.x / HN_WARP ? room[lane] : How::start);
}
