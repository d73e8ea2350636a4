/*
 * Convolutions of f16 and bf16 channels last by warpgroups, which read stages of lines where copies put them.
 */
#include "cuda/conv/cuda_conv_last.cuh"
#include "cuda/gemm/warpgroup.cuh"

template <typename T, int ACROSS> struct HnLastGroup {
    static constexpr int PATTERN = HN_CUDA_LAST_PATTERN, N = ACROSS * 8;
    struct {
        float sum[1][ACROSS][4];
    } sums;

    __device__ void start()
    {
    }
    __device__ void multiply(const uint8_t *xs, const uint8_t *ws, int down, int, int32_t stage)
    {
        const uint32_t x = hn_shared(xs) + down / 64 * (64 * HN_LINE), w = hn_shared(ws);
        hn_products_begin();
#pragma unroll
        for (int i = 0; i < HN_CUDA_LAST_UNITS / 2; i++)
            HnWarpgroup<T, N>::template add<0, 0>(&sums.sum[0][0][0], hn_operand(x + i * 32, 64 * HN_LINE),
                                                  hn_operand(w + i * 32, 64 * HN_LINE), stage | i);
        hn_products_close();
    }
    __device__ void copied()
    {
        hn_written();
    }
    __device__ void done()
    {
        hn_products_wait<0>();
    }
    __device__ void end()
    {
        hn_sums_ready<N / 2>(&sums.sum[0][0][0]);
    }
};

template <typename T, int WARPS_DOWN, int WARPS_ACROSS, int DOWN, int ACROSS, int N_STAGES>
using HnLastGroupOf = HnLastGroup<T, ACROSS>;

#define KERNEL(form, blocks, suffix, type, ...)                                                  \
    extern "C" __global__ void __launch_bounds__(HnLastForm<type, __VA_ARGS__>::THREADS, blocks) \
        conv_last_group_##form##_##suffix(const __grid_constant__ HnCudaConvLastArgs a)          \
    {                                                                                            \
        hn_conv_last<HnLastGroupOf<type, __VA_ARGS__>, type, __VA_ARGS__>(a);                    \
    }
#define DEFINE(suffix, type)                                     \
    KERNEL(128x256, 1, suffix, type, HN_CUDA_LAST_GROUP_128x256) \
    KERNEL(128x128, 2, suffix, type, HN_CUDA_LAST_GROUP_128x128) \
    KERNEL(128x64, 2, suffix, type, HN_CUDA_LAST_GROUP_128x64)   \
    KERNEL(64x128, 2, suffix, type, HN_CUDA_LAST_GROUP_64x128)   \
    KERNEL(64x64, 3, suffix, type, HN_CUDA_LAST_GROUP_64x64)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
