/*
 * Attention of f16 and bf16 on devices of capability 9.0: vectors of up to 64 and 128 elements.
 */
#include "cuda/gemm/attention_warpgroup.cuh"

#define DEFINE_SIZE(suffix, type, size)                                                                      \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_ATTENTION_GROUPS(size) * 128, (size) == 64 ? 2 : 1) \
        attention_warpgroup_##size##_##suffix(const __grid_constant__ HnCudaAttentionArgs a)                 \
    {                                                                                                        \
        WarpgroupAttention<type, size, HN_CUDA_ATTENTION_GROUPS(size), HN_CUDA_ATTENTION_GROUP_KEYS,         \
                           HN_CUDA_ATTENTION_STAGES>::run(a);                                                \
    }
#define DEFINE(suffix, type)      \
    DEFINE_SIZE(suffix, type, 64) \
    DEFINE_SIZE(suffix, type, 128)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
