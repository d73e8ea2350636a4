/*
 * Attention of f16 and bf16: vectors of up to 32, 64 and 128 elements; blocks of many queries, and of few.
 */
#include "cuda/gemm/attention_half.cuh"

#define WARPS (HN_CUDA_ATTENTION_THREADS / HN_WARP)

/* m: times as many warps. Two such blocks are on a multiprocessor but for the largest. */
#define DEFINE_FORM(name, type, size, m)                                                                     \
    static_assert(HalfAttention<type, size, WARPS *(m), HN_CUDA_ATTENTION_TILE_KEYS_HALF>::BYTES ==          \
                      HN_CUDA_ATTENTION_HALF_BYTES(size, m),                                                 \
                  "bytes of shared memory");                                                                 \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_ATTENTION_THREADS *(m), (size) * (m) > 128 ? 1 : 2) \
        name(const __grid_constant__ HnCudaAttentionArgs a)                                                  \
    {                                                                                                        \
        HalfAttention<type, size, WARPS *(m), HN_CUDA_ATTENTION_TILE_KEYS_HALF>::run(a);                     \
    }
#define DEFINE_SIZE(size, suffix, type)                            \
    DEFINE_FORM(attention_half_##size##_1_##suffix, type, size, 1) \
    DEFINE_FORM(attention_half_##size##_2_##suffix, type, size, 2)
#define DEFINE(suffix, type)      \
    DEFINE_SIZE(32, suffix, type) \
    DEFINE_SIZE(64, suffix, type) \
    DEFINE_SIZE(128, suffix, type)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
