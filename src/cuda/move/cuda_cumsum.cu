#include "cuda/core/device.cuh"
#include "cuda/move/cuda_cumsum_args.h"

/* What is accumulated in: double for floats, numbers that wrap for integers. */
template <typename T> struct Cum {
    typedef double Type;
    __device__ static double load(const T *p)
    {
        return hn_load(p);
    }
    __device__ static void store(T *p, double v)
    {
        hn_store(p, (float)v);
    }
};
template <typename T, typename A> struct CumPlain {
    typedef A Type;
    __device__ static A load(const T *p)
    {
        return (A)*p;
    }
    __device__ static void store(T *p, A v)
    {
        *p = (T)v;
    }
};
template <> struct Cum<double> : CumPlain<double, double> {
};
template <> struct Cum<int32_t> : CumPlain<int32_t, uint32_t> {
};
template <> struct Cum<int64_t> : CumPlain<int64_t, uint64_t> {
};

template <typename A> __device__ inline A with(const HnCudaCumArgs &a, A x, A y)
{
    return a.product ? x * y : x + y;
}

template <typename A> __device__ inline A warp_scan(const HnCudaCumArgs &a, A v)
{
    for (int d = 1; d < HN_WARP; d *= 2) {
        const A before = __shfl_up_sync(HN_ALL_LANES, v, d);
        v = (int)(threadIdx.x % HN_WARP) >= d ? with(a, before, v) : v;
    }
    return v;
}

/* A block for each row, some elements at a time. */
template <typename T> __device__ void cum_rows(const HnCudaCumArgs &a)
{
    typedef typename Cum<T>::Type A;
    __shared__ A room[HN_WARP];
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP, warps = blockDim.x / HN_WARP;
    const A none = a.product ? 1 : 0;
    for (int64_t row = blockIdx.x; row < a.outer * a.inner; row += gridDim.x) {
        const int64_t at = row / a.inner * a.n * a.inner + row % a.inner;
        const T *x = hn_at<const T>(a.x) + at;
        T *y = hn_at<T>(a.y) + at;
        A carry = none;
        for (int64_t k = 0; k < a.n; k += blockDim.x) {
            const int64_t i = k + threadIdx.x, to = (a.reverse ? a.n - 1 - i : i) * a.inner;
            A v = i < a.n ? Cum<T>::load(x + to) : none;
            v = warp_scan(a, v);
            if (lane == HN_WARP - 1)
                room[warp] = v;
            __syncthreads();
            const A all = warp_scan(a, lane < warps ? room[lane] : none);
            const A before = __shfl_sync(HN_ALL_LANES, all, max(warp - 1, 0));
            const A here = warp > 0 ? with(a, carry, before) : carry, left = __shfl_up_sync(HN_ALL_LANES, v, 1);
            carry = with(a, carry, __shfl_sync(HN_ALL_LANES, all, warps - 1));
            if (i < a.n)
                Cum<T>::store(y + to, !a.exclusive ? with(a, here, v) : lane > 0 ? with(a, here, left) : here);
            __syncthreads();
        }
    }
}

/* A thread for each row, whose elements lie `inner` apart. */
template <typename T> __device__ void cum_columns(const HnCudaCumArgs &a)
{
    typedef typename Cum<T>::Type A;
    for (int64_t row = hn_first(); row < a.outer * a.inner; row += hn_stride()) {
        const int64_t at = row / a.inner * a.n * a.inner + row % a.inner;
        A sum = a.product ? 1 : 0;
        for (int64_t k = 0; k < a.n; k++) {
            const int64_t i = at + (a.reverse ? a.n - 1 - k : k) * a.inner;
            const A next = with(a, sum, Cum<T>::load(hn_at<const T>(a.x) + i));
            Cum<T>::store(hn_at<T>(a.y) + i, a.exclusive ? sum : next);
            sum = next;
        }
    }
}

#define DEFINE(suffix, type)                                                                 \
    extern "C" __global__ void cum_rows_##suffix(const __grid_constant__ HnCudaCumArgs a)    \
    {                                                                                        \
        cum_rows<type>(a);                                                                   \
    }                                                                                        \
    extern "C" __global__ void cum_columns_##suffix(const __grid_constant__ HnCudaCumArgs a) \
    {                                                                                        \
        cum_columns<type>(a);                                                                \
    }
HN_EACH_FLOAT(DEFINE)
DEFINE(f64, double)
DEFINE(i32, int32_t)
DEFINE(i64, int64_t)
