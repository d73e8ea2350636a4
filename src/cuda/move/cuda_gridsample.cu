#include "cuda/core/device.cuh"
#include "cuda/move/cuda_gridsample_args.h"

/* Places are found as op/gridsample.c finds them: the same operations, none of them contracted. */

__device__ inline double reflect(double x, double lo, double hi)
{
    const double range = hi - lo;
    if (!(range > 0))
        return lo;
    const double r = fmod(fabs(x - lo), 2 * range);
    return r <= range ? lo + r : hi - (r - range);
}

/* Halves between elements are decided in single precision. */
__device__ inline double nearest_place(const HnCudaGridArgs &a, float v, float size)
{
    const float up = __fadd_rn(v, 1.0f);
    return rint((double)(a.align_corners ? __fmul_rn(up / 2, size - 1) : __fadd_rn(__fmul_rn(up, size), -1.0f) / 2));
}

__device__ inline double linear_place(const HnCudaGridArgs &a, double v, double size)
{
    const double up = v + 1;
    return a.align_corners ? __dmul_rn(up / 2, size - 1) : __dadd_rn(__dmul_rn(up, size), -1.0) / 2;
}

template <int TAPS> __device__ inline double place_of(const HnCudaGridArgs &a, float v, int64_t size)
{
    const double lo = a.align_corners ? 0 : -0.5, hi = (double)(size - 1) - lo;
    double x = TAPS == 1 ? nearest_place(a, v, (float)size) : linear_place(a, v, (double)size);
    if (!isfinite(x))
        return a.padding == HN_CUDA_GRID_ZEROS ? -0x1p50 : 0;
    if (x < lo || x > hi) {
        if (a.padding == HN_CUDA_GRID_BORDER && TAPS != 4) /* cubic: its taps are moved one by one */
            x = x < 0 ? 0 : (double)(size - 1);
        else if (a.padding == HN_CUDA_GRID_REFLECTION)
            x = reflect(x, lo, hi);
    }
    return min(max(x, -0x1p50), 0x1p50);
}

/* The element that index i stands for; -1: a zero. */
__device__ inline int64_t settled(const HnCudaGridArgs &a, int64_t i, int64_t size)
{
    if (i >= 0 && i < size)
        return i;
    if (a.padding == HN_CUDA_GRID_ZEROS)
        return -1;
    double k = (double)i;
    if (a.padding == HN_CUDA_GRID_REFLECTION)
        k = a.align_corners ? reflect(k, 0, (double)(size - 1)) : reflect(k, -0.5, (double)size - 0.5);
    return k >= (double)size ? size - 1 : k > 0 ? (int64_t)k : 0;
}

/* Elements along an axis around a place, and their weights. */
template <int TAPS>
__device__ inline void taps_of(const HnCudaGridArgs &a, float v, int64_t size, int64_t *at, float *weight)
{
    const double x = place_of<TAPS>(a, v, size), low = floor(x), t = x - low, f = -0.75;
    const int64_t first = (int64_t)low - (TAPS == 4 ? 1 : 0);
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        const double d = fabs(t + 1 - k);
        at[k] = settled(a, first + k, size);
        weight[k] = (float)(TAPS == 1   ? 1.0
                            : TAPS == 2 ? (k == 0 ? 1 - t : t)
                            : d <= 1    ? ((f + 2) * d - (f + 3)) * d * d + 1
                                        : ((f * d - 5 * f) * d + 8 * f) * d - 4 * f);
    }
}

template <typename T, int TAPS> __device__ void grid_sample(const HnCudaGridArgs &a)
{
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t place = i, group = hn_divide_off(place, a.places);
        const uint32_t batch = hn_divide_off(group, a.groups);
        const T *grid = hn_at<const T>(a.grid) + 2 * ((int64_t)batch * a.places.by + place);
        int64_t column[TAPS], row[TAPS];
        float across[TAPS], down[TAPS];
        taps_of<TAPS>(a, hn_load(grid), a.width, column, across);
        taps_of<TAPS>(a, hn_load(grid + 1), a.height, row, down);
        const int64_t begin = (int64_t)group * HN_CUDA_GRID_CHANNELS;
        const int64_t end = min(begin + HN_CUDA_GRID_CHANNELS, a.channels);
        for (int64_t c = begin; c < end; c++) {
            const T *x = hn_at<const T>(a.x) + (batch * a.channels + c) * a.height * a.width;
            float sum = 0;
#pragma unroll
            for (int r = 0; r < TAPS; r++)
#pragma unroll
                for (int k = 0; k < TAPS; k++)
                    if (row[r] >= 0 && column[k] >= 0)
                        sum += hn_load(x + row[r] * a.width + column[k]) * (across[k] * down[r]);
            hn_store(hn_at<T>(a.y) + (batch * a.channels + c) * a.places.by + place, sum);
        }
    }
}

#define DEFINE_TAPS(name, suffix, type, taps)                                                   \
    extern "C" __global__ void grid_##name##_##suffix(const __grid_constant__ HnCudaGridArgs a) \
    {                                                                                           \
        grid_sample<type, taps>(a);                                                             \
    }
#define DEFINE(suffix, type)              \
    DEFINE_TAPS(nearest, suffix, type, 1) \
    DEFINE_TAPS(linear, suffix, type, 2)  \
    DEFINE_TAPS(cubic, suffix, type, 4)
HN_EACH_FLOAT(DEFINE)
