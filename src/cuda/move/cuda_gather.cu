#include "cuda/move/index.cuh"

template <typename E> __device__ void gather_rows(const HnCudaGatherArgs &a)
{
    const E *x = hn_at<const E>(a.x);
    E *y = hn_at<E>(a.y);
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t column = i, k = hn_divide_off(column, a.run);
        const uint32_t o = hn_divide_off(k, a.count);
        const int64_t at = o * a.at_outer + (int64_t)k * a.depth;
        int64_t place = o * a.x_outer + column;
        bool inside = true;
        for (int d = 0; d < a.depth && inside; d++) {
            int64_t index = hn_index_load(a.at, at + d);
            inside = a.zeros ? index >= 0 && index < a.dims[d] : hn_index(a.at, a.at_first + at + d, index, a.dims[d]);
            place += index * a.strides[d];
        }
        y[i] = inside ? x[place] : E{};
    }
}

/* Nothing is gathered: n indices lie within their axes. */
extern "C" __global__ void gather_check(const __grid_constant__ HnCudaGatherArgs a)
{
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        int64_t index = hn_index_load(a.at, i);
        hn_index(a.at, i, index, a.dims[i % a.depth]);
    }
}

template <typename E> __device__ void gather_elements(const HnCudaElementsArgs &a)
{
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        const int64_t place = hn_element_place(a, i);
        hn_at<E>(a.y)[i] = place >= 0 ? hn_at<const E>(a.x)[place] : E{};
    }
}

#define DEFINE(size, type)                                                                          \
    extern "C" __global__ void gather_rows_##size(const __grid_constant__ HnCudaGatherArgs a)       \
    {                                                                                               \
        gather_rows<type>(a);                                                                       \
    }                                                                                               \
    extern "C" __global__ void gather_elements_##size(const __grid_constant__ HnCudaElementsArgs a) \
    {                                                                                               \
        gather_elements<type>(a);                                                                   \
    }
DEFINE(1, uint8_t)
DEFINE(2, uint16_t)
DEFINE(4, uint32_t)
DEFINE(8, uint2)
DEFINE(16, uint4)
