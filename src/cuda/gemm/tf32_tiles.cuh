/*
 * Tiles of f32 on tensor cores. What became infinite or NaN is computed again by plain operations (HnTf32::CHECKED).
 */
#pragma once

#include "cuda/gemm/cuda_product.cuh"
#include "cuda/gemm/tf32.cuh"

struct HnTf32 {
    static constexpr int ROWS = 32, COLUMNS = 32, DOWN = ROWS / 16, ACROSS = COLUMNS / 8;
    float sum[DOWN][ACROSS][4], main[DOWN][ACROSS][4], small[DOWN][ACROSS][4];

    __device__ HnTf32()
    {
        for (int i = 0; i < DOWN * ACROSS * 4; i++)
            (&sum[0][0][0])[i] = (&main[0][0][0])[i] = (&small[0][0][0])[i] = 0;
    }
    /* A tile's depth is 16: two products of 8. */
    template <typename A, typename B> __device__ void step(const float *as, const float *bs, int row, int column, int i)
    {
        const int g = hn_mma_row(), t = threadIdx.x % 4;
#pragma unroll
        for (int k = 0; k < A::DEPTH; k += 8) {
            HnSplit x[DOWN][4], w[ACROSS][2];
#pragma unroll
            for (int d = 0; d < DOWN; d++)
                for (int r = 0; r < 4; r++)
                    x[d][r] = as[A::at(row + d * 16 + r % 2 * 8 + g, k + r / 2 * 4 + t)];
#pragma unroll
            for (int c = 0; c < ACROSS; c++)
                for (int r = 0; r < 2; r++)
                    w[c][r] = bs[B::at(column + c * 8 + g, k + r * 4 + t)];
#pragma unroll
            for (int d = 0; d < DOWN; d++)
#pragma unroll
                for (int c = 0; c < ACROSS; c++)
                    hn_multiply_split(main[d][c], small[d][c], x[d], w[c]);
        }
        if ((i + 1) % (HN_TF32_TERMS / A::DEPTH) == 0)
            end();
    }
    __device__ void end()
    {
        hn_end_sums(sum, main, small);
    }
    template <typename Take> __device__ void results(Take take)
    {
        hn_mma_results(sum, take);
    }
    static constexpr bool CHECKED = true;
};
