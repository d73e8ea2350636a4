#include "cuda/core/device.cuh"
#include "cuda/move/cuda_write_args.h"

template <typename E> __device__ void trilu(const HnCudaTriluArgs &a)
{
    const int64_t rows = a.rows.by, cols = a.cols.by;
    const int64_t k = a.k != 0 ? min(max(*hn_at<const int64_t>(a.k), -rows), cols) : 0;
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t col = i, row = hn_divide_off(col, a.cols);
        hn_divide_off(row, a.rows);
        const bool stays = a.upper ? col >= row + k : col <= row + k;
        hn_at<E>(a.y)[i] = stays ? hn_at<const E>(a.x)[i] : E{};
    }
}

template <typename E, typename I> __device__ void onehot(const HnCudaOneHotArgs &a)
{
    const E *value = hn_at<const E>(a.values);
    const E off = value[0], on = value[1];
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t in = i, at = hn_divide_off(in, a.inner);
        const uint32_t o = hn_divide_off(at, a.depth);
        int64_t k = (int64_t)hn_at<const I>(a.index)[(int64_t)o * a.inner.by + in];
        k += k < 0 && a.from_back ? a.depth.by : 0;
        hn_at<E>(a.y)[i] = k == at ? on : off;
    }
}

template <typename E> __device__ void cache_write(const HnCudaCacheArgs &a)
{
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t column = i, row = hn_divide_off(column, a.run);
        const uint32_t o = hn_divide_off(row, a.rows);
        const int64_t k = a.at != 0 ? hn_at<const int64_t>(a.at)[hn_divide(o, a.per_batch)] : 0;
        if (k < 0 || (!a.circular && k > a.length - a.rows.by)) {
            hn_complain(a.complaint, hn_divide(o, a.per_batch));
            continue;
        }
        const int64_t to = (k % a.length + row) % a.length;
        hn_at<E>(a.y)[(o * a.length + to) * a.run.by + column] = hn_at<const E>(a.x)[i];
    }
}

#define DEFINE(size, type)                                                                   \
    extern "C" __global__ void trilu_##size(const __grid_constant__ HnCudaTriluArgs a)       \
    {                                                                                        \
        trilu<type>(a);                                                                      \
    }                                                                                        \
    extern "C" __global__ void cache_write_##size(const __grid_constant__ HnCudaCacheArgs a) \
    {                                                                                        \
        cache_write<type>(a);                                                                \
    }                                                                                        \
    extern "C" __global__ void onehot_i64_##size(const __grid_constant__ HnCudaOneHotArgs a) \
    {                                                                                        \
        onehot<type, int64_t>(a);                                                            \
    }                                                                                        \
    extern "C" __global__ void onehot_i32_##size(const __grid_constant__ HnCudaOneHotArgs a) \
    {                                                                                        \
        onehot<type, int32_t>(a);                                                            \
    }                                                                                        \
    extern "C" __global__ void onehot_f32_##size(const __grid_constant__ HnCudaOneHotArgs a) \
    {                                                                                        \
        onehot<type, float>(a);                                                              \
    }
DEFINE(1, uint8_t)
DEFINE(2, uint16_t)
DEFINE(4, uint32_t)
DEFINE(8, uint2)
DEFINE(16, uint4)
