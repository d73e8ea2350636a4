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

/* Where tile t begins in both, and what there is of it: m by n. */
template <typename E> struct Tile {
    const E *x;
    E *y;
    uint32_t m, n;
    template <int SIDE> __device__ static Tile at(const HnCudaStridedArgs &a, uint32_t t)
    {
        uint32_t rest = t;
        uint32_t around = hn_divide_off(rest, a.tiles_m);
        const uint32_t m0 = rest * SIDE;
        rest = around;
        around = hn_divide_off(rest, a.tiles_n);
        const uint32_t n0 = rest * SIDE;
        Tile to = { hn_at<const E>(a.x) + n0 * a.tile_x + m0, hn_at<E>(a.y) + m0 * a.tile_y + n0,
                    min(a.tile_m - m0, (uint32_t)SIDE), min(a.tile_n - n0, (uint32_t)SIDE) };
        for (int axis = a.ndim - 1; axis >= 0; axis--) {
            const uint32_t q = hn_divide(around, a.dims[axis]), k = around - q * a.dims[axis].by;
            to.x += k * a.xs[axis];
            to.y += k * a.ys[axis];
            around = q;
        }
        return to;
    }
};

/* Tiles are read along x and written along y; the other axes are around them. */
template <typename E, int SIDE> __device__ void strided_tiles(const HnCudaStridedArgs &a)
{
    __shared__ E room[SIDE][SIDE + 1];
    for (uint32_t t = blockIdx.x; t < a.n; t += gridDim.x) {
        const Tile<E> to = Tile<E>::template at<SIDE>(a, t);
        for (uint32_t i = threadIdx.y; i < to.n; i += HN_CUDA_TILE_ROWS)
            for (uint32_t j = threadIdx.x; j < to.m; j += HN_WARP)
                room[i][j] = to.x[i * a.tile_x + j];
        __syncthreads();
        for (uint32_t j = threadIdx.y; j < to.m; j += HN_CUDA_TILE_ROWS)
            for (uint32_t i = threadIdx.x; i < to.n; i += HN_WARP)
                to.y[j * a.tile_y + i] = room[i][j];
        __syncthreads();
    }
}

#define SIDE HN_CUDA_WIDE_SIDE
#define QUAD 4
#define QUADS (SIDE / QUAD)                        /* of a row */
#define ROWS (HN_WARP * HN_CUDA_TILE_ROWS / QUADS) /* that a block takes at a time */

template <typename E> struct alignas(QUAD * sizeof(E)) Quad {
    E v[QUAD];
};

/* Tiles whose rows and columns are whole quads in both: four elements at a time. */
template <typename E> __device__ void strided_quads(const HnCudaStridedArgs &a)
{
    __shared__ E room[SIDE][SIDE + (sizeof(E) < 4 ? 4 / sizeof(E) : 1)]; /* rows begin in different banks */
    const uint32_t thread = threadIdx.y * HN_WARP + threadIdx.x, at = thread % QUADS * QUAD, row = thread / QUADS;
    for (uint32_t t = blockIdx.x; t < a.n; t += gridDim.x) {
        const Tile<E> to = Tile<E>::template at<SIDE>(a, t);
        Quad<E> q[SIDE / ROWS];
#pragma unroll
        for (int k = 0; k < SIDE / ROWS; k++)
            if (row + k * ROWS < to.n && at < to.m)
                q[k] = *reinterpret_cast<const Quad<E> *>(to.x + (row + k * ROWS) * a.tile_x + at);
#pragma unroll
        for (int k = 0; k < SIDE / ROWS; k++)
            if (row + k * ROWS < to.n && at < to.m)
                for (int j = 0; j < QUAD; j++)
                    room[row + k * ROWS][at + j] = q[k].v[j];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SIDE / ROWS; k++)
            if (row + k * ROWS < to.m && at < to.n) {
                for (int j = 0; j < QUAD; j++)
                    q[k].v[j] = room[at + j][row + k * ROWS];
                *reinterpret_cast<Quad<E> *>(to.y + (row + k * ROWS) * a.tile_y + at) = q[k];
            }
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
#define DEFINE_QUADS(size, type)                                             \
    extern "C" __global__ void __launch_bounds__(HN_WARP *HN_CUDA_TILE_ROWS) \
        strided_quads_##size(const __grid_constant__ HnCudaStridedArgs a)    \
    {                                                                        \
        strided_quads<type>(a);                                              \
    }
DEFINE_QUADS(1, uint8_t)
DEFINE_QUADS(2, uint16_t)
DEFINE_QUADS(4, uint32_t)
DEFINE(1, uint8_t, 64)
DEFINE(2, uint16_t, 64)
DEFINE(4, uint32_t, 32)
DEFINE(8, uint2, 32)
DEFINE(16, uint4, 32)
