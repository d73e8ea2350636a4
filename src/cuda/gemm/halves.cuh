/*
 * f16 and bf16 on tensor cores.
 */
#pragma once

#include "cuda/gemm/copies.cuh"

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

#define HN_MULTIPLY(type, name)                                                                                \
    __device__ inline void hn_multiply(type, float *c, const uint32_t *a, const uint32_t *b)                   \
    {                                                                                                          \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, " \
            "{%8, %9}, {%0, %1, %2, %3};"                                                                      \
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                   \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                               \
    }
HN_MULTIPLY(hn_f16, "f16")
HN_MULTIPLY(hn_bf16, "bf16")
