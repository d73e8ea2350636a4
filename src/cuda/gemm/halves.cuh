/*
 * f16 and bf16 out of shared memory, for tensor cores (cuda_mma.cuh).
 */
#pragma once

#include "cuda/gemm/copies.cuh"
#include "cuda/gemm/cuda_mma.cuh"

/* Four matrices of 8 x 8 halves, a line of one from each lane's address: lane's parts of them, as they lie or turned.
 */
template <bool TURNED> __device__ inline void hn_fragments(uint32_t *r, const void *line)
{
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(hn_shared(line))
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(hn_shared(line))
                     : "memory");
}
