#include "cuda/conv/cuda_conv_last.cuh"

#define KERNEL(form, blocks, ...)                                                                 \
    extern "C" __global__ void __launch_bounds__(HnLastForm<float, __VA_ARGS__>::THREADS, blocks) \
        conv_last_##form##_f32(const __grid_constant__ HnCudaConvLastArgs a)                      \
    {                                                                                             \
        hn_conv_last<HnLastWarpOf<float, __VA_ARGS__>, float, __VA_ARGS__>(a);                    \
    }
KERNEL(128x64, 1, HN_CUDA_LAST_F32_128x64)
KERNEL(64x64, 2, HN_CUDA_LAST_F32_64x64)
KERNEL(64x32, 3, HN_CUDA_LAST_F32_64x32)
