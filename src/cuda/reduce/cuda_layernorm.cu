#include "cuda/reduce/cuda_layernorm_args.h"
#include "cuda/reduce/cuda_rows.cuh"

__device__ static void put(const HnCudaLayerNormArgs &a, int64_t row, const float v[4], int64_t i, float mean,
                           float inv)
{
    float w[4] = { 1, 1, 1, 1 }, b[4] = { 0, 0, 0, 0 }, y[4];
    if (a.scale != 0)
        hn_load4_any(w, a.scale, a.weight_type, i, a.cols, a.vector);
    if (a.bias != 0)
        hn_load4_any(b, a.bias, a.weight_type, i, a.cols, a.vector);
    for (int j = 0; j < 4; j++)
        y[j] = fmaf((v[j] - mean) * inv, w[j], b[j]);
    const int64_t bytes = a.weight_type == HN_ELEMENT_F32 ? 4 : 2;
    hn_store4_any(a.y + row * a.cols * bytes, a.weight_type, y, i, a.cols, a.vector);
}

__device__ static void put_moments(const HnCudaLayerNormArgs &a, int64_t row, float mean, float inv)
{
    if (a.mean != 0)
        hn_store_any(a.mean, a.moment_type, row, mean);
    if (a.inv != 0)
        hn_store_any(a.inv, a.moment_type, row, inv);
}

/* Sum of (x - mean)^2 over elements [i, i + 4) of n; `vector`: all of them or none are within. */
template <typename I> __device__ static float squares_of(const float v[4], float mean, I i, I n, bool vector)
{
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++)
        sum += i + (vector ? 0 : j) < n ? (v[j] - mean) * (v[j] - mean) : 0.0f;
    return sum;
}

/* A warp or a block for each row, which its threads hold: PIECES of four elements each. */
template <typename T, bool BLOCK, int PIECES> __device__ static void held(const HnCudaLayerNormArgs &a)
{
    typedef HnTeam<BLOCK> Team;
    __shared__ float room[HN_WARP];
    const int n = (int)a.cols, first = 4 * Team::rank(), step = 4 * Team::size();
    for (int64_t row = Team::first(); row < a.rows; row += Team::step()) {
        const T *x = hn_at<const T>(a.x) + row * a.cols;
        float v[PIECES][4], mean = 0, sum = 0;
        hn_load_pieces(v, x, first, step, n, a.vector != 0);
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            sum += (v[k][0] + v[k][1]) + (v[k][2] + v[k][3]);
        if (a.centre)
            mean = Team::template reduce<HnSum>(sum, room) / (float)a.cols;
        sum = 0;
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            sum += squares_of(v[k], mean, first + k * step, n, a.vector != 0);
        const float inv = 1.0f / sqrtf(Team::template reduce<HnSum>(sum, room) / (float)a.cols + a.epsilon);
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            if (first + k * step < n)
                put(a, row, v[k], first + k * step, mean, inv);
        }
        if (Team::rank() == 0)
            put_moments(a, row, mean, inv);
    }
}

/* A block for each row, which is read three times. */
template <typename T> __device__ static void read(const HnCudaLayerNormArgs &a)
{
    __shared__ float room[HN_WARP];
    const int64_t step = 4 * (int64_t)blockDim.x;
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = hn_at<const T>(a.x) + row * a.cols;
        float v[4], mean = 0, sum = 0;
        for (int64_t i = 4 * threadIdx.x; a.centre && i < a.cols; i += step) {
            hn_load4(v, x, i, a.cols, a.vector);
            sum += (v[0] + v[1]) + (v[2] + v[3]);
        }
        if (a.centre)
            mean = hn_block_reduce<HnSum>(sum, room) / (float)a.cols;
        sum = 0;
        for (int64_t i = 4 * threadIdx.x; i < a.cols; i += step) {
            hn_load4(v, x, i, a.cols, a.vector);
            sum += squares_of(v, mean, i, a.cols, a.vector != 0);
        }
        const float inv = 1.0f / sqrtf(hn_block_reduce<HnSum>(sum, room) / (float)a.cols + a.epsilon);
        for (int64_t i = 4 * threadIdx.x; i < a.cols; i += step) {
            hn_load4(v, x, i, a.cols, a.vector);
            put(a, row, v, i, mean, inv);
        }
        if (threadIdx.x == 0)
            put_moments(a, row, mean, inv);
    }
}

/* Gradients of the elements, and the rows' moments: a block for each row. */
template <typename T> __device__ static void grad_rows(const HnCudaLayerNormGradArgs &a)
{
    __shared__ float room[HN_WARP];
    const T *scale = hn_at<const T>(a.scale);
    const float n = (float)a.cols;
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = hn_at<const T>(a.x) + row * a.cols, *dy = hn_at<const T>(a.dy) + row * a.cols;
        float mean = 0, sum = 0, along = 0;
        for (int64_t i = threadIdx.x; a.centred && i < a.cols; i += blockDim.x)
            sum += hn_load(x + i);
        if (a.centred)
            mean = hn_block_reduce<HnSum>(sum, room) / n;
        sum = 0;
        for (int64_t i = threadIdx.x; i < a.cols; i += blockDim.x) {
            const float d = hn_load(x + i) - mean;
            sum += d * d;
        }
        const float inv = 1.0f / sqrtf(hn_block_reduce<HnSum>(sum, room) / n + a.epsilon);
        sum = 0;
        for (int64_t i = threadIdx.x; i < a.cols; i += blockDim.x) {
            const float g = hn_load(dy + i) * hn_load(scale + i);
            sum += g;
            along += g * ((hn_load(x + i) - mean) * inv);
        }
        sum = a.centred ? hn_block_reduce<HnSum>(sum, room) / n : 0.0f;
        along = hn_block_reduce<HnSum>(along, room) / n;
        for (int64_t i = threadIdx.x; i < a.cols; i += blockDim.x) {
            const float g = hn_load(dy + i) * hn_load(scale + i), hat = (hn_load(x + i) - mean) * inv;
            hn_store(hn_at<T>(a.dx) + row * a.cols + i, inv * (g - sum - hat * along));
        }
        if (threadIdx.x == 0) {
            hn_at<float>(a.moments)[2 * row] = mean;
            hn_at<float>(a.moments)[2 * row + 1] = inv;
        }
    }
}

/* Sums over a part of the rows: a block for 32 columns of it. */
template <typename T> __device__ static void grad_columns(const HnCudaLayerNormGradArgs &a)
{
    __shared__ float room[HN_TILE_THREADS];
    const int64_t tiles = (a.cols + HN_WARP - 1) / HN_WARP;
    for (int64_t unit = blockIdx.x; unit < tiles * a.parts; unit += gridDim.x) {
        const int64_t c = unit % tiles * HN_WARP + threadIdx.x % HN_WARP, part = unit / tiles;
        float scale = 0, bias = 0;
        for (int64_t r = part * a.part + threadIdx.x / HN_WARP; r < min((part + 1) * a.part, a.rows) && c < a.cols;
             r += HN_TILE_THREADS / HN_WARP) {
            const float *moments = hn_at<const float>(a.moments) + 2 * r;
            const float d = hn_load(hn_at<const T>(a.dy) + r * a.cols + c);
            bias += d;
            scale += d * ((hn_load(hn_at<const T>(a.x) + r * a.cols + c) - moments[0]) * moments[1]);
        }
        scale = hn_tile_sum(scale, HN_WARP, room);
        bias = hn_tile_sum(bias, HN_WARP, room);
        if (threadIdx.x < HN_WARP && c < a.cols) {
            hn_at<float>(a.partial)[part * a.cols + c] = scale;
            hn_at<float>(a.partial)[(a.parts + part) * a.cols + c] = bias;
        }
    }
}

template <typename T> __device__ static void grad_join(const HnCudaLayerNormGradArgs &a)
{
    for (int64_t i = hn_first(); i < 2 * a.cols; i += hn_stride()) {
        const int64_t k = i / a.cols, c = i % a.cols;
        const uint64_t to = k == 0 ? a.dscale : a.dbias;
        double sum = 0;
        for (int64_t p = 0; p < a.parts; p++)
            sum += (double)hn_at<const float>(a.partial)[(k * a.parts + p) * a.cols + c];
        if (to != 0)
            hn_store(hn_at<T>(to) + c, (float)sum);
    }
}

#define KERNEL(name, suffix, ...)                                                  \
    extern "C" __global__ void __launch_bounds__(256, 2)                           \
        layernorm_##name##_##suffix(const __grid_constant__ HnCudaLayerNormArgs a) \
    {                                                                              \
        __VA_ARGS__(a);                                                            \
    }
#define DEFINE_GRAD(name, suffix, ...)                                                                             \
    extern "C" __global__ void layernorm_grad_##name##_##suffix(const __grid_constant__ HnCudaLayerNormGradArgs a) \
    {                                                                                                              \
        __VA_ARGS__(a);                                                                                            \
    }
#define DEFINE(suffix, type)                         \
    KERNEL(warp_1, suffix, held<type, false, 1>)     \
    KERNEL(warp_2, suffix, held<type, false, 2>)     \
    KERNEL(warp_4, suffix, held<type, false, 4>)     \
    KERNEL(warp_8, suffix, held<type, false, 8>)     \
    KERNEL(block_1, suffix, held<type, true, 1>)     \
    KERNEL(block_2, suffix, held<type, true, 2>)     \
    KERNEL(block_4, suffix, held<type, true, 4>)     \
    KERNEL(block_8, suffix, held<type, true, 8>)     \
    KERNEL(long, suffix, read<type>)                 \
    DEFINE_GRAD(rows, suffix, grad_rows<type>)       \
    DEFINE_GRAD(columns, suffix, grad_columns<type>) \
    DEFINE_GRAD(join, suffix, grad_join<type>)
HN_EACH_FLOAT(DEFINE)
