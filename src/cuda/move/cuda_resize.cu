#include "cuda/core/device.cuh"
#include "cuda/move/cuda_resize_args.h"

template <typename E> __device__ void resize_nearest(const HnCudaNearestArgs &a)
{
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t rest = i;
        int64_t from = 0;
        for (int axis = a.ndim - 1; axis >= 0; axis--) {
            const uint32_t q = axis > 0 ? hn_divide(rest, a.dims[axis]) : 0, at = rest - q * a.dims[axis].by;
            const int64_t table = a.tables[axis];
            from += (table >= 0 ? hn_at<const int32_t>(a.table)[table + at] : (int64_t)at) * a.strides[axis];
            rest = q;
        }
        hn_at<E>(a.y)[i] = hn_at<const E>(a.x)[from];
    }
}

/* A thread for some rows of a column. */
template <typename E> __device__ void nearest_grid(const HnCudaGridNearestArgs &a)
{
    const int32_t *rows = hn_at<const int32_t>(a.row_table);
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t column = i, group = hn_divide_off(column, a.columns);
        const uint32_t outer = hn_divide_off(group, a.row_groups);
        const E *x =
            hn_at<const E>(a.x) + outer * a.in_rows * a.in_columns + hn_at<const int32_t>(a.column_table)[column];
        E *y = hn_at<E>(a.y) + (int64_t)outer * a.rows * a.columns.by + column, v[HN_CUDA_RESIZE_ROWS];
        const int32_t first = (int32_t)group * HN_CUDA_RESIZE_ROWS;
#pragma unroll
        for (int r = 0; r < HN_CUDA_RESIZE_ROWS; r++)
            if (first + r < a.rows)
                v[r] = x[rows[first + r] * a.in_columns];
#pragma unroll
        for (int r = 0; r < HN_CUDA_RESIZE_ROWS; r++)
            if (first + r < a.rows)
                y[(int64_t)(first + r) * a.columns.by] = v[r];
    }
}

/* Sums in f32. */
template <typename From, typename To> __device__ void resize_mean(const HnCudaMeanArgs &a)
{
    const int32_t *first = hn_at<const int32_t>(a.first), *at = hn_at<const int32_t>(a.at);
    const float *weight = hn_at<const float>(a.weight);
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t column = i, k = hn_divide_off(column, a.inner);
        const uint32_t o = hn_divide_off(k, a.out);
        const From *x = hn_at<const From>(a.x) + o * a.in * a.inner.by + column;
        float sum = 0;
        for (int32_t t = first[k]; t < first[k + 1]; t++)
            sum += hn_load(x + (int64_t)at[t] * a.inner.by) * weight[t];
        hn_store(hn_at<To>(a.y) + i, sum);
    }
}

__device__ __forceinline__ HnCudaTaps taps_at(uint64_t table, uint32_t i)
{
    const int4 t = hn_at<const int4>(table)[i];
    return HnCudaTaps{ { t.x, t.y }, { __int_as_float(t.z), __int_as_float(t.w) } };
}

/* Of what may be infinite where there is no tap. */
__device__ __forceinline__ float of_taps(float x0, float x1, const HnCudaTaps &taps)
{
    return fmaf(taps.at[1] >= 0 ? x1 : 0.0f, taps.weight[1], (taps.at[0] >= 0 ? x0 : 0.0f) * taps.weight[0]);
}
__device__ __forceinline__ float of_grid(float x00, float x01, float x10, float x11, const HnCudaTaps &within,
                                         const HnCudaTaps &around)
{
    return of_taps(of_taps(x00, x01, within), of_taps(x10, x11, within), around);
}

/* A thread for some rows of a column. Sums in f32, those along one axis of those along the other. */
template <typename T> __device__ void resize_grid(const HnCudaGridMeanArgs &a)
{
    const int64_t across = a.inner.by, down = a.in_columns * across;
    for (uint32_t i = (uint32_t)hn_first(); i < a.n; i += (uint32_t)hn_stride()) {
        uint32_t c = i, column = hn_divide_off(c, a.inner), group = hn_divide_off(column, a.columns);
        const uint32_t outer = hn_divide_off(group, a.row_groups);
        const HnCudaTaps q = taps_at(a.column_taps, column);
        const T *x = hn_at<const T>(a.x) + outer * a.in_rows * down + c;
        T *y = hn_at<T>(a.y) + ((int64_t)outer * a.rows * a.columns.by + column) * across + c;
        float v[HN_CUDA_RESIZE_ROWS][2][2]; /* by row, its tap, the column's tap: all of them on their way at once */
        HnCudaTaps p[HN_CUDA_RESIZE_ROWS];
        const int32_t first = (int32_t)group * HN_CUDA_RESIZE_ROWS;
#pragma unroll
        for (int r = 0; r < HN_CUDA_RESIZE_ROWS; r++)
            p[r] = taps_at(a.row_taps, min(first + r, a.rows - 1));
#pragma unroll
        for (int k = 0; k < HN_CUDA_RESIZE_ROWS * 4; k++)
            v[k / 4][k / 2 % 2][k % 2] =
                hn_load(x + max(p[k / 4].at[k / 2 % 2], 0) * down + max(q.at[k % 2], 0) * across);
#pragma unroll
        for (int r = 0; r < HN_CUDA_RESIZE_ROWS; r++) {
            const float sum = a.columns_first ? of_grid(v[r][0][0], v[r][0][1], v[r][1][0], v[r][1][1], q, p[r])
                                              : of_grid(v[r][0][0], v[r][1][0], v[r][0][1], v[r][1][1], p[r], q);
            if (first + r < a.rows)
                hn_store(y + (int64_t)(first + r) * a.columns.by * across, sum);
        }
    }
}

#define DEFINE_GRID(suffix, type)                                                                 \
    extern "C" __global__ void resize_grid_##suffix(const __grid_constant__ HnCudaGridMeanArgs a) \
    {                                                                                             \
        resize_grid<type>(a);                                                                     \
    }
HN_EACH_FLOAT(DEFINE_GRID)

#define DEFINE_NEAREST(size, type)                                                                         \
    extern "C" __global__ void resize_nearest_##size(const __grid_constant__ HnCudaNearestArgs a)          \
    {                                                                                                      \
        resize_nearest<type>(a);                                                                           \
    }                                                                                                      \
    extern "C" __global__ void resize_nearest_grid_##size(const __grid_constant__ HnCudaGridNearestArgs a) \
    {                                                                                                      \
        nearest_grid<type>(a);                                                                             \
    }
DEFINE_NEAREST(1, uint8_t)
DEFINE_NEAREST(2, uint16_t)
DEFINE_NEAREST(4, uint32_t)
DEFINE_NEAREST(8, uint2)
DEFINE_NEAREST(16, uint4)

/* What lies between two passes is f32. */
#define DEFINE_MEAN(from, to, From, To)                                                       \
    extern "C" __global__ void resize_##from##_##to(const __grid_constant__ HnCudaMeanArgs a) \
    {                                                                                         \
        resize_mean<From, To>(a);                                                             \
    }
DEFINE_MEAN(f32, f32, float, float)
DEFINE_MEAN(f16, f16, hn_f16, hn_f16)
DEFINE_MEAN(f16, f32, hn_f16, float)
DEFINE_MEAN(f32, f16, float, hn_f16)
DEFINE_MEAN(bf16, bf16, hn_bf16, hn_bf16)
DEFINE_MEAN(bf16, f32, hn_bf16, float)
DEFINE_MEAN(f32, bf16, float, hn_bf16)
