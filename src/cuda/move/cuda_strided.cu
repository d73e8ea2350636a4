#include "cuda/core/device.cuh"
#include "cuda/move/cuda_strided_args.h"

#define AT_ONCE 4 /* elements that a thread reads before it writes them */

/* Element by element, in the order of the destination's axes. */
template <typename E> __device__ void strided_each(const HnCudaStridedArgs &a)
{
    const E *x = hn_at<const E>(a.x);
    E *y = hn_at<E>(a.y);
    const uint32_t stride = (uint32_t)hn_stride();
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += AT_ONCE * stride) {
        E v[AT_ONCE];
        int64_t to[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            uint32_t rest = i + k * stride;
            int64_t from = 0;
            to[k] = -1;
            if (rest >= a.n)
                continue;
            to[k] = 0;
            for (int axis = a.ndim - 1; axis >= 0; axis--) {
                const uint32_t q = axis > 0 ? hn_divide(rest, a.dims[axis]) : 0, at = rest - q * a.dims[axis].by;
                from += at * a.xs[axis];
                to[k] += at * a.ys[axis];
                rest = q;
            }
            v[k] = x[from];
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (to[k] >= 0)
                y[to[k]] = v[k];
    }
}

/* Tiles are read along x and written along y; the other axes are around them. */
template <typename E, int TILE> __device__ void strided_tiles(const HnCudaStridedArgs &a)
{
    __shared__ E room[TILE][TILE + 1];
    for (uint32_t t = blockIdx.x; t < a.n; t += gridDim.x) {
        uint32_t rest = t;
        uint32_t around = hn_divide_off(rest, a.tiles_m);
        const uint32_t m0 = rest * TILE;
        rest = around;
        around = hn_divide_off(rest, a.tiles_n);
        const uint32_t n0 = rest * TILE;
        const E *x = hn_at<const E>(a.x) + n0 * a.tile_x + m0;
        E *y = hn_at<E>(a.y) + m0 * a.tile_y + n0;
        for (int axis = a.ndim - 1; axis >= 0; axis--) {
            const uint32_t q = hn_divide(around, a.dims[axis]), at = around - q * a.dims[axis].by;
            x += at * a.xs[axis];
            y += at * a.ys[axis];
            around = q;
        }
        const uint32_t m = min(a.tile_m - m0, (uint32_t)TILE), n = min(a.tile_n - n0, (uint32_t)TILE);
        for (uint32_t i = threadIdx.y; i < n; i += HN_CUDA_TILE_ROWS)
            for (uint32_t j = threadIdx.x; j < m; j += HN_WARP)
                room[i][j] = x[i * a.tile_x + j];
        __syncthreads();
        for (uint32_t j = threadIdx.y; j < m; j += HN_CUDA_TILE_ROWS)
            for (uint32_t i = threadIdx.x; i < n; i += HN_WARP)
                y[j * a.tile_y + i] = room[i][j];
        __syncthreads();
    }
}

#define DEFINE(size, type, tile)                                                                \
    extern "C" __global__ void strided_each_##size(const __grid_constant__ HnCudaStridedArgs a) \
    {                                                                                           \
        strided_each<type>(a);                                                                  \
    }                                                                                           \
    extern "C" __global__ void __launch_bounds__(HN_WARP *HN_CUDA_TILE_ROWS)                    \
        strided_tiles_##size(const __grid_constant__ HnCudaStridedArgs a)                       \
    {                                                                                           \
        strided_tiles<type, tile>(a);                                                           \
    }
DEFINE(1, uint8_t, 64)
DEFINE(2, uint16_t, 64)
DEFINE(4, uint32_t, 32)
DEFINE(8, uint2, 32)
DEFINE(16, uint4, 32)
