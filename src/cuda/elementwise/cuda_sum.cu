#include "cuda/elementwise/cuda_sum_args.h"
#include "cuda/elementwise/cuda_walk.cuh"

template <typename T> __device__ void sums(const HnCudaSumArgs &a)
{
    double *kept = hn_at<double>(a.sum);
    for (int64_t i = hn_first_quad(); i < a.walk.shape.total; i += hn_quad_stride()) {
        double sum[HN_QUAD] = {};
        for (int j = 0; j < HN_QUAD; j++)
            if (!a.first && i + j < a.walk.shape.total)
                sum[j] = kept[i + j];
        for (int k = 0; k < a.n; k++) {
            T x[HN_QUAD];
            hn_load_quad(x, a.x[k], a.walk, a.seen[k], i);
#pragma unroll
            for (int j = 0; j < HN_QUAD; j++)
                sum[j] += (double)hn_load(&x[j]);
        }
        if (!a.last) {
            hn_store_quad(kept, sum, a.walk.shape.total, i);
            continue;
        }
        T z[HN_QUAD];
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            hn_store(&z[j], (float)(sum[j] / a.share));
        hn_store_quad(hn_at<T>(a.z), z, a.walk.shape.total, i);
    }
}

#define DEFINE(suffix, type)                                                         \
    extern "C" __global__ void sum_##suffix(const __grid_constant__ HnCudaSumArgs a) \
    {                                                                                \
        sums<type>(a);                                                               \
    }
HN_EACH_FLOAT(DEFINE)
