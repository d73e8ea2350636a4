#include "cuda/reduce/cuda_lrn_args.h"
#include "cuda/reduce/cuda_rows.cuh"

/* A thread for each element; those of a warp lie side by side, and so do their neighbours. */
template <typename T> __device__ static void lrn(const HnCudaLrnArgs &a)
{
    for (int64_t i = hn_first(); i < a.samples * a.channels * a.inner; i += hn_stride()) {
        const int64_t row = hn_divide(i, a.inner), c = row - hn_divide(row, a.channels) * a.channels;
        const T *x = hn_at<const T>(a.x) + i;
        const int64_t last = min(c + a.above, a.channels - 1);
        float sum = 0;
        for (int64_t k = max(c - a.below, (int64_t)0); k <= last; k++) {
            const float v = hn_load(x + (k - c) * a.inner);
            sum += v * v;
        }
        hn_store(hn_at<T>(a.y) + i, hn_load(x) / powf(fmaf(a.alpha, sum, a.bias), a.beta));
    }
}

#define DEFINE(suffix, type)                                                         \
    extern "C" __global__ void lrn_##suffix(const __grid_constant__ HnCudaLrnArgs a) \
    {                                                                                \
        lrn<type>(a);                                                                \
    }
HN_EACH_FLOAT(DEFINE)
