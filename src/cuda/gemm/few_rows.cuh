/*
 * Few rows times a matrix, which is read once: how partial sums meet. Within a block in shared memory; those of parts
 * of k in scratch memory, where the block that comes last adds them, in the order of the parts.
 */
#pragma once

#include "cuda/gemm/cuda_product.cuh"

#define HN_FEW_THREADS HN_CUDA_FEW_THREADS
#define HN_FEW_WARPS (HN_FEW_THREADS / HN_WARP)

/* Whether this is the last of the blocks that make parts of tile `tile`; it sees what they wrote. For all threads. */
__device__ inline bool few_rows_last(const HnCudaProductArgs &a, int64_t tile)
{
    __shared__ bool last;
    unsigned *const count = hn_at<unsigned>(a.counts) + tile;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(count, 1u) == (unsigned)a.splits - 1;
        if (last)
            atomicExch(count, 0u); /* for the next run */
    }
    __syncthreads();
    if (!last)
        return false;
    __threadfence();
    return true;
}

/* The results of a job: sum(r, c) is the block's sum of row r and column c of the tile; whole(row, column, sum): what
 * becomes of a whole sum. tile: the job's, without its split. */
template <typename T, typename Sum, typename Whole>
__device__ void few_rows_finish(const HnCudaProductArgs &a, const HnProductJob &job, int64_t tile, int rows, int width,
                                Sum sum, Whole whole)
{
    const int columns = (int)min(a.n - job.column, (int64_t)width), count = rows * columns;
    for (int i = threadIdx.x; i < count; i += HN_FEW_THREADS) {
        const int64_t row = job.row + i / columns, column = job.column + i % columns;
        const float v = sum(i / columns, i % columns);
        product_result<T>(a, job.split, job.stack, row, column, a.splits > 1 ? v : whole(row, column, v));
    }
    if (a.splits > 1 && few_rows_last(a, tile))
        for (int i = threadIdx.x; i < count; i += HN_FEW_THREADS) {
            const int64_t row = job.row + i / columns, column = job.column + i % columns;
            const float *parts = hn_at<const float>(a.parts) + (job.stack * a.m + row) * a.n + column;
            float all = 0;
            for (int64_t p = 0; p < a.splits; p++)
                all += parts[p * a.stacks * a.m * a.n];
            product_finish<T>(a, job.stack, row, column, whole(row, column, all));
        }
}
template <typename T, typename Sum>
__device__ void few_rows_finish(const HnCudaProductArgs &a, const HnProductJob &job, int64_t tile, int rows, int width,
                                Sum sum)
{
    few_rows_finish<T>(a, job, tile, rows, width, sum, [](int64_t, int64_t, float v) { return v; });
}

/* Sums of lanes side by side, `across` of them, of lines of lanes in each warp: those of the whole block are in room
 * [HN_FEW_WARPS][ROWS][across * EACH] of shared memory behind it. */
template <int ROWS, int EACH, int ACROSS> __device__ void few_rows_gather(float *room, float (*sum)[EACH], int rows)
{
    constexpr int WIDTH = ACROSS * EACH, WARPS_ACROSS = ACROSS > HN_WARP ? ACROSS / HN_WARP : 1;
    const int warp = threadIdx.x / HN_WARP / WARPS_ACROSS, at = threadIdx.x % ACROSS * EACH;
    __syncthreads(); /* nobody reads what was there before */
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (r >= rows)
            break;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            float v = sum[r][i];
#pragma unroll
            for (int d = ACROSS; d < HN_WARP; d *= 2)
                v += __shfl_xor_sync(HN_ALL_LANES, v, d);
            if (threadIdx.x % HN_WARP < ACROSS)
                room[(warp * ROWS + r) * WIDTH + at + i] = v;
        }
    }
    __syncthreads();
}
template <int ROWS, int EACH, int ACROSS> __device__ float few_rows_sum(const float *room, int r, int c)
{
    constexpr int WIDTH = ACROSS * EACH, WARPS = ACROSS > HN_WARP ? HN_FEW_THREADS / ACROSS : HN_FEW_WARPS;
    float all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        all += room[(w * ROWS + r) * WIDTH + c];
    return all;
}

/* Sums of a warp's lanes for its COLUMNS columns: those of the whole block are in room [ROWS][HN_FEW_WARPS * COLUMNS]
 * of shared memory behind it. */
template <int ROWS, int COLUMNS> __device__ void few_rows_lanes(float *room, const float (*sum)[COLUMNS], int rows)
{
    constexpr int WIDTH = HN_FEW_WARPS * COLUMNS;
    __syncthreads(); /* nobody reads what was there before */
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (r >= rows)
            break;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const float all = hn_warp_reduce<HnSum>(sum[r][c]);
            if (threadIdx.x % HN_WARP == 0)
                room[r * WIDTH + threadIdx.x / HN_WARP * COLUMNS + c] = all;
        }
    }
    __syncthreads();
}
