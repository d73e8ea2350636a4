#include "cuda/conv/cuda_conv_packed.cuh"

#define KERNEL(form, blocks, suffix, type, ...)                                                  \
    extern "C" __global__ void __launch_bounds__(HnConvForm<type, __VA_ARGS__>::THREADS, blocks) \
        conv_packed_##form##_##suffix(const __grid_constant__ HnCudaConvPackedArgs a)            \
    {                                                                                            \
        hn_conv_packed<type, __VA_ARGS__>(a);                                                    \
    }
/* Of single pixels: four at once. */
#define POINT(form, blocks, suffix, type, ...)                                                      \
    extern "C" __global__ void __launch_bounds__(HnConvForm<type, __VA_ARGS__, 4>::THREADS, blocks) \
        conv_packed_##form##_fours_##suffix(const __grid_constant__ HnCudaConvPackedArgs a)         \
    {                                                                                               \
        hn_conv_packed<type, __VA_ARGS__, 4>(a);                                                    \
    }
#define DEFINE(suffix, type)                           \
    KERNEL(16x32, 1, suffix, type, HN_CUDA_CONV_16x32) \
    KERNEL(32x32, 1, suffix, type, HN_CUDA_CONV_32x32) \
    KERNEL(64x64, 2, suffix, type, HN_CUDA_CONV_64x64) \
    KERNEL(64x64_deep, 1, suffix, type, HN_CUDA_CONV_64x64_deep)
#define DEFINE_WIDE(suffix, type) KERNEL(64x128, 2, suffix, type, HN_CUDA_CONV_64x128)
HN_EACH_FLOAT(DEFINE)
DEFINE_WIDE(f16, hn_f16)
DEFINE_WIDE(bf16, hn_bf16)
POINT(64x64, 2, f32, float, HN_CUDA_CONV_64x64)
POINT(64x128, 2, f16, hn_f16, HN_CUDA_CONV_64x128)
POINT(64x128, 2, bf16, hn_bf16, HN_CUDA_CONV_64x128)
