/*
 * Attention of few tokens in f16 and bf16.
 */
#include "cuda/gemm/attention_few.cuh"
#include "cuda/gemm/attention_half.cuh"

template <typename T, int SIZE_> struct Half {
    using Element = T;
    using Tile = HalfAttention<T, SIZE_, FEW_WARPS, HN_CUDA_ATTENTION_FEW_KEYS_HALF>;
    static constexpr int SIZE = SIZE_, KEYS = HN_CUDA_ATTENTION_FEW_KEYS_HALF, ROOM = 0;
    float y[SIZE / 8][4], most[2], sum[2]; /* most: to the base of 2; sum: this lane's part */
    uint32_t kept[SIZE / 16][4];

    __device__ void begin(const T *qs)
    {
        const int lane = threadIdx.x % HN_WARP;
#pragma unroll
        for (int c = 0; c < SIZE / 16; c++)
            hn_fragments<false>(kept[c], qs + lane % 16 * Tile::PITCH + c * 16 + lane / 16 * 8);
    }
    __device__ void scores(float (*s)[4], const T *k) const
    {
        Tile::scores(s, kept, k);
    }
    __device__ void weigh(const HnCudaAttentionArgs &a, float (*s)[4], int64_t b, int64_t h, int64_t first, int64_t t,
                          int64_t end)
    {
        float factor = HN_LOG2_E;
        if (Tile::all_seen(a, first, t))
            factor *= a.scale;
        else
            Tile::finish_scores(a, s, b, h, first, t, end);
        Tile::powers(s, factor, most, sum, y);
    }
    __device__ void mix(float (*s)[4], const T *v, float *)
    {
        Tile::mix(y, s, v);
    }
    __device__ void end()
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            sum[r] += __shfl_xor_sync(HN_ALL_LANES, sum[r], 1);
            sum[r] += __shfl_xor_sync(HN_ALL_LANES, sum[r], 2);
        }
    }
    __device__ static float larger(float a, float b)
    {
        return fmaxf(a, b);
    }
    __device__ static float power(float x)
    {
        return attention_exp2(x);
    }
    __device__ static float most_of_sum(float most, float sum) /* scores that are NaN are not the largest */
    {
        return isnan(sum) ? sum : most;
    }
};

#define DEFINE_SIZE(size, suffix, type)                                                                     \
    static_assert(Few<Half<type, size>>::BYTES == HN_CUDA_ATTENTION_FEW_BYTES_HALF(size), "shared memory"); \
    extern "C" __global__ void __launch_bounds__(FEW_THREADS, (size) > 64 ? 1 : 2)                          \
        attention_few_##size##_##suffix(const __grid_constant__ HnCudaAttentionArgs a)                      \
    {                                                                                                       \
        Few<Half<type, size>>::run(a);                                                                      \
    }
#define DEFINE(suffix, type)      \
    DEFINE_SIZE(32, suffix, type) \
    DEFINE_SIZE(64, suffix, type) \
    DEFINE_SIZE(128, suffix, type)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
