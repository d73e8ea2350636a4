#include "cuda/core/device.cuh"
#include "cuda/reduce/cuda_softmaxgrad_args.h"

__device__ static float back(const HnCudaSoftmaxGradArgs &a, float dy, float y, float sum)
{
    return a.logs ? dy - expf(y) * sum : y * (dy - sum);
}

/* A block for each row, whose elements lie side by side. */
template <typename T> __device__ static void rows(const HnCudaSoftmaxGradArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
        const T *dy = hn_at<const T>(a.dy) + row * a.n, *y = hn_at<const T>(a.y) + row * a.n;
        T *dx = hn_at<T>(a.dx) + row * a.n;
        float sum = 0;
        for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
            sum += hn_load(dy + i) * (a.logs ? 1.0f : hn_load(y + i));
        sum = hn_block_reduce<HnSum>(sum, room);
        for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
            hn_store(dx + i, back(a, hn_load(dy + i), hn_load(y + i), sum));
    }
}

/* A thread for each row, whose elements lie `inner` apart. */
template <typename T> __device__ static void columns(const HnCudaSoftmaxGradArgs &a)
{
    for (int64_t i = hn_first(); i < a.outer * a.inner; i += hn_stride()) {
        const int64_t at = i / a.inner * a.n * a.inner + i % a.inner;
        const T *dy = hn_at<const T>(a.dy) + at, *y = hn_at<const T>(a.y) + at;
        T *dx = hn_at<T>(a.dx) + at;
        float sum = 0;
        for (int64_t k = 0; k < a.n; k++)
            sum += hn_load(dy + k * a.inner) * (a.logs ? 1.0f : hn_load(y + k * a.inner));
        for (int64_t k = 0; k < a.n; k++)
            hn_store(dx + k * a.inner, back(a, hn_load(dy + k * a.inner), hn_load(y + k * a.inner), sum));
    }
}

#define KERNEL(form, suffix, type)                                                                            \
    extern "C" __global__ void softmaxgrad_##form##_##suffix(const __grid_constant__ HnCudaSoftmaxGradArgs a) \
    {                                                                                                         \
        form<type>(a);                                                                                        \
    }
#define DEFINE(suffix, type)   \
    KERNEL(rows, suffix, type) \
    KERNEL(columns, suffix, type)
HN_EACH_FLOAT(DEFINE)
