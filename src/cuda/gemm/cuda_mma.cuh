/*
 * Tensor cores: a warp's product of 16 x 8 results, c += a b, of 8 terms in TF32 or of 16 in f16 and bf16, whose words
 * hold two of them. Lane l has of a words t and t + 4 of rows g and g + 8 (a[0] g, t; a[1] g + 8, t; a[2] g, t + 4;
 * a[3] g + 8, t + 4), of b those words of column g, of c columns 2 t and 2 t + 1 of both rows, where g = l / 4, t = l
 * % 4.
 */
#pragma once

#include "cuda/core/device.cuh"

__device__ inline void hn_mma(float, float *c, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void hn_mma(hn_f16, float *c, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void hn_mma(hn_bf16, float *c, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/*
 * f32 as two numbers of 11 bits, x = hi + lo / HN_TF32_LO. The product of two is hi hi + (hi lo + lo hi) / HN_TF32_LO
 * without the smallest term, 2^-24 of it. lo is kept larger so that what is left of tiny numbers is not lost. hi of the
 * largest numbers is infinite, lo of infinities NaN: such results are to be computed by plain operations.
 */
#define HN_TF32_LO 8192.0f
#define HN_TF32_TERMS 64 /* after so many, sums on tensor cores, which add less exactly, go into one of plain f32 */

__device__ inline uint32_t hn_tf32(float x)
{
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}
__device__ inline void hn_tf32_split(float x, uint32_t &hi, uint32_t &lo)
{
    hi = hn_tf32(x);
    lo = hn_tf32((x - __uint_as_float(hi)) * HN_TF32_LO);
}
