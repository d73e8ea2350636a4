/*
 * Four elements at a time: loads of operands that broadcast, and stores.
 */
#pragma once

#include "cuda/core/device.cuh"
#include "cuda/elementwise/cuda_walk_args.h"

#define HN_QUAD 4

/* Where an operand has element i of the result, in its own elements. */
__device__ __forceinline__ int64_t hn_offset(const HnCudaShape &shape, const HnCudaAxis *axis, const int64_t *stride,
                                             int64_t i)
{
    int64_t at = 0;
    if (shape.narrow) {
        uint32_t rest = (uint32_t)i;
#pragma unroll 1
        for (int k = shape.ndim - 1; k >= 0; k--) {
            const HnCudaAxis d = axis[k];
            const uint32_t q = (uint32_t)(((uint64_t)__umulhi(rest, d.mul) + rest) >> d.shift);
            at += (int64_t)(rest - q * (uint32_t)d.n) * stride[k];
            rest = q;
        }
        return at;
    }
#pragma unroll 1
    for (int k = shape.ndim - 1; k >= 0; k--) {
        const int64_t q = i / axis[k].n;
        at += (i - q * axis[k].n) * stride[k];
        i = q;
    }
    return at;
}

template <typename T> struct alignas(sizeof(T) * HN_QUAD < 16 ? sizeof(T) * HN_QUAD : 16) HnQuad {
    T v[HN_QUAD];
};

template <typename T> __device__ __forceinline__ bool hn_aligned(const T *p)
{
    return (reinterpret_cast<uint64_t>(p) & (alignof(HnQuad<T>) - 1)) == 0;
}

/* Where an operand has elements i, i + 1, ... of the result; i is a multiple of four. */
struct HnPlaces {
    int n;            /* of four there are so many */
    bool number, run; /* one for all; side by side */
    int64_t at[HN_QUAD];
};

__device__ __forceinline__ HnPlaces hn_places(int kind, const HnCudaShape &shape, const HnCudaAxis *axis,
                                              const int64_t *stride, int64_t i)
{
    HnPlaces p;
    p.n = shape.total - i < HN_QUAD ? (int)(shape.total - i) : HN_QUAD;
    const bool strided = kind == HN_CUDA_STRIDED;
    p.number = kind == HN_CUDA_NUMBER;
    p.run = kind == HN_CUDA_DENSE;
    p.at[0] = p.run ? i : 0;
    int64_t step = p.run;
    if (strided) {
        p.at[0] = hn_offset(shape, axis, stride, i);
        step = stride[shape.ndim - 1];
        p.run = shape.quads && step == 1;
        p.number = shape.quads && step == 0;
    }
#pragma unroll
    for (int j = 1; j < HN_QUAD; j++)
        p.at[j] = p.at[0] + j * step;
    if (strided && !shape.quads) {
#pragma unroll
        for (int j = 1; j < HN_QUAD; j++)
            p.at[j] = hn_offset(shape, axis, stride, j < p.n ? i + j : i);
    }
    return p;
}

/* The elements of x there; those beyond the last one are 0. */
template <typename T> __device__ __forceinline__ void hn_load_quad(T (&v)[HN_QUAD], const T *x, const HnPlaces &p)
{
    if (p.number) {
        const T one = p.n > 0 ? x[p.at[0]] : T(0);
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            v[j] = one;
    } else if (p.run && p.n == HN_QUAD && hn_aligned(x + p.at[0])) {
        const HnQuad<T> q = *reinterpret_cast<const HnQuad<T> *>(x + p.at[0]);
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            v[j] = q.v[j];
    } else {
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++) {
            v[j] = T(0);
            if (j < p.n)
                v[j] = x[p.at[j]];
        }
    }
}

template <typename T>
__device__ __forceinline__ void hn_load_quad(T (&v)[HN_QUAD], uint64_t x, const HnCudaWalk &w, const HnCudaSeen &seen,
                                             int64_t i)
{
    hn_load_quad(v, hn_at<const T>(x), hn_places((int)seen.kind, w.shape, w.axis, seen.stride, i));
}

template <typename T>
__device__ __forceinline__ void hn_store_quad(T *z, const T (&v)[HN_QUAD], int64_t total, int64_t i)
{
    if (total - i >= HN_QUAD && hn_aligned(z)) {
        HnQuad<T> q;
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            q.v[j] = v[j];
        *reinterpret_cast<HnQuad<T> *>(z + i) = q;
        return;
    }
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        if (i + j < total)
            z[i + j] = v[j];
}

/* for (int64_t i = hn_first_quad(); i < total; i += hn_quad_stride()) */
__device__ __forceinline__ int64_t hn_first_quad()
{
    return hn_first() * HN_QUAD;
}
__device__ __forceinline__ int64_t hn_quad_stride()
{
    return hn_stride() * HN_QUAD;
}
