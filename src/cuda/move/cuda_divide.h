/*
 * Division of numbers below 2^31 by one that the host knows: a product and a shift.
 */
#pragma once

#include <stdint.h>

#define HN_DIVIDE_LIMIT ((int64_t)1 << 31) /* of both; not reached */

typedef struct {
    uint32_t by, factor, shift;
} HnDivisor;

/* by > 0 */
static inline HnDivisor hn_divisor(int64_t by)
{
    uint32_t shift = 0;
    while (((uint64_t)1 << shift) < (uint64_t)by)
        shift++;
    const uint64_t rest = ((uint64_t)1 << shift) - (uint64_t)by;
    const HnDivisor d = { (uint32_t)by, (uint32_t)(((uint64_t)1 << 32) * rest / (uint64_t)by + 1), shift };
    return d;
}

#ifdef __CUDACC__
__device__ inline uint32_t hn_divide(uint32_t n, const HnDivisor &d)
{
    return (__umulhi(n, d.factor) + n) >> d.shift;
}
/* The quotient; n becomes the remainder. */
__device__ inline uint32_t hn_divide_off(uint32_t &n, const HnDivisor &d)
{
    const uint32_t q = hn_divide(n, d);
    n -= q * d.by;
    return q;
}
#endif
