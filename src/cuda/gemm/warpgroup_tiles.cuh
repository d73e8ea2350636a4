/*
 * What products of warpgroups share: jobs of a block, the ring of stages, results.
 */
#pragma once

#include "cuda/gemm/cuda_product.cuh"
#include "cuda/gemm/warpgroup.cuh"

/* HnProductJob in 32 bits: the host launches nothing larger. */
struct HnTileJob {
    int split, stack, row, column, k, k_end;

    __device__ HnTileJob(const HnCudaProductArgs &a, int job, int tile_rows, int tile_columns)
    {
        const int rows = ((int)a.m + tile_rows - 1) / tile_rows, columns = ((int)a.n + tile_columns - 1) / tile_columns;
        const int tile = job % (rows * columns), group = tile / (8 * columns), within = tile - group * 8 * columns;
        const int height = min(rows - group * 8, 8);
        row = (group * 8 + within % height) * tile_rows;
        column = within / height * tile_columns;
        stack = job / (rows * columns) % (int)a.stacks;
        split = job / (rows * columns) / (int)a.stacks;
        k = split * (int)a.chunk;
        k_end = min(k + (int)a.chunk, (int)a.k);
    }
    __device__ static int count(const HnCudaProductArgs &a, int tile_rows, int tile_columns)
    {
        return (int)HnProductJob::count(a, tile_rows, tile_columns);
    }
};

/* Stages that are filled and emptied in turn. */
template <int STAGES> struct HnRing {
    int at = 0, turn = 0;
    __device__ void next()
    {
        if (++at == STAGES) {
            at = 0;
            turn ^= 1;
        }
    }
};

/* Tiles of an operand: SIZE bytes an element, ROWS rows of A (columns of B), a line along k or across it. */
template <int SIZE, int ROWS, bool ALONG_K> struct HnLines {
    static constexpr int LENGTH = HN_LINE / SIZE, BYTES = ROWS * HN_LINE;

    /* The tile at `row` and k. In one thread. */
    __device__ static void copy(uint32_t to, const HnCuTensorMap *map, uint32_t gate, int row, int k, int stack)
    {
        if (ALONG_K)
            hn_copy_tile(to, map, gate, k, row, stack);
        else
            for (int i = 0; i < ROWS / LENGTH; i++)
                hn_copy_tile(to + i * LENGTH * HN_LINE, map, gate, row + i * LENGTH, k, stack);
    }
};
