#include "cuda/core/device.cuh"
#include "cuda/elementwise/cuda_fill_args.h"

extern "C" __global__ void fill(const __grid_constant__ HnCudaFillArgs a)
{
    const bool aligned = a.z % 16 == 0;
    const int64_t whole = aligned ? a.bytes / 16 : 0;
    for (int64_t i = hn_first(); i < whole; i += hn_stride())
        hn_at<ulonglong2>(a.z)[i] = make_ulonglong2(a.low, a.high);
    for (int64_t i = whole * 16 + hn_first(); i < a.bytes; i += hn_stride())
        hn_at<uint8_t>(a.z)[i] = (uint8_t)((i % 16 < 8 ? a.low : a.high) >> i % 8 * 8);
}

/* Floats in double, so that steps do not add up errors; integers wrap. */
template <typename T, typename W> __device__ void range(const HnCudaRangeArgs &a)
{
    const W start = (W)*hn_at<const T>(a.start), delta = (W)*hn_at<const T>(a.delta);
    for (int64_t i = hn_first(); i < a.n; i += hn_stride())
        hn_at<T>(a.z)[i] = (T)(start + (W)i * delta);
}

#define DEFINE(suffix, T, W)                                                             \
    extern "C" __global__ void range_##suffix(const __grid_constant__ HnCudaRangeArgs a) \
    {                                                                                    \
        range<T, W>(a);                                                                  \
    }
DEFINE(f32, float, double)
DEFINE(i32, int32_t, uint64_t)
DEFINE(i64, int64_t, uint64_t)

__device__ inline float number(float x)
{
    return x;
}
__device__ inline double number(double x)
{
    return x;
}
__device__ inline float number(hn_f16 x)
{
    return __half2float(x);
}
__device__ inline float number(hn_bf16 x)
{
    return __bfloat162float(x);
}

template <typename T> __device__ void is(const HnCudaIsArgs &a)
{
    for (int64_t i = hn_first(); i < a.n; i += hn_stride()) {
        const auto v = number(hn_at<const T>(a.x)[i]);
        const bool infinite = (v == INFINITY && a.positive) || (v == -INFINITY && a.negative);
        hn_at<uint8_t>(a.z)[i] = a.nan ? v != v : infinite;
    }
}

#define DEFINE_IS(suffix, T)                                                       \
    extern "C" __global__ void is_##suffix(const __grid_constant__ HnCudaIsArgs a) \
    {                                                                              \
        is<T>(a);                                                                  \
    }
HN_EACH_FLOAT(DEFINE_IS)
DEFINE_IS(f64, double)
