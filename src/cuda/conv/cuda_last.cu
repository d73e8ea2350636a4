/*
 * Windows of values channels last, a unit of channels for each thread.
 */
#include "cuda/elementwise/cuda_end.cuh"
#include "cuda/conv/cuda_last_args.h"
#include "cuda/core/cuda_lines.cuh"
#include "cuda/conv/cuda_window.cuh"

template <typename T> struct Unit {
    static constexpr int N = 16 / (int)sizeof(T);
};

/* What a thread makes: a pixel of y, or the first of a piece of them. */
struct Place {
    int32_t channel, count; /* ..., and how many of the unit there are */
    uint32_t image, row, column;
    template <typename T> __device__ static Place of(const HnCudaLast &a, uint32_t i, T)
    {
        constexpr int UNIT = Unit<T>::N;
        Place p;
        uint32_t unit = i;
        p.column = hn_divide_off(unit, a.units);
        p.row = hn_divide_off(p.column, a.of_width);
        p.image = hn_divide_off(p.row, a.of_height);
        p.channel = (int32_t)unit * UNIT;
        p.count = min(UNIT, a.channels - p.channel);
        return p;
    }
};

template <typename T> __device__ inline const T *image_of(const HnCudaLast &a, const Place &p)
{
    return hn_at<const T>(a.x) + (int64_t)p.image * a.height.in * a.width.in * a.x_pitch + p.channel;
}
template <typename T> __device__ inline T *result_of(const HnCudaLast &a, const Place &p, int32_t column)
{
    return hn_at<T>(a.y) + (((int64_t)p.image * a.height.out + p.row) * a.width.out + column) * a.y_pitch + p.channel;
}

/* MEAN: else the largest, of which NaN is none. */
template <typename T, bool MEAN> __device__ void pool_last(const HnCudaPoolLastArgs &p)
{
    constexpr int UNIT = Unit<T>::N;
    const HnCudaLast &a = p.of;
    const uint32_t i = (uint32_t)hn_first();
    if (i >= a.n)
        return;
    const Place at = Place::of(a, i, T());
    const T *x = image_of<T>(a, at);
    int32_t y0, y1, x0, x1;
    hn_taps_within(a.height, (int32_t)at.row, 0, a.height.in, y0, y1);
    hn_taps_within(a.width, (int32_t)at.column, 0, a.width.in, x0, x1);
    const int32_t top = (int32_t)at.row * a.height.stride - a.height.pad,
                  left = (int32_t)at.column * a.width.stride - a.width.pad;
    float v[UNIT];
#pragma unroll
    for (int e = 0; e < UNIT; e++)
        v[e] = MEAN ? 0.0f : -__builtin_huge_valf();
    for (int32_t k = y0; k < y1; k++) {
        const T *row = x + (int64_t)((top + k * a.height.dilation) * a.width.in + left) * a.x_pitch;
#pragma unroll 4
        for (int32_t j = x0; j < x1; j++) {
            float next[UNIT];
            hn_load_line<T, UNIT>(next, row + (int64_t)(j * a.width.dilation) * a.x_pitch);
#pragma unroll
            for (int e = 0; e < UNIT; e++)
                v[e] = MEAN ? v[e] + next[e] : next[e] > v[e] ? next[e] : v[e];
        }
    }
    if (MEAN) {
        const float held = (float)hn_held(a.height, (int32_t)at.row, p.count_pad) *
                           (float)hn_held(a.width, (int32_t)at.column, p.count_pad);
#pragma unroll
        for (int e = 0; e < UNIT; e++)
            v[e] = held > 0 ? v[e] / held : 0.0f;
    }
    hn_store_line<T, UNIT>(result_of<T>(a, at, (int32_t)at.column), v, at.count);
}

template <typename B> __device__ void nearest_last(const HnCudaNearestLastArgs &p)
{
    const HnCudaLast &a = p.of;
    const uint32_t i = (uint32_t)hn_first();
    if (i >= a.n)
        return;
    const Place at = Place::of(a, i, B());
    const int64_t from = (int64_t)hn_at<const int32_t>(p.row_table)[at.row] * a.width.in +
                         hn_at<const int32_t>(p.column_table)[at.column];
    *reinterpret_cast<uint4 *>(result_of<B>(a, at, (int32_t)at.column)) =
        *reinterpret_cast<const uint4 *>(image_of<B>(a, at) + from * a.x_pitch);
}

/* COLUMNS results side by side. TAPS: of a row of the window; 0: any, one result. */
template <typename T, int TAPS, int STRIDE> __device__ void depthwise_last(const HnCudaDepthwiseLastArgs &p)
{
    constexpr int UNIT = Unit<T>::N, COLUMNS = TAPS > 0 ? HN_CUDA_DEPTHWISE_COLUMNS : 1;
    const HnCudaLast &a = p.of;
    const uint32_t i = (uint32_t)hn_first();
    if (i >= a.n)
        return;
    const Place at = Place::of(a, i, T());
    const int64_t line = (int64_t)a.units.by * UNIT;
    const int32_t column = (int32_t)at.column * COLUMNS, top = (int32_t)at.row * a.height.stride - a.height.pad,
                  left = column * a.width.stride - a.width.pad;
    const T *x = image_of<T>(a, at), *w = hn_at<const T>(p.w) + at.channel;
    float sum[COLUMNS * UNIT];
#pragma unroll
    for (int e = 0; e < COLUMNS * UNIT; e++)
        sum[e] = 0;
#pragma unroll 1
    for (int32_t k = 0; k < a.height.kernel; k++, w += a.width.kernel * line) {
        const int32_t y = top + k * a.height.dilation;
        if ((uint32_t)y >= (uint32_t)a.height.in)
            continue;
        const T *row = x + (int64_t)y * a.width.in * a.x_pitch;
        if constexpr (TAPS > 0) {
            constexpr int SEEN = (COLUMNS - 1) * STRIDE + TAPS;
            float weight[TAPS][UNIT];
#pragma unroll
            for (int t = 0; t < TAPS; t++)
                hn_load_line<T, UNIT>(weight[t], w + t * line);
#pragma unroll
            for (int s = 0; s < SEEN; s++) {
                float v[UNIT];
                const bool in = (uint32_t)(left + s) < (uint32_t)a.width.in;
                hn_load_line<T, UNIT>(v, row + (in ? left + s : 0) * a.x_pitch);
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    if (s >= c * STRIDE && s < c * STRIDE + TAPS) {
#pragma unroll
                        for (int e = 0; e < UNIT; e++)
                            sum[c * UNIT + e] += weight[s - c * STRIDE][e] * (in ? v[e] : 0.0f);
                    }
            }
        } else {
#pragma unroll 2
            for (int32_t t = 0; t < a.width.kernel; t++) {
                const int32_t c = left + t * a.width.dilation;
                float v[UNIT], weight[UNIT];
                if ((uint32_t)c >= (uint32_t)a.width.in)
                    continue;
                hn_load_line<T, UNIT>(v, row + c * a.x_pitch);
                hn_load_line<T, UNIT>(weight, w + t * line);
#pragma unroll
                for (int e = 0; e < UNIT; e++)
                    sum[e] += weight[e] * v[e];
            }
        }
    }
    int32_t pixel[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        pixel[c] =
            column + c < a.width.out ? (int32_t)((at.image * a.height.out + at.row) * a.width.out) + column + c : -1;
#pragma unroll
    for (int e = 0; e < UNIT; e++) {
        const float bias = p.bias != 0 && e < at.count ? hn_load(hn_at<const T>(p.bias) + at.channel + e) : 0.0f;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            sum[c * UNIT + e] += bias;
    }
    hn_end_lines<T, COLUMNS, UNIT>(p.end, sum, at.channel, at.count, pixel);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        if (pixel[c] >= 0)
            hn_store_line<T, UNIT>(hn_at<T>(a.y) + pixel[c] * a.y_pitch + at.channel, sum + c * UNIT, at.count);
}

struct Largest { /* NaN is never the largest */
    __device__ static float of(float a, float b)
    {
        return b > a ? b : a;
    }
    static constexpr float start = -__builtin_huge_valf();
};

/* Threads of a block share the pixels of some units; where blocks share them, too, the one that comes last adds what
 * the others left. */
template <typename T, class How> __device__ void global_last(const HnCudaGlobalLastArgs &a)
{
    constexpr int UNIT = Unit<T>::N, UNITS = HN_CUDA_GLOBAL_UNITS, LINES = HN_CUDA_GLOBAL_LINES, WIDE = UNITS * UNIT;
    __shared__ float room[LINES][WIDE + 1];
    __shared__ int32_t last;
    const int unit = threadIdx.x % UNITS, line = threadIdx.x / UNITS, tid = threadIdx.x;
    const int32_t split = blockIdx.x % a.splits, block = blockIdx.x / a.splits;
    const int32_t image = block / a.across, first = block % a.across * WIDE, channel = first + unit * UNIT;
    const int64_t from = split * a.share, to = min(from + a.share, a.pixels);
    float v[UNIT];
#pragma unroll
    for (int e = 0; e < UNIT; e++)
        v[e] = How::start;
    if (channel < a.channels) {
        const T *x = hn_at<const T>(a.x) + image * a.pixels * a.pitch + channel;
#pragma unroll 4
        for (int64_t k = from + line; k < to; k += LINES) {
            float next[UNIT];
            hn_load_line<T, UNIT>(next, x + k * a.pitch);
#pragma unroll
            for (int e = 0; e < UNIT; e++)
                v[e] = How::of(v[e], next[e]);
        }
    }
#pragma unroll
    for (int e = 0; e < UNIT; e++)
        room[line][unit * UNIT + e] = v[e];
    __syncthreads();
    float all = How::start;
    if (tid < WIDE)
        for (int k = 0; k < LINES; k++)
            all = How::of(all, room[k][tid]);
    if (a.splits > 1) {
        float *parts = hn_at<float>(a.parts) + (int64_t)block * a.splits * WIDE;
        if (tid < WIDE)
            parts[split * WIDE + tid] = all;
        __threadfence();
        __syncthreads();
        if (tid == 0) {
            const uint32_t n = atomicAdd(hn_at<uint32_t>(a.done) + block, 1u);
            last = n == (uint32_t)a.splits - 1;
            if (last)
                hn_at<uint32_t>(a.done)[block] = 0; /* for the next launch */
        }
        __syncthreads();
        if (!last)
            return;
        __threadfence();
        all = How::start;
        if (tid < WIDE)
            for (int k = 0; k < a.splits; k++)
                all = How::of(all, __ldcg(parts + k * WIDE + tid));
    }
    if (tid < WIDE && first + tid < a.channels)
        hn_store(hn_at<T>(a.y) + (int64_t)image * a.y_pitch + first + tid, a.mean ? all / (float)a.pixels : all);
}

#define KERNEL(name, suffix, args, ...)                                                                                \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_LAST_THREADS) name##_##suffix(const __grid_constant__ args a) \
    {                                                                                                                  \
        __VA_ARGS__(a);                                                                                                \
    }
#define DEFINE(suffix, type)                                                                   \
    KERNEL(pool_last_max, suffix, HnCudaPoolLastArgs, pool_last<type, false>)                  \
    KERNEL(pool_last_mean, suffix, HnCudaPoolLastArgs, pool_last<type, true>)                  \
    KERNEL(global_last_max, suffix, HnCudaGlobalLastArgs, global_last<type, Largest>)          \
    KERNEL(global_last_mean, suffix, HnCudaGlobalLastArgs, global_last<type, HnSum>)           \
    KERNEL(depthwise_last_0_by_1, suffix, HnCudaDepthwiseLastArgs, depthwise_last<type, 0, 1>) \
    KERNEL(depthwise_last_3_by_1, suffix, HnCudaDepthwiseLastArgs, depthwise_last<type, 3, 1>) \
    KERNEL(depthwise_last_3_by_2, suffix, HnCudaDepthwiseLastArgs, depthwise_last<type, 3, 2>) \
    KERNEL(depthwise_last_5_by_1, suffix, HnCudaDepthwiseLastArgs, depthwise_last<type, 5, 1>) \
    KERNEL(depthwise_last_5_by_2, suffix, HnCudaDepthwiseLastArgs, depthwise_last<type, 5, 2>) \
    KERNEL(depthwise_last_7_by_1, suffix, HnCudaDepthwiseLastArgs, depthwise_last<type, 7, 1>)
HN_EACH_FLOAT(DEFINE)
KERNEL(nearest_last, 2, HnCudaNearestLastArgs, nearest_last<uint16_t>)
KERNEL(nearest_last, 4, HnCudaNearestLastArgs, nearest_last<uint32_t>)
