/*
 * Sums of a warp on tensor cores: 16 DOWN rows by 8 ACROSS columns.
 */
#pragma once

#include "cuda/gemm/halves.cuh"
#include "cuda/gemm/tf32.cuh"

template <typename T, int DOWN, int ACROSS> struct HnConvSums {
    float sum[DOWN][ACROSS][4];

    __device__ void start()
    {
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS * 4; i++)
            (&sum[0][0][0])[i] = 0;
    }
    __device__ void add(const uint4 (&w)[DOWN], const uint32_t (&x)[ACROSS][2])
    {
#pragma unroll
        for (int d = 0; d < DOWN; d++) {
            const uint32_t a[4] = { w[d].x, w[d].y, w[d].z, w[d].w };
#pragma unroll
            for (int c = 0; c < ACROSS; c++)
                hn_mma(T(), sum[d][c], a, x[c]);
        }
    }
    __device__ void renew()
    {
    }
};

template <int DOWN, int ACROSS> struct HnConvSums<float, DOWN, ACROSS> {
    float sum[DOWN][ACROSS][4], main[DOWN][ACROSS][4], small[DOWN][ACROSS][4];

    __device__ void start()
    {
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS * 4; i++)
            (&sum[0][0][0])[i] = (&main[0][0][0])[i] = (&small[0][0][0])[i] = 0;
    }
    __device__ void add(const uint4 (&w)[DOWN], const uint32_t (&x)[ACROSS][2])
    {
        HnSplit b[ACROSS][2];
#pragma unroll
        for (int c = 0; c < ACROSS; c++)
            for (int r = 0; r < 2; r++)
                b[c][r] = __uint_as_float(x[c][r]);
#pragma unroll
        for (int d = 0; d < DOWN; d++) {
            HnSplit a[4];
            a[0] = __uint_as_float(w[d].x);
            a[1] = __uint_as_float(w[d].y);
            a[2] = __uint_as_float(w[d].z);
            a[3] = __uint_as_float(w[d].w);
#pragma unroll
            for (int c = 0; c < ACROSS; c++)
                hn_multiply_split(main[d][c], small[d][c], a, b[c]);
        }
    }
    __device__ void renew()
    {
        hn_end_sums(sum, main, small);
    }
};
