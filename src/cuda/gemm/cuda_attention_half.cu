/*
 * Attention of f16 and bf16: vectors of up to 32, 64 and 128 elements; blocks of many queries, and of few.
 */
#include "cuda/gemm/attention_half.cuh"

#define WARPS (HN_CUDA_ATTENTION_THREADS / HN_WARP)

#define DEFINE_FORM(name, type, size, m)                                                          \
    static_assert(HalfAttention<type, size, m, WARPS, HN_CUDA_ATTENTION_TILE_KEYS_HALF>::BYTES == \
                      HN_CUDA_ATTENTION_HALF_BYTES(size, m),                                      \
                  "bytes of shared memory");                                                      \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_ATTENTION_THREADS, 2)                    \
        name(const __grid_constant__ HnCudaAttentionArgs a)                                       \
    {                                                                                             \
        HalfAttention<type, size, m, WARPS, HN_CUDA_ATTENTION_TILE_KEYS_HALF>::run(a);            \
    }
#define DEFINE(suffix, type)                               \
    DEFINE_FORM(attention_half_32_1_##suffix, type, 32, 1) \
    DEFINE_FORM(attention_half_32_2_##suffix, type, 32, 2) \
    DEFINE_FORM(attention_half_64_1_##suffix, type, 64, 1) \
    DEFINE_FORM(attention_half_64_2_##suffix, type, 64, 2) \
    DEFINE_FORM(attention_half_128_1_##suffix, type, 128, 1)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
