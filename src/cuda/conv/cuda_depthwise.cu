#include "cuda/conv/cuda_depthwise.cuh"

#define KERNEL(suffix, type, taps, stride, rows)                                                               \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_DEPTHWISE_THREADS)                                    \
        depthwise_##taps##_by_##stride##_rows_##rows##_##suffix(const __grid_constant__ HnCudaDepthwiseArgs a) \
    {                                                                                                          \
        depthwise<type, taps, stride, rows>(a);                                                                \
    }
#define FOURS(suffix, type, taps, rows)                                                                \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_DEPTHWISE_THREADS, 6)                         \
        depthwise_##taps##_fours_rows_##rows##_##suffix(const __grid_constant__ HnCudaDepthwiseArgs a) \
    {                                                                                                  \
        depthwise_fours<type, taps, rows>(a);                                                          \
    }
#define DEFINE(suffix, type)      \
    KERNEL(suffix, type, 3, 1, 2) \
    KERNEL(suffix, type, 3, 1, 8) \
    KERNEL(suffix, type, 3, 2, 2) \
    KERNEL(suffix, type, 3, 2, 8) \
    KERNEL(suffix, type, 5, 1, 2) \
    KERNEL(suffix, type, 5, 1, 8) \
    KERNEL(suffix, type, 5, 2, 2) \
    KERNEL(suffix, type, 5, 2, 8) \
    FOURS(suffix, type, 3, 4)     \
    FOURS(suffix, type, 5, 4)
HN_EACH_FLOAT(DEFINE)
