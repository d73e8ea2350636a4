#include "cuda/move/cuda_scatter_args.h"
#include "cuda/move/index.cuh"

/* --- rows of updates --------------------------------------------------------------------------------------------- */

__device__ inline int64_t row_by_tuple(const HnCudaRowsArgs &a, uint32_t i)
{
    int64_t row = 0;
    for (int d = 0; d < a.depth; d++) {
        int64_t k = hn_index_load(a.elements.at, (int64_t)i * a.depth + d);
        if (!hn_index(a.elements.at, (int64_t)i * a.depth + d, k, a.dims[d]))
            return -1;
        row += k * a.strides[d];
    }
    return row;
}

/* Places are counted from 1; 0 is none. */
__device__ inline int64_t row_by_place(const HnCudaRowsArgs &a, uint32_t i)
{
    const int64_t k = hn_index_load(a.elements.at, i);
    if (k < 0 || k > a.rows)
        hn_complain(a.elements.at.complaint, i);
    return k < 0 || k > a.rows ? -1 : k - 1;
}

extern "C" __global__ void scatter_find(const __grid_constant__ HnCudaRowsArgs a)
{
    for (uint32_t i = (uint32_t)hn_first(); i < a.count; i += (uint32_t)hn_stride()) {
        const int64_t row = a.how == HN_CUDA_BY_TUPLES     ? row_by_tuple(a, i)
                            : a.how == HN_CUDA_BY_ELEMENTS ? hn_element_place(a.elements, i)
                                                           : row_by_place(a, i);
        hn_at<uint32_t>(a.row)[i] = row >= 0 ? (uint32_t)row : HN_CUDA_NO_ROW;
    }
}

/* --- the last update of a row is written ------------------------------------------------------------------------- */

extern "C" __global__ void scatter_claim(const __grid_constant__ HnCudaScatterArgs a)
{
    for (uint32_t i = (uint32_t)hn_first(); i < a.count; i += (uint32_t)hn_stride()) {
        const uint32_t row = hn_at<const uint32_t>(a.row)[i];
        if (row != HN_CUDA_NO_ROW)
            atomicMax(hn_at<uint32_t>(a.owner) + row, i + 1);
    }
}

/* The update that element k of all is of; k becomes its place in there. */
__device__ inline uint32_t update_of(const HnCudaScatterArgs &a, int64_t &k)
{
    const uint32_t i = a.n < HN_DIVIDE_LIMIT ? hn_divide((uint32_t)k, a.divisor) : (uint32_t)(k / a.run);
    k -= i * a.run;
    return i;
}

template <typename E> __device__ void scatter_write(const HnCudaScatterArgs &a)
{
    for (int64_t k = hn_first(); k < a.n; k += hn_stride()) {
        int64_t column = k;
        const uint32_t i = update_of(a, column), row = hn_at<const uint32_t>(a.row)[i];
        if (row != HN_CUDA_NO_ROW && (a.owner == 0 || hn_at<const uint32_t>(a.owner)[row] == i + 1))
            hn_at<E>(a.y)[row * a.run + column] = hn_at<const E>(a.updates)[k];
    }
}

/* --- or all of them are reduced, in their order ------------------------------------------------------------------ */

template <typename A> __device__ inline A reduced(int how, A y, A x)
{
    return how == HN_CUDA_ADD   ? y + x
           : how == HN_CUDA_MUL ? y * x
           : how == HN_CUDA_MAX ? (y != y || y >= x ? y : x) /* a NaN stays */
                                : (y != y || y <= x ? y : x);
}

/* Sums of integers wrap. */
__device__ inline int64_t reduced(int how, int64_t y, int64_t x)
{
    return how == HN_CUDA_ADD   ? (int64_t)((uint64_t)y + (uint64_t)x)
           : how == HN_CUDA_MUL ? (int64_t)((uint64_t)y * (uint64_t)x)
           : how == HN_CUDA_MAX ? max(y, x)
                                : min(y, x);
}

__device__ inline int64_t hn_load(const int32_t *p)
{
    return *p;
}
__device__ inline int64_t hn_load(const int64_t *p)
{
    return *p;
}
__device__ inline void hn_store(int32_t *p, int64_t x)
{
    *p = (int32_t)x;
}
__device__ inline void hn_store(int64_t *p, int64_t x)
{
    *p = x;
}

/* Element k of the first update of a row: with those of all others. */
template <typename T> __device__ void scatter_reduce(const HnCudaScatterArgs &a)
{
    const uint32_t *rows = hn_at<const uint32_t>(a.row), *items = hn_at<const uint32_t>(a.item);
    for (int64_t k = hn_first(); k < a.n; k += hn_stride()) {
        int64_t column = k;
        const uint32_t i = update_of(a, column), row = rows[i];
        bool first = row != HN_CUDA_NO_ROW && (items == nullptr || i == 0 || rows[i - 1] != row);
        for (uint32_t j = 0; items == nullptr && first && j < i; j++)
            first = rows[j] != row;
        if (!first)
            continue;
        T *y = hn_at<T>(a.y) + row * a.run + column;
        auto sum = hn_load(y);
        for (uint32_t j = i; j < a.count; j++) {
            if (rows[j] == row) {
                const int64_t update = items != nullptr ? items[j] : j;
                sum = reduced(a.reduction, sum, hn_load(hn_at<const T>(a.updates) + update * a.run + column));
            } else if (items != nullptr) {
                break;
            }
        }
        hn_store(y, sum);
    }
}

#define DEFINE_WRITE(size, type)                                                                 \
    extern "C" __global__ void scatter_write_##size(const __grid_constant__ HnCudaScatterArgs a) \
    {                                                                                            \
        scatter_write<type>(a);                                                                  \
    }
DEFINE_WRITE(1, uint8_t)
DEFINE_WRITE(2, uint16_t)
DEFINE_WRITE(4, uint32_t)
DEFINE_WRITE(8, uint2)
DEFINE_WRITE(16, uint4)

#define DEFINE_REDUCE(suffix, type)                                                                 \
    extern "C" __global__ void scatter_reduce_##suffix(const __grid_constant__ HnCudaScatterArgs a) \
    {                                                                                               \
        scatter_reduce<type>(a);                                                                    \
    }
HN_EACH_FLOAT(DEFINE_REDUCE)
DEFINE_REDUCE(i32, int32_t)
DEFINE_REDUCE(i64, int64_t)
