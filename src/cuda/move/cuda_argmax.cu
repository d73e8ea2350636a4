#include "cuda/move/cuda_argmax_args.h"
#include "cuda/move/order.cuh"

#define NONE 0xffffffffffffffffull

/* The most extreme element has the least number. A NaN is more extreme than everything. */
__device__ inline uint64_t rank_of(const HnCudaArgArgs &a, float v, uint32_t k)
{
    const uint32_t order = hn_order(v);
    return hn_ranked(a.min && v == v ? order : ~order, a.last ? ~k : k);
}

__device__ inline int64_t index_of(const HnCudaArgArgs &a, uint64_t rank)
{
    return a.last ? ~(uint32_t)rank : (uint32_t)rank;
}

/* A block for each result. */
template <typename T> __device__ void arg_rows(const HnCudaArgArgs &a)
{
    __shared__ uint64_t room[HN_WARP];
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP, warps = blockDim.x / HN_WARP;
    for (int64_t row = blockIdx.x; row < a.outer * a.inner; row += gridDim.x) {
        const T *x = hn_at<const T>(a.x) + row / a.inner * a.n * a.inner + row % a.inner;
        uint64_t best = NONE;
        for (int64_t k = threadIdx.x; k < a.n; k += blockDim.x)
            best = min(best, rank_of(a, hn_load(x + k * a.inner), (uint32_t)k));
        for (int d = HN_WARP / 2; d > 0; d /= 2)
            best = min(best, __shfl_xor_sync(HN_ALL_LANES, best, d));
        if (lane == 0)
            room[warp] = best;
        __syncthreads();
        if (warp == 0) {
            best = lane < warps ? room[lane] : NONE;
            for (int d = HN_WARP / 2; d > 0; d /= 2)
                best = min(best, __shfl_xor_sync(HN_ALL_LANES, best, d));
            if (lane == 0)
                hn_at<int64_t>(a.y)[row] = index_of(a, best);
        }
        __syncthreads();
    }
}

/* A thread for each result, whose elements lie `inner` apart. */
template <typename T> __device__ void arg_columns(const HnCudaArgArgs &a)
{
    for (int64_t i = hn_first(); i < a.outer * a.inner; i += hn_stride()) {
        const T *x = hn_at<const T>(a.x) + i / a.inner * a.n * a.inner + i % a.inner;
        uint64_t best = NONE;
        for (int64_t k = 0; k < a.n; k++)
            best = min(best, rank_of(a, hn_load(x + k * a.inner), (uint32_t)k));
        hn_at<int64_t>(a.y)[i] = index_of(a, best);
    }
}

#define DEFINE(suffix, type)                                                                 \
    extern "C" __global__ void arg_rows_##suffix(const __grid_constant__ HnCudaArgArgs a)    \
    {                                                                                        \
        arg_rows<type>(a);                                                                   \
    }                                                                                        \
    extern "C" __global__ void arg_columns_##suffix(const __grid_constant__ HnCudaArgArgs a) \
    {                                                                                        \
        arg_columns<type>(a);                                                                \
    }
HN_EACH_FLOAT(DEFINE)
