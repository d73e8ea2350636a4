#include "cuda/elementwise/cuda_pair_args.h"
#include "cuda/elementwise/cuda_walk.cuh"

template <typename T> __device__ void choose(const HnCudaWhereArgs &a)
{
    for (int64_t i = hn_first_quad(); i < a.walk.shape.total; i += hn_quad_stride()) {
        uint8_t c[HN_QUAD];
        T x[HN_QUAD], y[HN_QUAD];
        hn_load_quad(c, a.c, a.walk, a.seen[0], i);
        hn_load_quad(x, a.x, a.walk, a.seen[1], i);
        hn_load_quad(y, a.y, a.walk, a.seen[2], i);
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            x[j] = c[j] != 0 ? x[j] : y[j];
        hn_store_quad(hn_at<T>(a.z), x, a.walk.shape.total, i);
    }
}

#define DEFINE(name, type)                                                     \
    extern "C" __global__ void name(const __grid_constant__ HnCudaWhereArgs a) \
    {                                                                          \
        choose<type>(a);                                                       \
    }
DEFINE(where_1, uint8_t)
DEFINE(where_2, uint16_t)
DEFINE(where_4, uint32_t)
DEFINE(where_8, uint64_t)
