#include "cuda/elementwise/cuda_cast_args.h"
#include "cuda/elementwise/cuda_walk.cuh"
#include "cuda/elementwise/small_floats.cuh"

/* Four numbers on their way, exactly as they were: f32 for what is narrower, too. */
enum Sort { FLOAT, DOUBLE, WHOLE, NATURAL /* above all those of int64_t */ };
struct Numbers {
    Sort sort;
    float f[HN_QUAD];
    double d[HN_QUAD];
    int64_t w[HN_QUAD];
};

template <typename T> __device__ __forceinline__ void load(T (&v)[HN_QUAD], const HnCudaCastArgs &a, int64_t i)
{
    HnPlaces p;
    p.n = a.n - i < HN_QUAD ? (int)(a.n - i) : HN_QUAD;
    p.run = true;
    p.number = false;
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        p.at[j] = i + j;
    hn_load_quad(v, hn_at<const T>(a.x), p);
}

template <typename T, typename F>
__device__ __forceinline__ void load_floats(Numbers &to, const HnCudaCastArgs &a, int64_t i, F f)
{
    T v[HN_QUAD];
    load(v, a, i);
    to.sort = FLOAT;
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        to.f[j] = f(v[j]);
}

template <typename T> __device__ __forceinline__ void load_whole(Numbers &to, const HnCudaCastArgs &a, int64_t i)
{
    T v[HN_QUAD];
    load(v, a, i);
    to.sort = sizeof(T) == 8 && T(-1) > T(0) ? NATURAL : WHOLE;
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        to.w[j] = (int64_t)v[j];
}

/* Codes of 4 or 2 bits, low bits first. */
template <int BITS> __device__ __forceinline__ void load_codes(Numbers &to, const HnCudaCastArgs &a, int64_t i)
{
    constexpr int PER = 8 / BITS;
    const uint8_t *x = hn_at<const uint8_t>(a.x);
    to.sort = WHOLE;
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        to.w[j] = i + j < a.n ? x[(i + j) / PER] >> j % PER * BITS & ((1 << BITS) - 1) : 0;
}

template <int BITS> __device__ __forceinline__ void load_signed_codes(Numbers &to, const HnCudaCastArgs &a, int64_t i)
{
    load_codes<BITS>(to, a, i);
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        to.w[j] = (to.w[j] ^ (1 << (BITS - 1))) - (1 << (BITS - 1));
}

__device__ __forceinline__ void load_numbers(Numbers &to, const HnCudaCastArgs &a, int64_t i)
{
    switch (a.from) {
    case HN_CUDA_FROM_F32:
        return load_floats<float>(to, a, i, [](float x) { return x; });
    case HN_CUDA_FROM_F16:
        return load_floats<hn_f16>(to, a, i, [](hn_f16 x) { return __half2float(x); });
    case HN_CUDA_FROM_BF16:
        return load_floats<hn_bf16>(to, a, i, [](hn_bf16 x) { return __bfloat162float(x); });
    case HN_CUDA_FROM_F8E4M3FN:
        return load_floats<uint8_t>(to, a, i, [](uint8_t x) { return hn_small_to_f32(hn_e4m3fn, x); });
    case HN_CUDA_FROM_F8E4M3FNUZ:
        return load_floats<uint8_t>(to, a, i, [](uint8_t x) { return hn_small_to_f32(hn_e4m3fnuz, x); });
    case HN_CUDA_FROM_F8E5M2:
        return load_floats<uint8_t>(to, a, i, [](uint8_t x) { return hn_small_to_f32(hn_e5m2, x); });
    case HN_CUDA_FROM_F8E5M2FNUZ:
        return load_floats<uint8_t>(to, a, i, [](uint8_t x) { return hn_small_to_f32(hn_e5m2fnuz, x); });
    case HN_CUDA_FROM_F8E8M0:
        return load_floats<uint8_t>(to, a, i, [](uint8_t x) { return hn_e8m0_to_f32(x); });
    case HN_CUDA_FROM_F4E2M1:
        load_codes<4>(to, a, i);
        to.sort = FLOAT;
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            to.f[j] = hn_small_to_f32(hn_e2m1, (uint32_t)to.w[j]);
        return;
    case HN_CUDA_FROM_F64:
        load(to.d, a, i);
        to.sort = DOUBLE;
        return;
    case HN_CUDA_FROM_U8:
        return load_whole<uint8_t>(to, a, i);
    case HN_CUDA_FROM_I8:
        return load_whole<int8_t>(to, a, i);
    case HN_CUDA_FROM_U16:
        return load_whole<uint16_t>(to, a, i);
    case HN_CUDA_FROM_I16:
        return load_whole<int16_t>(to, a, i);
    case HN_CUDA_FROM_U32:
        return load_whole<uint32_t>(to, a, i);
    case HN_CUDA_FROM_I32:
        return load_whole<int32_t>(to, a, i);
    case HN_CUDA_FROM_U64:
        return load_whole<uint64_t>(to, a, i);
    case HN_CUDA_FROM_I64:
        return load_whole<int64_t>(to, a, i);
    case HN_CUDA_FROM_BOOL: /* a file's bool may hold any byte */
        load_whole<uint8_t>(to, a, i);
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            to.w[j] = to.w[j] != 0;
        return;
    case HN_CUDA_FROM_U4:
        return load_codes<4>(to, a, i);
    case HN_CUDA_FROM_I4:
        return load_signed_codes<4>(to, a, i);
    case HN_CUDA_FROM_U2:
        return load_codes<2>(to, a, i);
    default: /* HN_CUDA_FROM_I2 */
        return load_signed_codes<2>(to, a, i);
    }
}

/* An integer's bits: range of int64_t and uint64_t together, saturating; NaN is 0 (hn_wrap_f64). */
__device__ __forceinline__ uint64_t wrapped(double v)
{
    if (v >= 0x1p63)
        return v < 0x1p64 ? __double2ull_rz(v) : UINT64_MAX;
    return v != v ? 0 : (uint64_t)__double2ll_rz(v); /* saturates below */
}

/* What a number becomes in memory: of a float, a double, and an integer that is perhaps `natural`. */
struct ToF32 {
    typedef float T;
    __device__ static T of(float x, const HnCudaCastArgs &)
    {
        return x;
    }
    __device__ static T of(double x, const HnCudaCastArgs &)
    {
        return (float)x;
    }
    __device__ static T of(int64_t x, bool natural, const HnCudaCastArgs &)
    {
        return natural ? (float)(uint64_t)x : (float)x;
    }
};

__device__ __forceinline__ double wide(int64_t x, bool natural)
{
    return natural ? (double)(uint64_t)x : (double)x;
}

struct ToF64 {
    typedef double T;
    template <typename S> __device__ static T of(S x, const HnCudaCastArgs &)
    {
        return (double)x;
    }
    __device__ static T of(int64_t x, bool natural, const HnCudaCastArgs &)
    {
        return wide(x, natural);
    }
};
struct ToF16 {
    typedef hn_f16 T;
    __device__ static T of(float x, const HnCudaCastArgs &)
    {
        return __float2half_rn(x);
    }
    __device__ static T of(double x, const HnCudaCastArgs &)
    {
        return __double2half(x);
    }
    __device__ static T of(int64_t x, bool natural, const HnCudaCastArgs &)
    {
        return __double2half(wide(x, natural));
    }
};
struct ToBf16 {
    typedef hn_bf16 T;
    __device__ static T of(float x, const HnCudaCastArgs &)
    {
        return __float2bfloat16_rn(x);
    }
    __device__ static T of(double x, const HnCudaCastArgs &)
    {
        return __double2bfloat16(x);
    }
    __device__ static T of(int64_t x, bool natural, const HnCudaCastArgs &)
    {
        return __double2bfloat16(wide(x, natural));
    }
};
template <typename INTEGER> struct ToInteger { /* wraps */
    typedef INTEGER T;
    template <typename S> __device__ static T of(S x, const HnCudaCastArgs &)
    {
        return (T)wrapped((double)x);
    }
    __device__ static T of(int64_t x, bool, const HnCudaCastArgs &)
    {
        return (T)x;
    }
};
struct ToI32 { /* takes the nearest end */
    typedef int32_t T;
    __device__ static T of(float x, const HnCudaCastArgs &)
    {
        return __float2int_rz(x);
    }
    __device__ static T of(double x, const HnCudaCastArgs &)
    {
        return x != x ? 0 : __double2int_rz(x);
    }
    __device__ static T of(int64_t x, bool, const HnCudaCastArgs &)
    {
        return (T)x;
    }
};
struct ToI64 {
    typedef int64_t T;
    template <typename S> __device__ static T of(S x, const HnCudaCastArgs &)
    {
        return x != x ? 0 : __double2ll_rz((double)x);
    }
    __device__ static T of(int64_t x, bool, const HnCudaCastArgs &)
    {
        return x;
    }
};
struct ToBool {
    typedef uint8_t T;
    template <typename S> __device__ static T of(S x, const HnCudaCastArgs &)
    {
        return x != 0;
    }
    __device__ static T of(int64_t x, bool, const HnCudaCastArgs &)
    {
        return x != 0;
    }
};
template <int WHICH> struct ToSmall {
    typedef uint8_t T;
    template <typename S> __device__ static T of(S x, const HnCudaCastArgs &a)
    {
        constexpr HnSmall formats[] = { hn_e4m3fn, hn_e4m3fnuz, hn_e5m2, hn_e5m2fnuz, hn_e2m1 };
        constexpr HnSmall f = formats[WHICH];
        return hn_small_from_f64(f, (double)x, a.saturate != 0);
    }
    __device__ static T of(int64_t x, bool natural, const HnCudaCastArgs &a)
    {
        return of(wide(x, natural), a);
    }
};
struct ToE8m0 {
    typedef uint8_t T;
    template <typename S> __device__ static T of(S x, const HnCudaCastArgs &a)
    {
        return hn_e8m0_from_f64((double)x, a.round, a.saturate != 0);
    }
    __device__ static T of(int64_t x, bool natural, const HnCudaCastArgs &a)
    {
        return of(wide(x, natural), a);
    }
};

template <typename To>
__device__ __forceinline__ void convert(typename To::T (&y)[HN_QUAD], const HnCudaCastArgs &a, int64_t i)
{
    Numbers x = {};
    load_numbers(x, a, i);
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        if (x.sort == FLOAT)
            y[j] = To::of(x.f[j], a);
        else if (x.sort == DOUBLE)
            y[j] = To::of(x.d[j], a);
        else
            y[j] = To::of(x.w[j], x.sort == NATURAL, a);
}

template <typename To> __device__ void cast(const HnCudaCastArgs &a)
{
    for (int64_t i = hn_first_quad(); i < a.n; i += hn_quad_stride()) {
        typename To::T y[HN_QUAD];
        convert<To>(y, a, i);
        hn_store_quad(hn_at<typename To::T>(a.y), y, a.n, i);
    }
}

/* Codes of 4 or 2 bits, low bits first; what is left of the last byte is 0. */
template <typename To, int BITS> __device__ void cast_codes(const HnCudaCastArgs &a)
{
    constexpr int PER = 8 / BITS;
    uint8_t *to = hn_at<uint8_t>(a.y);
    for (int64_t i = hn_first_quad(); i < a.n; i += hn_quad_stride()) {
        typename To::T y[HN_QUAD];
        convert<To>(y, a, i);
        uint32_t codes = 0;
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            if (i + j < a.n)
                codes |= ((uint32_t)y[j] & ((1u << BITS) - 1)) << j * BITS;
#pragma unroll
        for (int j = 0; j < HN_QUAD; j += PER)
            if (i + j < a.n)
                to[(i + j) / PER] = (uint8_t)(codes >> j * BITS);
    }
}

#define DEFINE(name, ...)                                                     \
    extern "C" __global__ void name(const __grid_constant__ HnCudaCastArgs a) \
    {                                                                         \
        __VA_ARGS__(a);                                                       \
    }
DEFINE(cast_f32, cast<ToF32>)
DEFINE(cast_f64, cast<ToF64>)
DEFINE(cast_f16, cast<ToF16>)
DEFINE(cast_bf16, cast<ToBf16>)
DEFINE(cast_i8, cast<ToInteger<int8_t>>)
DEFINE(cast_u8, cast<ToInteger<uint8_t>>)
DEFINE(cast_i16, cast<ToInteger<int16_t>>)
DEFINE(cast_u16, cast<ToInteger<uint16_t>>)
DEFINE(cast_i32, cast<ToI32>)
DEFINE(cast_u32, cast<ToInteger<uint32_t>>)
DEFINE(cast_i64, cast<ToI64>)
DEFINE(cast_u64, cast<ToInteger<uint64_t>>)
DEFINE(cast_bool, cast<ToBool>)
DEFINE(cast_f8e4m3fn, cast<ToSmall<0>>)
DEFINE(cast_f8e4m3fnuz, cast<ToSmall<1>>)
DEFINE(cast_f8e5m2, cast<ToSmall<2>>)
DEFINE(cast_f8e5m2fnuz, cast<ToSmall<3>>)
DEFINE(cast_f8e8m0, cast<ToE8m0>)
DEFINE(cast_f4e2m1, cast_codes<ToSmall<4>, 4>)
DEFINE(cast_u4, cast_codes<ToInteger<uint8_t>, 4>)
DEFINE(cast_i4, cast_codes<ToInteger<uint8_t>, 4>)
DEFINE(cast_u2, cast_codes<ToInteger<uint8_t>, 2>)
DEFINE(cast_i2, cast_codes<ToInteger<uint8_t>, 2>)
