#include "cuda/elementwise/cuda_elements_args.h"
#include "cuda/elementwise/cuda_walk.cuh"
#include "cuda/elementwise/element_functions.cuh"

/* Numbers of a thread: quads that are a block's width apart. */
#define QUADS HN_CUDA_QUADS
#define EACH (QUADS * HN_QUAD)

struct Numbers {
    float v[EACH];
};

/* Where they are in the result. */
struct Spot {
    int64_t i, apart; /* of the first quad; from one to the next */
    bool whole;       /* all of them are within the result */
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

/* An operand, in its own elements. */
struct Operand {
    uint64_t x;
    int kind;
    const int64_t *stride;
};

template <typename T, typename Table>
__device__ __forceinline__ void load(Numbers &to, const Table &t, const Operand &o, const Spot &s)
{
    const T *x = hn_at<const T>(o.x);
    if (o.kind == HN_CUDA_NUMBER) {
        const float one = number(*x);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            to.v[j] = one;
    } else if (o.kind == HN_CUDA_DENSE && s.whole && hn_aligned(x)) {
        HnQuad<T> quad[QUADS]; /* all of them on their way at once */
#pragma unroll
        for (int q = 0; q < QUADS; q++)
            quad[q] = *reinterpret_cast<const HnQuad<T> *>(x + s.i + q * s.apart);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            to.v[j] = number(quad[j / HN_QUAD].v[j % HN_QUAD]);
    } else {
        T v[QUADS][HN_QUAD];
#pragma unroll
        for (int q = 0; q < QUADS; q++)
            hn_load_quad(v[q], x, hn_places(o.kind, t.shape, t.axis, o.stride, s.i + q * s.apart));
#pragma unroll
        for (int j = 0; j < EACH; j++)
            to.v[j] = number(v[j / HN_QUAD][j % HN_QUAD]);
    }
}

/* A byte of a bool that was made elsewhere may be any but 0. */
template <typename Table>
__device__ __forceinline__ void load_truth(Numbers &to, const Table &t, const Operand &o, const Spot &s)
{
    load<uint8_t>(to, t, o, s);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        to.v[j] = to.v[j] != 0 ? 1.0f : 0.0f;
}

template <typename Table>
__device__ __forceinline__ void load_port(Numbers &to, const Table &t, int port, const uint64_t *x, const Spot &s)
{
    const HnCudaPort p = t.port[port];
    const Operand o = { x[port], p.kind, t.stride + p.stride };
    switch (p.type) {
    case HN_CUDA_F32:
        return load<float>(to, t, o, s);
    case HN_CUDA_F16:
        return load<hn_f16>(to, t, o, s);
    case HN_CUDA_BF16:
        return load<hn_bf16>(to, t, o, s);
    case HN_CUDA_F64:
        return load<double>(to, t, o, s);
    case HN_CUDA_BOOL:
        return load_truth(to, t, o, s);
    case HN_CUDA_U8:
        return load<uint8_t>(to, t, o, s);
    case HN_CUDA_I8:
        return load<int8_t>(to, t, o, s);
    case HN_CUDA_I32:
        return load<int32_t>(to, t, o, s);
    default:
        return load<int64_t>(to, t, o, s);
    }
}

template <typename T> __device__ __forceinline__ T rounded(float x)
{
    T v;
    hn_store(&v, x);
    return v;
}
template <> __device__ __forceinline__ uint8_t rounded(float x) /* a truth value */
{
    return x != 0;
}

template <typename T>
__device__ __forceinline__ void store(uint64_t address, const Numbers &x, int64_t total, const Spot &s)
{
    T *z = hn_at<T>(address);
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        T v[HN_QUAD];
#pragma unroll
        for (int j = 0; j < HN_QUAD; j++)
            v[j] = rounded<T>(x.v[q * HN_QUAD + j]);
        hn_store_quad(z, v, total, s.i + q * s.apart);
    }
}

__device__ __forceinline__ void store_result(int type, uint64_t z, const Numbers &x, int64_t total, const Spot &s)
{
    if (type == HN_CUDA_F32)
        return store<float>(z, x, total, s);
    if (type == HN_CUDA_F16)
        return store<hn_f16>(z, x, total, s);
    if (type == HN_CUDA_BF16)
        return store<hn_bf16>(z, x, total, s);
    store<uint8_t>(z, x, total, s);
}

/* Registers are in shared memory: [register][quad][thread]. */
__device__ __forceinline__ float4 *place(float4 *registers, int r, int quad)
{
    return registers + (r * QUADS + quad) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ void keep(float4 *registers, int r, const Numbers &x)
{
#pragma unroll
    for (int q = 0; q < QUADS; q++)
        *place(registers, r, q) =
            make_float4(x.v[q * HN_QUAD], x.v[q * HN_QUAD + 1], x.v[q * HN_QUAD + 2], x.v[q * HN_QUAD + 3]);
}

__device__ __forceinline__ Numbers operand(int arg, const Numbers &result, const Numbers &loaded, float4 *registers)
{
    if (arg == HN_CUDA_RESULT)
        return result;
    if (arg == HN_CUDA_LOADED)
        return loaded;
    Numbers x;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const float4 v = *place(registers, arg, q);
        x.v[q * HN_QUAD] = v.x;
        x.v[q * HN_QUAD + 1] = v.y;
        x.v[q * HN_QUAD + 2] = v.z;
        x.v[q * HN_QUAD + 3] = v.w;
    }
    return x;
}

/* Functions of many instructions are there once for all elements. */
constexpr bool is_long(int code)
{
    switch (code) {
    case HN_DO_acos:
    case HN_DO_acosh:
    case HN_DO_asin:
    case HN_DO_asinh:
    case HN_DO_atan:
    case HN_DO_atanh:
    case HN_DO_celu:
    case HN_DO_cosh:
    case HN_DO_elu:
    case HN_DO_gelu:
    case HN_DO_gelugrad:
    case HN_DO_gelugrad_tanh:
    case HN_DO_pow:
    case HN_DO_power:
    case HN_DO_selu:
    case HN_DO_sine:
    case HN_DO_sinh:
    case HN_DO_softplus:
    case HN_DO_tan:
        return true;
    default:
        return false;
    }
}

/* to = f(x), in a loop that turns the elements around, so that f is there once, and all of them are in registers. */
template <bool LONG, typename F> __device__ __forceinline__ void each(Numbers &to, Numbers x, F f)
{
    if constexpr (!LONG) {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            to.v[j] = f(x.v[j]);
    } else {
#pragma unroll 1
        for (int j = 0; j < EACH; j++) {
            const float one = f(x.v[0]);
#pragma unroll
            for (int k = 0; k < EACH - 1; k++)
                x.v[k] = x.v[k + 1];
            x.v[EACH - 1] = one;
        }
        to = x;
    }
}

template <bool LONG, typename F> __device__ __forceinline__ void each(Numbers &to, Numbers x, Numbers y, F f)
{
    if constexpr (!LONG) {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            to.v[j] = f(x.v[j], y.v[j]);
    } else {
#pragma unroll 1
        for (int j = 0; j < EACH; j++) {
            const float one = f(x.v[0], y.v[0]), first = y.v[0];
#pragma unroll
            for (int k = 0; k < EACH - 1; k++) {
                x.v[k] = x.v[k + 1];
                y.v[k] = y.v[k + 1];
            }
            x.v[EACH - 1] = one;
            y.v[EACH - 1] = first;
        }
        to = x;
    }
}

/* The result of `c`, of operands x, y and w. */
__device__ __forceinline__ void compute(Numbers &to, const HnCudaDo &c, const Numbers &x, const Numbers &y,
                                        const Numbers &w)
{
    switch (c.code) {
#define ONE(name)                                                                               \
    case HN_DO_##name:                                                                          \
        each<is_long(HN_DO_##name)>(to, x, [&](float v) { return hn_do_##name(v, c.a, c.b); }); \
        break;
#define TWO(name)                                                                                   \
    case HN_DO_##name:                                                                              \
        each<is_long(HN_DO_##name)>(to, x, y, [](float p, float q) { return hn_do_##name(p, q); }); \
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
        for (int j = 0; j < EACH; j++)
            to.v[j] = x.v[j] != 0 ? y.v[j] : w.v[j];
        break;
    default: /* HN_CUDA_LOADS */
        to = x;
    }
}

__device__ __forceinline__ HnCudaDo fetch(const HnCudaDo &from)
{
    const uint4 w = reinterpret_cast<const uint4 &>(from);
    return HnCudaDo{ (uint8_t)w.x,
                     (uint8_t)(w.x >> 8),
                     (uint8_t)(w.x >> 16),
                     { (uint8_t)(w.x >> 24), (uint8_t)w.y, (uint8_t)(w.y >> 8) },
                     {},
                     __uint_as_float(w.z),
                     __uint_as_float(w.w) };
}

template <typename Table>
__device__ __forceinline__ void interpret(const Table &t, uint64_t z, const uint64_t *ports, float4 *registers)
{
    const int64_t total = t.shape.total, apart = (int64_t)blockDim.x * HN_QUAD, step = apart * QUADS;
    for (int64_t i = blockIdx.x * step + threadIdx.x * HN_QUAD; i < total; i += gridDim.x * step) {
        const Spot s = { i, apart, i + (QUADS - 1) * apart + HN_QUAD <= total };
        Numbers result = {}, loaded = {};
        for (int k = 0; k < t.n; k++) {
            const HnCudaDo c = fetch(t.code[k]);
            Numbers y = {}, w = {};
            if (c.port != HN_CUDA_NONE)
                load_port(loaded, t, c.port, ports, s);
            const Numbers x = operand(c.arg[0], result, loaded, registers);
            if (c.arg[1] != HN_CUDA_NONE)
                y = operand(c.arg[1], result, loaded, registers);
            if (c.arg[2] != HN_CUDA_NONE)
                w = operand(c.arg[2], result, loaded, registers);
            compute(result, c, x, y, w);
            if (c.keep != HN_CUDA_NONE)
                keep(registers, c.keep, result);
        }
        store_result(t.type, z, result, total, s);
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
