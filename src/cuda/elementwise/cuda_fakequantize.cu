#include "cuda/core/device.cuh"
#include "cuda/elementwise/cuda_fakequantize_args.h"

/* An element: x / scale, and what it is held within. NaN stays. */
struct Place {
    float v, lo, hi, scale;
    __device__ float held() const
    {
        const float least = v < lo ? lo : v;
        return rintf(least > hi ? hi : least);
    }
    __device__ bool inside() const
    {
        return v >= lo && v <= hi;
    }
};

__device__ inline int64_t scale_of(const HnCudaFakeArgs &a, int64_t i)
{
    if (a.one)
        return 0;
    const int64_t row = i / a.inner, b = row % a.size / a.block;
    return a.blocked ? (row / a.size * a.blocks + b) * a.inner + i % a.inner : b;
}

template <typename T> __device__ float element(uint64_t x, int64_t i)
{
    return hn_load(hn_at<const T>(x) + i);
}

template <typename T> __device__ Place place_of(const HnCudaFakeArgs &a, int64_t i, int64_t s)
{
    const float zero = a.zero != 0 ? element<T>(a.zero, s) : 0, scale = element<T>(a.scale, s);
    return Place{ element<T>(a.x, i) / scale, a.lowest - zero, a.highest - zero, scale };
}

template <typename T> __device__ void forward(const HnCudaFakeArgs &a)
{
    for (int64_t i = hn_first(); i < a.n; i += hn_stride()) {
        const Place p = place_of<T>(a, i, scale_of(a, i));
        hn_store(hn_at<T>(a.y) + i, p.held() * p.scale);
    }
}

/* The gradient of element i, written; what the scale's is of it is handed back. */
template <typename T> __device__ float back(const HnCudaFakeArgs &a, int64_t i, int64_t s)
{
    const Place p = place_of<T>(a, i, s);
    const float d = element<T>(a.dy, i);
    hn_store(hn_at<T>(a.y) + i, p.inside() ? d : 0);
    return d * (p.held() - (p.inside() ? p.v : 0));
}

/* Elements of a scale are rows: [rows][row], rows `apart`, the first one at `start`. */
struct Rows {
    int64_t start, rows, row, apart;
};

__device__ inline Rows rows_of(const HnCudaFakeArgs &a, int64_t s)
{
    const int64_t outer = a.n / (a.size * a.inner);
    if (a.one)
        return Rows{ 0, 1, a.n, 0 };
    if (!a.blocked) /* a block of one index of the axis */
        return Rows{ s * a.inner, outer, a.inner, a.size * a.inner };
    const int64_t lane = s % a.inner, b = s / a.inner % a.blocks, o = s / a.inner / a.blocks;
    const int64_t first = b * a.block, left = a.size - first;
    return Rows{ (o * a.size + first) * a.inner + lane, left < a.block ? left : a.block, 1, a.inner };
}

/* A block of threads for each part of each scale's elements. */
template <typename T> __device__ void back_block(const HnCudaFakeArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int64_t u = blockIdx.x; u < a.scales * a.n_parts; u += gridDim.x) {
        const int64_t s = u % a.scales, part = u / a.scales;
        const Rows r = rows_of(a, s);
        const int64_t all = r.rows * r.row, from = all * part / a.n_parts, to = all * (part + 1) / a.n_parts;
        float sum = 0;
        for (int64_t k = from + threadIdx.x; k < to; k += blockDim.x)
            sum += back<T>(a, r.start + k / r.row * r.apart + k % r.row, s);
        sum = hn_block_reduce<HnSum>(sum, room);
        if (threadIdx.x == 0)
            hn_at<float>(a.parts)[part * a.scales + s] = sum;
    }
}

/* A thread for each part of each scale's elements, where elements of scales that follow each other do, too. */
template <typename T> __device__ void back_thread(const HnCudaFakeArgs &a)
{
    for (int64_t u = hn_first(); u < a.scales * a.n_parts; u += hn_stride()) {
        const int64_t s = u % a.scales, part = u / a.scales;
        const Rows r = rows_of(a, s);
        const int64_t all = r.rows * r.row, from = all * part / a.n_parts, to = all * (part + 1) / a.n_parts;
        float sum = 0;
        for (int64_t k = from; k < to; k++)
            sum += back<T>(a, r.start + k / r.row * r.apart + k % r.row, s);
        hn_at<float>(a.parts)[part * a.scales + s] = sum;
    }
}

template <typename T> __device__ void join(const HnCudaFakeSumArgs &a)
{
    for (int64_t s = hn_first(); s < a.scales; s += hn_stride()) {
        double sum = 0;
        for (int64_t p = 0; p < a.n_parts; p++)
            sum += (double)hn_at<const float>(a.parts)[p * a.scales + s];
        const double zero = a.zero != 0 ? (double)element<T>(a.zero, s) : 0;
        const double levels = fmax(fmax(a.highest - zero, zero - a.lowest), 1.0);
        hn_store(hn_at<T>(a.ds) + s, (float)(a.gain ? sum * (1.0 / sqrt(fmax(a.elements, 1.0) * levels)) : sum));
    }
}

#define DEFINE_ONE(name, Args, function)                            \
    extern "C" __global__ void name(const __grid_constant__ Args a) \
    {                                                               \
        function(a);                                                \
    }
#define DEFINE(suffix, type)                                                 \
    DEFINE_ONE(fake_##suffix, HnCudaFakeArgs, forward<type>)                 \
    DEFINE_ONE(fake_back_block_##suffix, HnCudaFakeArgs, back_block<type>)   \
    DEFINE_ONE(fake_back_thread_##suffix, HnCudaFakeArgs, back_thread<type>) \
    DEFINE_ONE(fake_join_##suffix, HnCudaFakeSumArgs, join<type>)
HN_EACH_FLOAT(DEFINE)
