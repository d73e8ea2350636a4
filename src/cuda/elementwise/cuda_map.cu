#include "cuda/core/device.cuh"
#include "cuda/elementwise/cuda_map_args.h"
#include "cuda/elementwise/element_functions.cuh"

template <typename T> struct alignas(HN_CUDA_MAP_BYTES) Pack {
    static constexpr int N = HN_CUDA_MAP_BYTES / sizeof(T);
    T v[N];
};

/* An operand. */
template <typename T> struct Source {
    const T *x;
    const HnCudaMapSource &how;
    T number;
    __device__ Source(uint64_t address, const HnCudaMapSource &h) : x(hn_at<const T>(address)), how(h), number(T(0.0f))
    {
        if (h.kind == HN_CUDA_MAP_NUMBER)
            number = *x;
    }
    __device__ __forceinline__ Pack<T> pack(int64_t i) const
    {
        T one = number;
        if (how.kind == HN_CUDA_MAP_DENSE)
            return reinterpret_cast<const Pack<T> *>(x)[i];
        if (how.kind != HN_CUDA_MAP_NUMBER) {
            uint32_t at = hn_divide((uint32_t)i, how.run);
            at -= hn_divide(at, how.n) * how.n.by;
            if (how.kind == HN_CUDA_MAP_ROW)
                return reinterpret_cast<const Pack<T> *>(x)[at];
            one = x[at];
        }
        Pack<T> p;
#pragma unroll
        for (int k = 0; k < Pack<T>::N; k++)
            p.v[k] = one;
        return p;
    }
    /* Behind the last whole pack, where there are no rows and channels. */
    __device__ __forceinline__ T at(int64_t i) const
    {
        return how.kind == HN_CUDA_MAP_NUMBER ? number : x[i];
    }
};

/* f(x, y) of all elements; TWO: f reads y. */
template <typename T, bool TWO, typename F> __device__ __forceinline__ void map(const HnCudaMapArgs &a, F f)
{
    const Source<T> x(a.x, a.from[0]), y(TWO ? a.y : a.x, a.from[TWO]);
    T *z = hn_at<T>(a.z);
    const int64_t packs = a.n / Pack<T>::N, width = (int64_t)blockDim.x * HN_CUDA_MAP_TIMES;
    for (int64_t i = blockIdx.x * width + threadIdx.x; i < packs; i += gridDim.x * width) {
        Pack<T> p[HN_CUDA_MAP_TIMES], q[HN_CUDA_MAP_TIMES];
#pragma unroll
        for (int t = 0; t < HN_CUDA_MAP_TIMES; t++)
            if (i + t * blockDim.x < packs) {
                p[t] = x.pack(i + t * blockDim.x);
                q[t] = TWO ? y.pack(i + t * blockDim.x) : p[t];
            }
#pragma unroll
        for (int t = 0; t < HN_CUDA_MAP_TIMES; t++)
            if (i + t * blockDim.x < packs) {
#pragma unroll
                for (int k = 0; k < Pack<T>::N; k++)
                    hn_store(&p[t].v[k], f(hn_load(&p[t].v[k]), hn_load(&q[t].v[k])));
                reinterpret_cast<Pack<T> *>(z)[i + t * blockDim.x] = p[t];
            }
    }
    const int64_t i = packs * Pack<T>::N + hn_first();
    if (i < a.n) {
        const T p = x.at(i), q = y.at(i);
        hn_store(z + i, f(hn_load(&p), hn_load(&q)));
    }
}

#define ONE(name)                                                                    \
    case HN_DO_##name:                                                               \
        map<T, false>(a, [&](float v, float) { return hn_do_##name(v, a.a, a.b); }); \
        break;
#define TWO(name)                                                             \
    case HN_DO_##name:                                                        \
        map<T, true>(a, [](float p, float q) { return hn_do_##name(p, q); }); \
        break;
#define MAPS(name, CASES)                                                              \
    template <typename T> __device__ __forceinline__ void name(const HnCudaMapArgs &a) \
    {                                                                                  \
        switch (a.code) {                                                              \
            CASES                                                                      \
        }                                                                              \
    }
MAPS(map_one, HN_CUDA_MAPS(ONE))
MAPS(map_two, HN_CUDA_MAPS_OF_TWO(TWO))
MAPS(map_long_one, HN_CUDA_LONG_MAPS(ONE))
MAPS(map_long_two, HN_CUDA_LONG_MAPS_OF_TWO(TWO))

#define KERNEL(name, blocks, suffix, type)                                    \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_MAP_THREADS, blocks) \
        name##_##suffix(const __grid_constant__ HnCudaMapArgs a)              \
    {                                                                         \
        name<type>(a);                                                        \
    }
#define DEFINE(suffix, type)              \
    KERNEL(map_one, 12, suffix, type)     \
    KERNEL(map_two, 10, suffix, type)     \
    KERNEL(map_long_one, 8, suffix, type) \
    KERNEL(map_long_two, 8, suffix, type)
HN_EACH_FLOAT(DEFINE)

/* --- between floats ----------------------------------------------------------------------------------------------- */

template <typename T> struct alignas(HN_CUDA_MAP_BYTES) Eight {
    T v[8];
};

template <typename From, typename To> __device__ __forceinline__ void turn(const HnCudaMapArgs &a)
{
    const From *x = hn_at<const From>(a.x);
    To *z = hn_at<To>(a.z);
    const int64_t packs = a.n / 8, width = (int64_t)blockDim.x * HN_CUDA_MAP_TIMES;
    for (int64_t i = blockIdx.x * width + threadIdx.x; i < packs; i += gridDim.x * width) {
        Eight<From> p[HN_CUDA_MAP_TIMES];
#pragma unroll
        for (int t = 0; t < HN_CUDA_MAP_TIMES; t++)
            if (i + t * blockDim.x < packs)
                p[t] = reinterpret_cast<const Eight<From> *>(x)[i + t * blockDim.x];
#pragma unroll
        for (int t = 0; t < HN_CUDA_MAP_TIMES; t++)
            if (i + t * blockDim.x < packs) {
                Eight<To> q;
#pragma unroll
                for (int k = 0; k < 8; k++)
                    hn_store(&q.v[k], hn_load(&p[t].v[k]));
                reinterpret_cast<Eight<To> *>(z)[i + t * blockDim.x] = q;
            }
    }
    const int64_t i = packs * 8 + hn_first();
    if (i < a.n)
        hn_store(z + i, hn_load(x + i));
}

#define DEFINE_TURN(from, to, From, To)                                  \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_MAP_THREADS, 8) \
        map_##from##_to_##to(const __grid_constant__ HnCudaMapArgs a)    \
    {                                                                    \
        turn<From, To>(a);                                               \
    }
DEFINE_TURN(f32, f16, float, hn_f16)
DEFINE_TURN(f32, bf16, float, hn_bf16)
DEFINE_TURN(f16, f32, hn_f16, float)
DEFINE_TURN(f16, bf16, hn_f16, hn_bf16)
DEFINE_TURN(bf16, f32, hn_bf16, float)
DEFINE_TURN(bf16, f16, hn_bf16, hn_f16)
