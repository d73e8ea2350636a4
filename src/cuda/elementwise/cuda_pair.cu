#include "cuda/elementwise/cuda_pair_args.h"
#include "cuda/elementwise/cuda_walk.cuh"

/* Overflow wraps. Division cuts off towards zero; by zero it gives 0, and so does what is left over; the negative of
 * the least number is itself. */
template <typename T> __device__ __forceinline__ T divide(T p, T q)
{
    if (T(-1) < T(0) && q == T(-1))
        return (T)(0 - (uint64_t)p);
    return q == 0 ? T(0) : (T)(p / q);
}
template <typename T> __device__ __forceinline__ T remainder(T p, T q)
{
    return q == 0 || (T(-1) < T(0) && q == T(-1)) ? T(0) : (T)(p % q);
}
template <typename T> __device__ __forceinline__ T modulo(T p, T q)
{
    const T r = remainder(p, q);
    return T(-1) < T(0) && r != 0 && (r < T(0)) != (q < T(0)) ? (T)(r + q) : r;
}

template <typename T> __device__ __forceinline__ T whole(int f, T p, T q)
{
    switch (f) {
    case HN_CUDA_ADD:
        return (T)((uint64_t)p + (uint64_t)q);
    case HN_CUDA_SUB:
        return (T)((uint64_t)p - (uint64_t)q);
    case HN_CUDA_MUL:
        return (T)((uint64_t)p * (uint64_t)q);
    case HN_CUDA_DIV:
        return divide(p, q);
    case HN_CUDA_MOD:
        return modulo(p, q);
    case HN_CUDA_REM:
        return remainder(p, q);
    case HN_CUDA_MAX:
        return p > q ? p : q;
    case HN_CUDA_MIN:
        return p < q ? p : q;
    case HN_CUDA_BITS_AND:
        return p & q;
    case HN_CUDA_BITS_OR:
        return p | q;
    default:
        return p ^ q;
    }
}

__device__ __forceinline__ double number(int f, double p, double q)
{
    switch (f) {
    case HN_CUDA_ADD:
        return p + q;
    case HN_CUDA_SUB:
        return p - q;
    case HN_CUDA_MUL:
        return p * q;
    case HN_CUDA_DIV:
        return p / q;
    case HN_CUDA_MAX:
        return p > q || p != p ? p : q;
    case HN_CUDA_MIN:
        return p < q || p != p ? p : q;
    default:
        return fmod(p, q);
    }
}

template <typename T> __device__ __forceinline__ bool compare(int f, T p, T q)
{
    switch (f) {
    case HN_CUDA_EQUAL:
        return p == q;
    case HN_CUDA_GREATER:
        return p > q;
    case HN_CUDA_GREATEROREQUAL:
        return p >= q;
    case HN_CUDA_LESS:
        return p < q;
    default:
        return p <= q;
    }
}

template <typename T> __device__ __forceinline__ T calculate(int f, T p, T q)
{
    return whole(f, p, q);
}
template <> __device__ __forceinline__ double calculate(int f, double p, double q)
{
    return number(f, p, q);
}

template <typename T> __device__ void pairs(const HnCudaPairArgs &a)
{
    const int f = (int)a.f;
    for (int64_t i = hn_first_quad(); i < a.walk.shape.total; i += hn_quad_stride()) {
        T x[HN_QUAD], y[HN_QUAD];
        uint8_t truth[HN_QUAD];
        hn_load_quad(x, a.x, a.walk, a.seen[0], i);
        hn_load_quad(y, a.y, a.walk, a.seen[1], i);
        if (f < HN_CUDA_EQUAL) {
#pragma unroll
            for (int j = 0; j < HN_QUAD; j++)
                x[j] = calculate(f, x[j], y[j]);
            hn_store_quad(hn_at<T>(a.z), x, a.walk.shape.total, i);
            continue;
        }
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            truth[j] = compare(f, x[j], y[j]);
        hn_store_quad(hn_at<uint8_t>(a.z), truth, a.walk.shape.total, i);
    }
}

#define DEFINE(suffix, type)                                                           \
    extern "C" __global__ void pair_##suffix(const __grid_constant__ HnCudaPairArgs a) \
    {                                                                                  \
        pairs<type>(a);                                                                \
    }
DEFINE(i8, int8_t)
DEFINE(u8, uint8_t)
DEFINE(i16, int16_t)
DEFINE(u16, uint16_t)
DEFINE(i32, int32_t)
DEFINE(u32, uint32_t)
DEFINE(i64, int64_t)
DEFINE(u64, uint64_t)
DEFINE(f64, double)

/* What is left over from a division of floats, with the sign of the dividend. */
template <typename T> __device__ void remainders(const HnCudaPairArgs &a)
{
    for (int64_t i = hn_first_quad(); i < a.walk.shape.total; i += hn_quad_stride()) {
        T x[HN_QUAD], y[HN_QUAD];
        hn_load_quad(x, a.x, a.walk, a.seen[0], i);
        hn_load_quad(y, a.y, a.walk, a.seen[1], i);
        for (int j = 0; j < HN_QUAD; j++)
            hn_store(&x[j], fmodf(hn_load(&x[j]), hn_load(&y[j])));
        hn_store_quad(hn_at<T>(a.z), x, a.walk.shape.total, i);
    }
}

#define DEFINE_REMAINDER(suffix, type)                                                 \
    extern "C" __global__ void pair_##suffix(const __grid_constant__ HnCudaPairArgs a) \
    {                                                                                  \
        remainders<type>(a);                                                           \
    }
HN_EACH_FLOAT(DEFINE_REMAINDER)
