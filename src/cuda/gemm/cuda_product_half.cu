/*
 * Products of f16 and bf16 on tensor cores, summed in f32.
 */
#include "cuda/gemm/cuda_product.cuh"
#include "cuda/gemm/halves.cuh"

template <typename T, int WARP_ROWS> struct Half {
    static constexpr int ROWS = WARP_ROWS, COLUMNS = 32, DOWN = ROWS / 16, ACROSS = COLUMNS / 8;
    float sum[DOWN][ACROSS][4];

    __device__ Half()
    {
        for (int i = 0; i < DOWN * ACROSS * 4; i++)
            (&sum[0][0][0])[i] = 0;
    }
    /* Which matrix, and line of it, a lane names: two steps along one axis in the lower bit, along the other above. */
    template <typename A, typename B> __device__ void step(const T *as, const T *bs, int row, int column, int)
    {
        const int lane = threadIdx.x % HN_WARP, line = lane % 8, low = lane / 8 % 2 * 8, high = lane / 16 * 8;
#pragma unroll
        for (int k = 0; k < A::DEPTH; k += 16) {
            uint32_t x[DOWN][4], w[ACROSS / 2][4];
#pragma unroll
            for (int d = 0; d < DOWN; d++) {
                const int first = row + d * 16;
                hn_fragments<A::TURNED>(
                    x[d], as + (A::TURNED ? A::at(first + low, k + high + line) : A::at(first + low + line, k + high)));
            }
#pragma unroll
            for (int c = 0; c < ACROSS / 2; c++) {
                const int first = column + c * 16;
                hn_fragments<B::TURNED>(
                    w[c], bs + (B::TURNED ? B::at(first + high, k + low + line) : B::at(first + high + line, k + low)));
            }
#pragma unroll
            for (int d = 0; d < DOWN; d++)
#pragma unroll
                for (int c = 0; c < ACROSS; c++)
                    hn_mma(T(), sum[d][c], x[d], w[c / 2] + c % 2 * 2);
        }
    }
    __device__ void end()
    {
    }
    template <typename Take> __device__ void results(Take take)
    {
        hn_mma_results(sum, take);
    }
    static constexpr bool CHECKED = false;
};

#define DEFINE_FORM(suffix, type, a, b, a_along, b_along)                                                             \
    extern "C" __global__ void __launch_bounds__(128)                                                                 \
        product_small_##a##b##_##suffix(const __grid_constant__ HnCudaProductArgs p)                                  \
    {                                                                                                                 \
        product_tiles<type, Half<type, 32>, HnDense<type>, a_along, b_along, HN_CUDA_TILE_SMALL, HN_CUDA_TILE_SMALL>( \
            p);                                                                                                       \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                                                 \
        product_large_##a##b##_##suffix(const __grid_constant__ HnCudaProductArgs p)                                  \
    {                                                                                                                 \
        product_tiles<type, Half<type, 64>, HnDense<type>, a_along, b_along, HN_CUDA_TILE_LARGE, HN_CUDA_TILE_LARGE>( \
            p);                                                                                                       \
    }
#define DEFINE(suffix, type)                     \
    DEFINE_FORM(suffix, type, k, k, true, true)  \
    DEFINE_FORM(suffix, type, k, n, true, false) \
    DEFINE_FORM(suffix, type, m, k, false, true) \
    DEFINE_FORM(suffix, type, m, n, false, false)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
