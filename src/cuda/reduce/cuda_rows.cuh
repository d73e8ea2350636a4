/*
 * What kernels over rows share: four elements at a time, elements of a type that is known only at run time, sums of a
 * block in double.
 */
#pragma once

#include "cuda/core/device.cuh"
#include "cuda/reduce/element_args.h"

/* Elements [i, i + 4) of n, 0 behind the end; `vector`: p + i is a multiple of four elements, and so is n. */
__device__ inline void hn_load4(float v[4], const float *p, int64_t i, int64_t n, bool vector)
{
    if (vector && i < n) {
        const float4 f = *reinterpret_cast<const float4 *>(p + i);
        v[0] = f.x;
        v[1] = f.y;
        v[2] = f.z;
        v[3] = f.w;
        return;
    }
    for (int k = 0; k < 4; k++)
        v[k] = i + k < n ? p[i + k] : 0.0f;
}

template <typename T> __device__ inline void hn_load4(float v[4], const T *p, int64_t i, int64_t n, bool vector)
{
    union {
        uint2 bits;
        T half[4];
    } u;
    if (vector && i < n) {
        u.bits = *reinterpret_cast<const uint2 *>(p + i);
        for (int k = 0; k < 4; k++)
            v[k] = hn_load(&u.half[k]);
        return;
    }
    for (int k = 0; k < 4; k++)
        v[k] = i + k < n ? hn_load(p + i + k) : 0.0f;
}

/* Pieces of four elements, `step` apart from `first` on, as hn_load4() does: all of them are on their way at once. */
template <int PIECES, typename T, typename I>
__device__ inline void hn_load_pieces(float (&v)[PIECES][4], const T *p, I first, I step, I n, bool vector)
{
    struct alignas(4 * sizeof(T)) Four {
        T at[4];
    };
    if (!vector) {
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            hn_load4(v[k], p, first + k * step, n, false);
        return;
    }
    Four four[PIECES];
#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (first + k * step < n)
            four[k] = *reinterpret_cast<const Four *>(p + first + k * step);
#pragma unroll
    for (int k = 0; k < PIECES; k++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[k][j] = first + k * step < n ? hn_load(&four[k].at[j]) : 0.0f;
}

__device__ inline void hn_store4(float *p, const float v[4], int64_t i, int64_t n, bool vector)
{
    if (vector && i < n) {
        *reinterpret_cast<float4 *>(p + i) = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
    for (int k = 0; k < 4; k++)
        if (i + k < n)
            p[i + k] = v[k];
}

template <typename T> __device__ inline void hn_store4(T *p, const float v[4], int64_t i, int64_t n, bool vector)
{
    union {
        uint2 bits;
        T half[4];
    } u;
    if (vector && i < n) {
        for (int k = 0; k < 4; k++)
            hn_store(&u.half[k], v[k]);
        *reinterpret_cast<uint2 *>(p + i) = u.bits;
        return;
    }
    for (int k = 0; k < 4; k++)
        if (i + k < n)
            hn_store(p + i + k, v[k]);
}

/* Element i of what lies at `address`. */
__device__ inline float hn_load_any(uint64_t address, int type, int64_t i)
{
    if (type == HN_ELEMENT_F32)
        return hn_at<const float>(address)[i];
    if (type == HN_ELEMENT_F16)
        return hn_load(hn_at<const hn_f16>(address) + i);
    if (type == HN_ELEMENT_BF16)
        return hn_load(hn_at<const hn_bf16>(address) + i);
    return (float)hn_at<const double>(address)[i];
}

__device__ inline void hn_store_any(uint64_t address, int type, int64_t i, float v)
{
    if (type == HN_ELEMENT_F32)
        hn_at<float>(address)[i] = v;
    else if (type == HN_ELEMENT_F16)
        hn_store(hn_at<hn_f16>(address) + i, v);
    else if (type == HN_ELEMENT_BF16)
        hn_store(hn_at<hn_bf16>(address) + i, v);
    else
        hn_at<double>(address)[i] = (double)v;
}

/* The sum over the threads of a block, a multiple of 32 of them; all get it. room: [32] in shared memory, which may be
 * used again at once. */
__device__ inline double hn_block_sum(double x, double *room)
{
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    for (int d = HN_WARP / 2; d > 0; d /= 2)
        x += __shfl_xor_sync(HN_ALL_LANES, x, d);
    __syncthreads();
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    x = lane < (int)blockDim.x / HN_WARP ? room[lane] : 0.0;
    for (int d = HN_WARP / 2; d > 0; d /= 2)
        x += __shfl_xor_sync(HN_ALL_LANES, x, d);
    return x;
}

/* hn_load4() and hn_store4() of a type that is known only at run time; no f64 among four. */
__device__ inline void hn_load4_any(float v[4], uint64_t address, int type, int64_t i, int64_t n, bool vector)
{
    if (type == HN_ELEMENT_F32)
        hn_load4(v, hn_at<const float>(address), i, n, vector);
    else if (type == HN_ELEMENT_F16)
        hn_load4(v, hn_at<const hn_f16>(address), i, n, vector);
    else
        hn_load4(v, hn_at<const hn_bf16>(address), i, n, vector);
}

__device__ inline void hn_store4_any(uint64_t address, int type, const float v[4], int64_t i, int64_t n, bool vector)
{
    if (type == HN_ELEMENT_F32)
        hn_store4(hn_at<float>(address), v, i, n, vector);
    else if (type == HN_ELEMENT_F16)
        hn_store4(hn_at<hn_f16>(address), v, i, n, vector);
    else
        hn_store4(hn_at<hn_bf16>(address), v, i, n, vector);
}

/* Who takes a row: a warp, or a block. */
template <bool BLOCK> struct HnTeam {
    __device__ static int rank()
    {
        return BLOCK ? threadIdx.x : threadIdx.x % HN_WARP;
    }
    __device__ static int size()
    {
        return BLOCK ? blockDim.x : HN_WARP;
    }
    /* for (int64_t row = first(); row < rows; row += step()) */
    __device__ static int64_t first()
    {
        return BLOCK ? blockIdx.x : hn_first() / HN_WARP;
    }
    __device__ static int64_t step()
    {
        return BLOCK ? gridDim.x : hn_stride() / HN_WARP;
    }
    /* All get it; room: [32] in shared memory. */
    template <typename How> __device__ static float reduce(float x, float *room)
    {
        return BLOCK ? hn_block_reduce<How>(x, room) : hn_warp_reduce<How>(x);
    }
};

#define HN_TILE_THREADS 256

/* A block of HN_TILE_THREADS as rows of `width` threads, a power of 2: How::of() down each column; all of it get it.
 * room: [HN_TILE_THREADS] in shared memory, which may be used again at once. */
template <typename How, typename N> __device__ inline N hn_tile_reduce(N x, int width, N *room)
{
    const int t = threadIdx.x;
    room[t] = x;
    for (int half = HN_TILE_THREADS / 2; half >= width; half /= 2) {
        __syncthreads();
        if (t < half)
            room[t] = How::of(room[t], room[t + half]);
    }
    __syncthreads();
    x = room[t % width];
    __syncthreads();
    return x;
}
__device__ inline float hn_tile_sum(float x, int width, float *room)
{
    return hn_tile_reduce<HnSum>(x, width, room);
}

/* The quotient; 32 bits are several times as fast as 64. */
__device__ inline int64_t hn_divide(int64_t a, int64_t b)
{
    return a <= UINT32_MAX && b <= UINT32_MAX ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}
