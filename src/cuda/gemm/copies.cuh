/*
 * Copies into shared memory that go on while others compute, and lanes of products on tensor cores.
 */
#pragma once

#include "cuda/core/device.cuh"

__device__ inline uint32_t hn_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
/* 16 bytes, of which the first `bytes` are read; the others become 0. */
__device__ inline void hn_copy_16(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(hn_shared(to)), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ inline void hn_copy_4(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(hn_shared(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void hn_copies_close()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Until at most N of the groups that were closed last are on their way. */
template <int N> __device__ inline void hn_copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Where lane's results of m16n8 products lie: c[r] at row + r / 2 * 8, column + r % 2. */
__device__ inline int hn_mma_row()
{
    return threadIdx.x % HN_WARP / 4;
}
__device__ inline int hn_mma_column()
{
    return threadIdx.x % 4 * 2;
}
/* take(row, column, sum): each result of a warp's products, 16 DOWN rows by 8 ACROSS columns. */
template <int DOWN, int ACROSS, typename Take>
__device__ __forceinline__ void hn_mma_results(const float (&sum)[DOWN][ACROSS][4], Take take)
{
#pragma unroll
    for (int d = 0; d < DOWN; d++)
#pragma unroll
        for (int c = 0; c < ACROSS; c++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                take(d * 16 + r / 2 * 8 + hn_mma_row(), c * 8 + hn_mma_column() + r % 2, sum[d][c][r]);
}
