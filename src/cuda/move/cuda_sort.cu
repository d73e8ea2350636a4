#include "cuda/core/device.cuh"
#include "cuda/move/cuda_sort_args.h"

/* The sum over the threads before this one; room: [33], which may be used again behind a barrier. */
__device__ inline uint32_t sum_before(uint32_t x, uint32_t *room)
{
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP, warps = blockDim.x / HN_WARP;
    uint32_t sum = x;
    for (int d = 1; d < HN_WARP; d *= 2) {
        const uint32_t other = __shfl_up_sync(HN_ALL_LANES, sum, d);
        sum += lane >= d ? other : 0;
    }
    if (lane == HN_WARP - 1)
        room[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        uint32_t of = lane < warps ? room[lane] : 0;
        const uint32_t own = of;
        for (int d = 1; d < HN_WARP; d *= 2) {
            const uint32_t other = __shfl_up_sync(HN_ALL_LANES, of, d);
            of += lane >= d ? other : 0;
        }
        room[lane] = of - own;
    }
    __syncthreads();
    return room[warp] + sum - x;
}

/* A digit beyond the key's 32 bits is 0. */
__device__ inline uint32_t digit_of(const HnCudaSortArgs &a, uint32_t key)
{
    return a.shift < 32 ? key >> a.shift & (HN_CUDA_SORT_DIGITS - 1) : 0;
}

extern "C" __global__ void sort_count(const __grid_constant__ HnCudaSortArgs a)
{
    __shared__ uint32_t count[HN_CUDA_SORT_DIGITS];
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        if (threadIdx.x < HN_CUDA_SORT_DIGITS)
            count[threadIdx.x] = 0;
        __syncthreads();
        for (int k = 0; k < HN_CUDA_SORT_EACH; k++) {
            const int64_t i = tile * HN_CUDA_SORT_TILE + k * HN_CUDA_SORT_THREADS + threadIdx.x;
            if (i < a.n)
                atomicAdd(&count[digit_of(a, hn_at<const uint32_t>(a.key)[i])], 1u);
        }
        __syncthreads();
        if (threadIdx.x < HN_CUDA_SORT_DIGITS)
            hn_at<uint32_t>(a.counts)[threadIdx.x * a.tiles + tile] = count[threadIdx.x];
        __syncthreads();
    }
}

/* Counts become the places of the first ones; one block. */
extern "C" __global__ void sort_scan(const __grid_constant__ HnCudaSortArgs a)
{
    __shared__ uint32_t room[HN_WARP];
    uint32_t *counts = hn_at<uint32_t>(a.counts), sum = 0;
    const int64_t n = a.tiles * HN_CUDA_SORT_DIGITS, each = (n + blockDim.x - 1) / blockDim.x;
    const int64_t begin = min(n, threadIdx.x * each), end = min(n, begin + each);
    for (int64_t i = begin; i < end; i++)
        sum += counts[i];
    sum = sum_before(sum, room);
    for (int64_t i = begin; i < end; i++) {
        const uint32_t count = counts[i];
        counts[i] = sum;
        sum += count;
    }
}

/* Threads have items that follow each other: a digit's items keep their order, thread by thread. */
extern "C" __global__ void sort_place(const __grid_constant__ HnCudaSortArgs a)
{
    __shared__ uint32_t at[HN_CUDA_SORT_DIGITS][HN_CUDA_SORT_THREADS], base[HN_CUDA_SORT_DIGITS], room[HN_WARP];
    const int me = threadIdx.x;
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        const int64_t begin = tile * HN_CUDA_SORT_TILE + me * HN_CUDA_SORT_EACH;
        const int64_t end = min(a.n, begin + HN_CUDA_SORT_EACH);
        const uint32_t *key = hn_at<const uint32_t>(a.key);
        for (int d = 0; d < HN_CUDA_SORT_DIGITS; d++)
            at[d][me] = 0;
        for (int64_t i = begin; i < end; i++)
            at[digit_of(a, key[i])][me]++;
        __syncthreads();
        uint32_t *part = &at[0][0] + me * HN_CUDA_SORT_DIGITS, sum = 0; /* of all counts, as many as threads have */
        for (int k = 0; k < HN_CUDA_SORT_DIGITS; k++)
            sum += part[k];
        sum = sum_before(sum, room);
        for (int k = 0; k < HN_CUDA_SORT_DIGITS; k++) {
            const uint32_t count = part[k];
            part[k] = sum;
            sum += count;
        }
        __syncthreads();
        if (me < HN_CUDA_SORT_DIGITS)
            base[me] = hn_at<const uint32_t>(a.counts)[me * a.tiles + tile] - at[me][0];
        __syncthreads();
        for (int64_t i = begin; i < end; i++) {
            const uint32_t d = digit_of(a, key[i]), to = base[d] + at[d][me]++;
            hn_at<uint32_t>(a.key_to)[to] = key[i];
            hn_at<uint32_t>(a.item_to)[to] = a.first ? (uint32_t)i : hn_at<const uint32_t>(a.item)[i];
        }
        __syncthreads();
    }
}
