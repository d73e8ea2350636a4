#include "cuda/core/device.cuh"
#include "cuda/reduce/cuda_softmax_args.h"

/* A block for each row, whose elements lie side by side. */
template <typename T> __device__ void softmax_rows(const HnCudaSoftmaxArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
        const T *x = hn_at<const T>(a.x) + row * a.n;
        T *y = hn_at<T>(a.y) + row * a.n;
        float most = HnMost::start, sum = 0;
        for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
            most = HnMost::of(most, hn_load(x + i));
        most = hn_block_reduce<HnMost>(most, room);
        for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
            sum += expf(hn_load(x + i) - most);
        sum = hn_block_reduce<HnSum>(sum, room);
        const float log_sum = logf(sum), scale = 1.0f / sum;
        for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
            const float d = hn_load(x + i) - most;
            hn_store(y + i, a.logs ? d - log_sum : expf(d) * scale);
        }
    }
}

/* A thread for each row, whose elements lie `inner` apart. */
template <typename T> __device__ void softmax_columns(const HnCudaSoftmaxArgs &a)
{
    for (int64_t i = hn_first(); i < a.outer * a.inner; i += hn_stride()) {
        const int64_t at = i / a.inner * a.n * a.inner + i % a.inner;
        const T *x = hn_at<const T>(a.x) + at;
        T *y = hn_at<T>(a.y) + at;
        float most = HnMost::start, sum = 0;
        for (int64_t k = 0; k < a.n; k++)
            most = HnMost::of(most, hn_load(x + k * a.inner));
        for (int64_t k = 0; k < a.n; k++)
            sum += expf(hn_load(x + k * a.inner) - most);
        const float log_sum = logf(sum), scale = 1.0f / sum;
        for (int64_t k = 0; k < a.n; k++) {
            const float d = hn_load(x + k * a.inner) - most;
            hn_store(y + k * a.inner, a.logs ? d - log_sum : expf(d) * scale);
        }
    }
}

#define DEFINE(suffix, type)                                                                         \
    extern "C" __global__ void softmax_rows_##suffix(const __grid_constant__ HnCudaSoftmaxArgs a)    \
    {                                                                                                \
        softmax_rows<type>(a);                                                                       \
    }                                                                                                \
    extern "C" __global__ void softmax_columns_##suffix(const __grid_constant__ HnCudaSoftmaxArgs a) \
    {                                                                                                \
        softmax_columns<type>(a);                                                                    \
    }
HN_EACH_FLOAT(DEFINE)
