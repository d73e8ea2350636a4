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

/* --- parts of sums that meet --------------------------------------------------------------------------------------
 */

/* What was written before is seen by whoever sees what is written behind. */
__device__ inline void hn_seen_by_all()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* Whether this warpgroup, number `group` of the block, is the last of those that make parts of 64 rows of a tile; it
 * sees what they wrote. */
__device__ inline bool hn_group_last(const HnCudaProductArgs &a, int count, int group)
{
    __shared__ int32_t last[2];
    hn_seen_by_all();
    asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(HN_WARPGROUP_THREADS) : "memory");
    if (threadIdx.x % HN_WARPGROUP_THREADS == 0) {
        unsigned *const n = hn_at<unsigned>(a.counts) + count;
        last[group - 1] = atomicAdd(n, 1u) == (unsigned)a.splits - 1;
        if (last[group - 1])
            atomicExch(n, 0u); /* for the next run */
    }
    asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(HN_WARPGROUP_THREADS) : "memory");
    const bool is_last = last[group - 1] != 0;
    if (is_last)
        hn_seen_by_all();
    return is_last;
}

/* Parts of sums meet: N sums of each thread of this warpgroup go to scratch memory, as they lie in registers; in the
 * warpgroup that comes last of those of the same results, they become the sums of all parts, added in their order.
 * FALSE: it is not the last. */
template <int GROUPS, int N>
__device__ inline bool hn_group_sum(const HnCudaProductArgs &a, int job, int jobs, int group, float *sum)
{
    constexpr int TOGETHER = N / 4 < 8 ? N / 4 : 8;
    const int tiles = jobs / (int)a.splits, tile = job % tiles * GROUPS + group - 1,
              t = threadIdx.x % HN_WARPGROUP_THREADS;
    const int64_t part = (int64_t)tiles * GROUPS * (N / 4) * HN_WARPGROUP_THREADS;
    float4 *const mine = hn_at<float4>(a.parts) + (int64_t)tile * (N / 4) * HN_WARPGROUP_THREADS + t;
#pragma unroll
    for (int i = 0; i < N / 4; i++)
        __stcg(mine + job / tiles * part + i * HN_WARPGROUP_THREADS,
               make_float4(sum[i * 4], sum[i * 4 + 1], sum[i * 4 + 2], sum[i * 4 + 3]));
    if (!hn_group_last(a, tile, group))
        return false;
#pragma unroll
    for (int i = 0; i < N / 4; i += TOGETHER) {
#pragma unroll
        for (int k = 0; k < TOGETHER * 4; k++)
            sum[i * 4 + k] = 0;
#pragma unroll 2
        for (int p = 0; p < (int)a.splits; p++)
#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
                const float4 x = __ldcg(mine + p * part + (i + k) * HN_WARPGROUP_THREADS);
                sum[(i + k) * 4] += x.x;
                sum[(i + k) * 4 + 1] += x.y;
                sum[(i + k) * 4 + 2] += x.z;
                sum[(i + k) * 4 + 3] += x.w;
            }
    }
    return true;
}

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
