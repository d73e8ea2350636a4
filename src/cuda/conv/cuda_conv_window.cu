#include "cuda/conv/cuda_conv_window.cuh"

#define KERNEL(form, blocks, suffix, type, ...)                                                        \
    extern "C" __global__ void __launch_bounds__(HnConvWindowForm<type, __VA_ARGS__>::THREADS, blocks) \
        conv_window_##form##_##suffix(const __grid_constant__ HnCudaConvPackedArgs a)                  \
    {                                                                                                  \
        hn_conv_window<type, __VA_ARGS__>(a);                                                          \
    }
KERNEL(64x64, 2, f32, float, HN_CUDA_CONV_WINDOW_64x64)
KERNEL(64x128, 2, f16, hn_f16, HN_CUDA_CONV_WINDOW_64x128)
KERNEL(64x128, 2, bf16, hn_bf16, HN_CUDA_CONV_WINDOW_64x128)
