/*
 * 16 bytes of elements at a time, in and out of f32.
 */
#pragma once

#include "cuda/core/device.cuh"

template <typename T> struct HnVector {
    static constexpr int N = 16 / (int)sizeof(T);
};

/* From an address that is a multiple of 16. */
template <typename T> __device__ inline void hn_load_vector(float *to, const T *from)
{
    union {
        uint4 all;
        T each[HnVector<T>::N];
    } v;
    v.all = *reinterpret_cast<const uint4 *>(from);
#pragma unroll
    for (int i = 0; i < HnVector<T>::N; i++)
        to[i] = hn_load(&v.each[i]);
}
