/*
 * Products of f32 on tensor cores that multiply numbers of 11 bits (TF32): x = hi + lo / 2^13, both of 11 bits, and
 *     x * y = hi * hi + (hi * lo + lo * hi) / 2^13,
 * without the smallest term, 2^-24 of the product. lo is kept larger so that what is left of tiny numbers is not lost.
 * Tensor cores add less exactly than f32 does. So the two small products have sums of their own, and both sums end
 * every 64 terms and go into a third one, which is plain f32. What became infinite or NaN, hi of the largest numbers
 * among it, is computed again by plain operations.
 */
#pragma once

#include "cuda/gemm/copies.cuh"

#define HN_TF32_LO 8192.0f
#define HN_TF32_TERMS 64

__device__ inline uint32_t hn_tf32(float x)
{
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}

struct HnSplit {
    uint32_t hi, lo;
    __device__ void operator=(float x)
    {
        hi = hn_tf32(x);
        lo = hn_tf32((x - __uint_as_float(hi)) * HN_TF32_LO);
    }
};

__device__ inline void hn_multiply(float *c, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                   uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* The products of x and w, added to `main` and `small`. */
__device__ inline void hn_multiply_split(float *main, float *small, const HnSplit *x, const HnSplit *w)
{
    hn_multiply(small, x[0].lo, x[1].lo, x[2].lo, x[3].lo, w[0].hi, w[1].hi);
    hn_multiply(small, x[0].hi, x[1].hi, x[2].hi, x[3].hi, w[0].lo, w[1].lo);
    hn_multiply(main, x[0].hi, x[1].hi, x[2].hi, x[3].hi, w[0].hi, w[1].hi);
}
