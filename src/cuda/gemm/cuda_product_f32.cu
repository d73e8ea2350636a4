#include "cuda/gemm/tf32_tiles.cuh"

#define DEFINE(a, b, a_along, b_along)                                                                             \
    extern "C" __global__ void __launch_bounds__(128)                                                              \
        product_small_##a##b##_f32(const __grid_constant__ HnCudaProductArgs p)                                    \
    {                                                                                                              \
        product_tiles<float, HnTf32, HnDense<float>, a_along, b_along, HN_CUDA_TILE_SMALL, HN_CUDA_TILE_SMALL>(p); \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                              \
        product_large_##a##b##_f32(const __grid_constant__ HnCudaProductArgs p)                                    \
    {                                                                                                              \
        product_tiles<float, HnTf32, HnDense<float>, a_along, b_along, HN_CUDA_TILE_LARGE, HN_CUDA_TILE_SMALL>(p); \
    }
DEFINE(k, k, true, true)
DEFINE(k, n, true, false)
DEFINE(m, k, false, true)
DEFINE(m, n, false, false)
