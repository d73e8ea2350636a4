/*
 * Attention of few tokens in f32.
 */
#include "cuda/gemm/attention_f32.cuh"
#include "cuda/gemm/attention_few.cuh"

template <int SIZE_, int KEYS_> struct Plain {
    using Element = float;
    using Tile = Tiles<SIZE_, KEYS_>;
    static constexpr int SIZE = SIZE_, KEYS = KEYS_, ROOM = ROWS * KEYS;
    float y[SIZE / 8][4], most[2], sum[2], fade[2];
    const float *queries;

    __device__ void begin(const float *qs)
    {
        queries = qs;
    }
    __device__ void scores(float (*s)[4], const float *k) const
    {
        Tile::scores(s, queries, k);
    }
    __device__ void weigh(const HnCudaAttentionArgs &a, float (*s)[4], int64_t b, int64_t h, int64_t first, int64_t t,
                          int64_t end)
    {
        finish_scores<Tile>(a, s, b, h, first, t, end);
        exponentials<Tile>(s, most, sum, fade);
    }
    __device__ void mix(float (*s)[4], const float *v, float *room)
    {
        Tile::mix(y, s, fade, v, room);
    }
    __device__ void end()
    {
    }
    __device__ static float larger(float a, float b)
    {
        return HnMost::of(a, b);
    }
    __device__ static float power(float x)
    {
        return Tile::exponential(x);
    }
    __device__ static float most_of_sum(float most, float)
    {
        return most;
    }
};

#define DEFINE(size, keys)                                                                                        \
    static_assert(Few<Plain<size, keys>>::BYTES == HN_CUDA_ATTENTION_FEW_BYTES_F32(size, keys), "shared memory"); \
    extern "C" __global__ void __launch_bounds__(FEW_THREADS, 1)                                                  \
        attention_few_##size##_##keys##_f32(const __grid_constant__ HnCudaAttentionArgs a)                        \
    {                                                                                                             \
        Few<Plain<size, keys>>::run(a);                                                                           \
    }
DEFINE(32, 16)
DEFINE(32, 32)
DEFINE(64, 16)
DEFINE(64, 32)
DEFINE(128, 16)
