/*
 * Products of f32 on tensor cores, of the two numbers that cuda_mma.cuh makes of each. Tensor cores add less exactly
 * than f32 does. So the two small products have sums of their own, and both sums end every HN_TF32_TERMS terms and go
 * into a third one, which is plain f32. What became infinite or NaN, hi of the largest numbers among it, is computed
 * again by plain operations.
 */
#pragma once

#include "cuda/gemm/copies.cuh"
#include "cuda/gemm/cuda_mma.cuh"

struct HnSplit {
    uint32_t hi, lo;
    __device__ void operator=(float x)
    {
        hn_tf32_split(x, hi, lo);
    }
};

/* The products of x and w, added to `main` and `small`. */
__device__ inline void hn_multiply_split(float *main, float *small, const HnSplit *x, const HnSplit *w)
{
    const uint32_t a[4] = { x[0].hi, x[1].hi, x[2].hi, x[3].hi }, b[2] = { w[0].hi, w[1].hi };
    const uint32_t a_lo[4] = { x[0].lo, x[1].lo, x[2].lo, x[3].lo }, b_lo[2] = { w[0].lo, w[1].lo };
    hn_mma(0.0f, small, a_lo, b);
    hn_mma(0.0f, small, a, b_lo);
    hn_mma(0.0f, main, a, b);
}

/* The same for N products of x, each of the three for all of them before the next one: no one waits for the one in
 * front of it. */
template <int N>
__device__ __forceinline__ void hn_multiply_split_each(float (*main)[4], float (*small)[4], const HnSplit *x,
                                                       const HnSplit (*w)[2])
{
    const uint32_t a[4] = { x[0].hi, x[1].hi, x[2].hi, x[3].hi }, a_lo[4] = { x[0].lo, x[1].lo, x[2].lo, x[3].lo };
#pragma unroll
    for (int k = 0; k < 3; k++)
#pragma unroll
        for (int n = 0; n < N; n++) {
            const uint32_t b[2] = { w[n][0].hi, w[n][1].hi }, b_lo[2] = { w[n][0].lo, w[n][1].lo };
            hn_mma(0.0f, k == 2 ? main[n] : small[n], k == 0 ? a_lo : a, k == 1 ? b_lo : b);
        }
}

/* Both sums end, and go into the third one. */
template <int DOWN, int ACROSS>
__device__ __forceinline__ void hn_end_sums(float (&sum)[DOWN][ACROSS][4], float (&main)[DOWN][ACROSS][4],
                                            float (&small)[DOWN][ACROSS][4])
{
#pragma unroll
    for (int d = 0; d < DOWN; d++)
#pragma unroll
        for (int c = 0; c < ACROSS; c++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                sum[d][c][r] += fmaf(small[d][c][r], 1 / HN_TF32_LO, main[d][c][r]);
                main[d][c][r] = small[d][c][r] = 0;
            }
}
