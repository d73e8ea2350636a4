#include "cuda/elementwise/cuda_elements_args.h"
#include "cuda/elementwise/cuda_walk.cuh"
#include "cuda/elementwise/element_functions.cuh"

struct Numbers {
    float v[HN_QUAD];
};

__device__ __forceinline__ float number(float x)
{
    return x;
}
__device__ __forceinline__ float number(hn_f16 x)
{
    return __half2float(x);
}
__device__ __forceinline__ float number(hn_bf16 x)
{
    return __bfloat162float(x);
}
__device__ __forceinline__ float number(double x)
{
    return (float)x;
}
__device__ __forceinline__ float number(bool x)
{
    return x ? 1.0f : 0.0f;
}
__device__ __forceinline__ float number(uint8_t x)
{
    return (float)x;
}
__device__ __forceinline__ float number(int8_t x)
{
    return (float)x;
}
__device__ __forceinline__ float number(int32_t x)
{
    return (float)x;
}
__device__ __forceinline__ float number(int64_t x)
{
    return (float)x;
}

template <typename T> __device__ __forceinline__ void load(Numbers &to, uint64_t x, const HnPlaces &p)
{
    T v[HN_QUAD];
    hn_load_quad(v, hn_at<const T>(x), p);
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        to.v[j] = number(v[j]);
}

/* A byte of a bool that was made elsewhere may be any but 0. */
__device__ __forceinline__ void load_truth(Numbers &to, uint64_t x, const HnPlaces &p)
{
    load<uint8_t>(to, x, p);
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        to.v[j] = to.v[j] != 0 ? 1.0f : 0.0f;
}

__device__ __forceinline__ void load_typed(Numbers &to, int type, uint64_t x, const HnPlaces &p)
{
    switch (type) {
    case HN_CUDA_F32:
        return load<float>(to, x, p);
    case HN_CUDA_F16:
        return load<hn_f16>(to, x, p);
    case HN_CUDA_BF16:
        return load<hn_bf16>(to, x, p);
    case HN_CUDA_F64:
        return load<double>(to, x, p);
    case HN_CUDA_BOOL:
        return load_truth(to, x, p);
    case HN_CUDA_U8:
        return load<uint8_t>(to, x, p);
    case HN_CUDA_I8:
        return load<int8_t>(to, x, p);
    case HN_CUDA_I32:
        return load<int32_t>(to, x, p);
    default:
        return load<int64_t>(to, x, p);
    }
}

template <typename Table>
__device__ __forceinline__ void load_port(Numbers &to, const Table &t, int port, const uint64_t *x, int64_t i)
{
    const HnCudaPort p = t.port[port];
    load_typed(to, p.type, x[port], hn_places(p.kind, t.shape, t.axis, t.stride + p.stride, i));
}

template <typename T> __device__ __forceinline__ void store(uint64_t z, const Numbers &x, int64_t total, int64_t i)
{
    T v[HN_QUAD];
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        hn_store(&v[j], x.v[j]);
    hn_store_quad(hn_at<T>(z), v, total, i);
}

__device__ __forceinline__ void store_result(int type, uint64_t z, const Numbers &x, int64_t total, int64_t i)
{
    if (type == HN_CUDA_F32)
        return store<float>(z, x, total, i);
    if (type == HN_CUDA_F16)
        return store<hn_f16>(z, x, total, i);
    if (type == HN_CUDA_BF16)
        return store<hn_bf16>(z, x, total, i);
    uint8_t v[HN_QUAD];
#pragma unroll
    for (int j = 0; j < HN_QUAD; j++)
        v[j] = x.v[j] != 0;
    hn_store_quad(hn_at<uint8_t>(z), v, total, i);
}

/* Registers are in shared memory: [register][thread]. */
__device__ __forceinline__ float4 *place(float4 *registers, int r)
{
    return registers + r * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ Numbers operand(int arg, const Numbers &result, const Numbers &loaded, float4 *registers)
{
    if (arg == HN_CUDA_RESULT)
        return result;
    if (arg == HN_CUDA_LOADED)
        return loaded;
    const float4 v = *place(registers, arg);
    return Numbers{ { v.x, v.y, v.z, v.w } };
}

/* Functions of few instructions are there once for each of the four elements. */
constexpr bool is_short(int code)
{
    switch (code) {
    case HN_DO_abs:
    case HN_DO_clip:
    case HN_DO_hardsigmoid:
    case HN_DO_hardswish:
    case HN_DO_leakyrelu:
    case HN_DO_neg:
    case HN_DO_relu:
    case HN_DO_square:
    case HN_DO_negate:
    case HN_DO_truth:
        return true;
    default:
        return code >= HN_DO_add && code != HN_DO_div && code != HN_DO_pow && code != HN_DO_gelugrad;
    }
}

/* to = f(x, y), in a loop that turns the elements around, so that f is there once, and all of them are in registers. */
template <bool SHORT, typename F> __device__ __forceinline__ void each(Numbers &to, Numbers x, Numbers y, F f)
{
    if constexpr (SHORT) {
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            to.v[j] = f(x.v[j], y.v[j]);
    } else {
#pragma unroll 1
        for (int j = 0; j < HN_QUAD; j++) {
            const float one = f(x.v[0], y.v[0]), first = y.v[0];
#pragma unroll
            for (int k = 0; k < HN_QUAD - 1; k++) {
                x.v[k] = x.v[k + 1];
                y.v[k] = y.v[k + 1];
            }
            x.v[HN_QUAD - 1] = one;
            y.v[HN_QUAD - 1] = first;
        }
        to = x;
    }
}

/* The result of `c`, of operands x, y and w. */
__device__ __forceinline__ void compute(Numbers &to, const HnCudaDo &c, const Numbers &x, const Numbers &y,
                                        const Numbers &w)
{
    switch (c.code) {
#define ONE(name)                                                                                          \
    case HN_DO_##name:                                                                                     \
        each<is_short(HN_DO_##name)>(to, x, x, [&](float v, float) { return hn_do_##name(v, c.a, c.b); }); \
        break;
#define TWO(name)                                                                                    \
    case HN_DO_##name:                                                                               \
        each<is_short(HN_DO_##name)>(to, x, y, [](float p, float q) { return hn_do_##name(p, q); }); \
        break;
#define HN_FUNCTION(name) ONE(name)
#define HN_TRUTH_OF(name) ONE(name)
#define HN_PAIR(name) TWO(name)
#define HN_TRUTH_PAIR(name) TWO(name)
#include "run/element_codes.def"
#undef ONE
#undef TWO
    case HN_DO_choose:
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            to.v[j] = x.v[j] != 0 ? y.v[j] : w.v[j];
        break;
    default: /* HN_CUDA_LOADS */
        to = x;
    }
}

template <typename Table>
__device__ __forceinline__ void interpret(const Table &t, uint64_t z, const uint64_t *ports, float4 *registers)
{
    for (int64_t i = hn_first_quad(); i < t.shape.total; i += hn_quad_stride()) {
        Numbers result = {}, loaded = {};
        for (int k = 0; k < t.n; k++) {
            const HnCudaDo c = t.code[k];
            Numbers y = {}, w = {};
            if (c.port != HN_CUDA_NONE)
                load_port(loaded, t, c.port, ports, i);
            const Numbers x = operand(c.arg[0], result, loaded, registers);
            if (c.arg[1] != HN_CUDA_NONE)
                y = operand(c.arg[1], result, loaded, registers);
            if (c.arg[2] != HN_CUDA_NONE)
                w = operand(c.arg[2], result, loaded, registers);
            compute(result, c, x, y, w);
            if (c.keep != HN_CUDA_NONE)
                *place(registers, c.keep) = make_float4(result.v[0], result.v[1], result.v[2], result.v[3]);
        }
        store_result(t.type, z, result, t.shape.total, i);
    }
}

extern "C" __global__ void __launch_bounds__(256, 4) elements_few(const __grid_constant__ HnCudaFewArgs a)
{
    extern __shared__ float4 registers[];
    interpret(a.table, a.z, a.x, registers);
}

extern "C" __global__ void __launch_bounds__(256, 4) elements_many(const __grid_constant__ HnCudaManyArgs a)
{
    extern __shared__ float4 registers[];
    interpret(*hn_at<const HnCudaMany>(a.table), a.z, a.x, registers);
}
