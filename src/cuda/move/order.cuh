/*
 * Floats as numbers in their order: equal ones (-0 and 0, all NaN) are one number; a NaN is larger than everything. An
 * element and its index as one number: of all in a row no two are equal.
 */
#pragma once

#include "cuda/core/device.cuh"

__device__ inline uint32_t hn_order(float v)
{
    if (v != v)
        return 0xffffffffu;
    const uint32_t bits = __float_as_uint(v == 0 ? 0.0f : v);
    return bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
}

__device__ inline uint64_t hn_ranked(uint32_t order, uint32_t index)
{
    return (uint64_t)order << 32 | index;
}
