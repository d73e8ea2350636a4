#include "cuda/conv/cuda_conv_last.cuh"

#define KERNEL(form, blocks, suffix, type, ...)                                                  \
    extern "C" __global__ void __launch_bounds__(HnLastForm<type, __VA_ARGS__>::THREADS, blocks) \
        conv_last_##form##_##suffix(const __grid_constant__ HnCudaConvLastArgs a)                \
    {                                                                                            \
        hn_conv_last<HnLastWarpOf<type, __VA_ARGS__>, type, __VA_ARGS__>(a);                     \
    }
#define DEFINE(suffix, type)                               \
    KERNEL(128x128, 2, suffix, type, HN_CUDA_LAST_128x128) \
    KERNEL(128x64, 3, suffix, type, HN_CUDA_LAST_128x64)   \
    KERNEL(128x32, 3, suffix, type, HN_CUDA_LAST_128x32)   \
    KERNEL(64x64, 3, suffix, type, HN_CUDA_LAST_64x64)     \
    KERNEL(64x32, 4, suffix, type, HN_CUDA_LAST_64x32)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
