/*
 * Channels of a pixel, channels last: 16 bytes of them at once.
 */
#pragma once

#include <string.h>

#include "cuda/core/device.cuh"

template <typename T, int UNIT> __device__ __forceinline__ void hn_load_line(float *to, const T *from)
{
    static_assert(UNIT * sizeof(T) == 16, "a line");
    const uint4 bits = *reinterpret_cast<const uint4 *>(from);
    T v[UNIT];
    memcpy(v, &bits, sizeof v);
#pragma unroll
    for (int e = 0; e < UNIT; e++)
        to[e] = hn_load(&v[e]);
}

/* What is behind the first `count` becomes 0. */
template <typename T, int UNIT> __device__ __forceinline__ void hn_store_line(T *to, const float *from, int count)
{
    T v[UNIT];
    uint4 bits;
#pragma unroll
    for (int e = 0; e < UNIT; e++)
        hn_store(&v[e], e < count ? from[e] : 0.0f);
    memcpy(&bits, v, sizeof v);
    *reinterpret_cast<uint4 *>(to) = bits;
}
