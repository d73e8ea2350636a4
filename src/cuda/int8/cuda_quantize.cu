#include "cuda/core/device.cuh"
#include "cuda/int8/cuda_quantize_args.h"

/* --- which scale belongs to an element ---------------------------------------------------------------------------- */

template <typename Index> __device__ inline int64_t scale_index(const HnCudaQuantizeArgs &a, Index i)
{
    const Index inner = (Index)a.inner, size = (Index)a.size, row = i / inner, k = row % size;
    if (a.block == 0)
        return (int64_t)k;
    return ((int64_t)(row / size) * a.scales + (int64_t)(k / (Index)a.block)) * a.inner + (int64_t)(i % inner);
}

__device__ inline int64_t scale_of(const HnCudaQuantizeArgs &a, int64_t i)
{
    if (a.scales == 1 && a.block == 0)
        return 0;
    return a.n <= 0x7fffffff ? scale_index<uint32_t>(a, (uint32_t)i) : scale_index<int64_t>(a, i);
}

__device__ inline float real_at(uint64_t address, int32_t type, int64_t i)
{
    if (type == HN_CUDA_REAL_F32)
        return hn_at<const float>(address)[i];
    return type == HN_CUDA_REAL_F16 ? hn_load(hn_at<const hn_f16>(address) + i)
                                    : hn_load(hn_at<const hn_bf16>(address) + i);
}

__device__ inline float to_precision(int32_t p, float v)
{
    if (p == HN_CUDA_REAL_F16)
        return __half2float(__float2half_rn(v));
    return p == HN_CUDA_REAL_BF16 ? __bfloat162float(__float2bfloat16_rn(v)) : v;
}

/* --- integers in memory ------------------------------------------------------------------------------------------- */

/* Bits from..from + bits of a byte, signed or not. */
__device__ inline int packed_at(uint64_t address, int64_t i, int bits, bool is_signed)
{
    const int per = 8 / bits;
    const uint32_t byte = hn_at<const uint8_t>(address)[i / per];
    const uint32_t v = byte << (32 - bits - (int)(i % per) * bits);
    return is_signed ? (int)v >> (32 - bits) : (int)(v >> (32 - bits));
}

__device__ inline int64_t int_at(uint64_t address, int32_t type, int64_t i)
{
    switch (type) {
    case HN_CUDA_INT_U8:
        return hn_at<const uint8_t>(address)[i];
    case HN_CUDA_INT_I8:
        return hn_at<const int8_t>(address)[i];
    case HN_CUDA_INT_U16:
        return hn_at<const uint16_t>(address)[i];
    case HN_CUDA_INT_I16:
        return hn_at<const int16_t>(address)[i];
    case HN_CUDA_INT_I32:
        return hn_at<const int32_t>(address)[i];
    case HN_CUDA_INT_U4:
    case HN_CUDA_INT_I4:
        return packed_at(address, i, 4, type == HN_CUDA_INT_I4);
    default:
        return packed_at(address, i, 2, type == HN_CUDA_INT_I2);
    }
}

/* The smallest and largest integer of a type, before its zero point is added. */
struct Range {
    float lo, hi;
    __device__ Range(int32_t type, int zero)
    {
        const int bits = type <= HN_CUDA_INT_I8 ? 8 : type <= HN_CUDA_INT_I16 ? 16 : type <= HN_CUDA_INT_I4 ? 4 : 2;
        const bool is_signed =
            type == HN_CUDA_INT_I8 || type == HN_CUDA_INT_I16 || type == HN_CUDA_INT_I4 || type == HN_CUDA_INT_I2;
        const int least = is_signed ? -(1 << (bits - 1)) : 0;
        lo = (float)(least - zero);
        hi = (float)(least + (1 << bits) - 1 - zero);
    }
};

/* --- QuantizeLinear ----------------------------------------------------------------------------------------------- */

__device__ inline int rounded(float x, float scale, int32_t precision, const Range &r, int zero)
{
    float v = __fdiv_rn(to_precision(precision, x), scale);
    v = to_precision(precision, v);
    v = v > r.lo ? v : r.lo; /* which NaN becomes */
    v = v < r.hi ? v : r.hi;
    return (int)rintf(v) + zero;
}

template <typename T> __device__ inline int quantized(const HnCudaQuantizeArgs &a, int64_t i)
{
    const int64_t s = scale_of(a, i);
    const int zero = a.zero != 0 ? (int)int_at(a.zero, a.ints, s) : 0;
    return rounded(hn_load(hn_at<const T>(a.x) + i), to_precision(a.precision, real_at(a.scale, a.scale_type, s)),
                   a.precision, Range(a.ints, zero), zero);
}

template <typename T> __device__ void quantize(const HnCudaQuantizeArgs &a)
{
    if (a.ints >= HN_CUDA_INT_U4) { /* a thread for each byte */
        const int bits = a.ints <= HN_CUDA_INT_I4 ? 4 : 2, per = 8 / bits;
        for (int64_t b = hn_first(); b * per < a.n; b += hn_stride()) {
            uint32_t byte = 0;
            for (int k = 0; k < per && b * per + k < a.n; k++)
                byte |= ((uint32_t)quantized<T>(a, b * per + k) & ((1u << bits) - 1)) << (k * bits);
            hn_at<uint8_t>(a.y)[b] = (uint8_t)byte;
        }
        return;
    }
    for (int64_t i = hn_first(); i < a.n; i += hn_stride()) {
        const int v = quantized<T>(a, i);
        if (a.ints <= HN_CUDA_INT_I8)
            hn_at<uint8_t>(a.y)[i] = (uint8_t)v;
        else
            hn_at<uint16_t>(a.y)[i] = (uint16_t)v;
    }
}

/* 4 elements of consecutive memory. */
__device__ inline void load_four(const float *x, float *v)
{
    const float4 f = *reinterpret_cast<const float4 *>(x);
    v[0] = f.x;
    v[1] = f.y;
    v[2] = f.z;
    v[3] = f.w;
}
template <typename T> __device__ inline void load_four(const T *x, float *v)
{
    const uint2 f = *reinterpret_cast<const uint2 *>(x);
    const T *t = reinterpret_cast<const T *>(&f);
    for (int k = 0; k < 4; k++)
        v[k] = hn_load(t + k);
}

/* One scale, bytes: 4 at a time where all lies on borders. */
template <typename T>
__device__ void quantize_bytes(const T *x, uint8_t *y, int64_t n, float scale, int32_t precision, const Range &r,
                               int zero)
{
    const bool aligned = (reinterpret_cast<uint64_t>(x) % (4 * sizeof(T)) | reinterpret_cast<uint64_t>(y) % 4) == 0;
    const int64_t fours = aligned ? n / 4 : 0;
    for (int64_t i = hn_first(); i < fours; i += hn_stride()) {
        float v[4];
        load_four(x + 4 * i, v);
        uint32_t word = 0;
        for (int k = 0; k < 4; k++)
            word |= (uint32_t)(uint8_t)rounded(v[k], scale, precision, r, zero) << (8 * k);
        reinterpret_cast<uint32_t *>(y)[i] = word;
    }
    for (int64_t i = 4 * fours + hn_first(); i < n; i += hn_stride())
        y[i] = (uint8_t)rounded(hn_load(x + i), scale, precision, r, zero);
}

template <typename T> __device__ void quantize_one(const HnCudaQuantizeArgs &a)
{
    const int zero = a.zero != 0 ? (int)int_at(a.zero, a.ints, 0) : 0;
    quantize_bytes(hn_at<const T>(a.x), hn_at<uint8_t>(a.y), a.n,
                   to_precision(a.precision, real_at(a.scale, a.scale_type, 0)), a.precision, Range(a.ints, zero),
                   zero);
}

/* --- DequantizeLinear --------------------------------------------------------------------------------------------- */

template <typename T> __device__ void dequantize(const HnCudaQuantizeArgs &a)
{
    for (int64_t i = hn_first(); i < a.n; i += hn_stride()) {
        const int64_t s = scale_of(a, i), zero = a.zero != 0 ? int_at(a.zero, a.ints, s) : 0;
        const float v = (float)(int_at(a.x, a.ints, i) - zero);
        hn_store(hn_at<T>(a.y) + i, __fmul_rn(v, real_at(a.scale, a.scale_type, s)));
    }
}

#define DEFINE(suffix, type)                                                                       \
    extern "C" __global__ void quantize_##suffix(const __grid_constant__ HnCudaQuantizeArgs a)     \
    {                                                                                              \
        quantize<type>(a);                                                                         \
    }                                                                                              \
    extern "C" __global__ void quantize_one_##suffix(const __grid_constant__ HnCudaQuantizeArgs a) \
    {                                                                                              \
        quantize_one<type>(a);                                                                     \
    }                                                                                              \
    extern "C" __global__ void dequantize_##suffix(const __grid_constant__ HnCudaQuantizeArgs a)   \
    {                                                                                              \
        dequantize<type>(a);                                                                       \
    }
HN_EACH_FLOAT(DEFINE)

/* --- DynamicQuantizeLinear ---------------------------------------------------------------------------------------- */

struct Least { /* no NaN among them */
    __device__ static float of(float a, float b)
    {
        return b < a ? b : a;
    }
    static constexpr float start = 0.0f;
};
struct Largest {
    __device__ static float of(float a, float b)
    {
        return b > a ? b : a;
    }
    static constexpr float start = 0.0f;
};

/* A range with 0 in it for each block. */
extern "C" __global__ void dynamic_range(const __grid_constant__ HnCudaDynamicArgs a)
{
    __shared__ float room[HN_WARP];
    const float *x = hn_at<const float>(a.x);
    float lo = 0, hi = 0;
    for (int64_t i = hn_first(); i < a.n; i += hn_stride()) {
        lo = Least::of(lo, x[i]);
        hi = Largest::of(hi, x[i]);
    }
    lo = hn_block_reduce<Least>(lo, room);
    hi = hn_block_reduce<Largest>(hi, room);
    if (threadIdx.x == 0) {
        hn_at<float>(a.ranges)[2 * blockIdx.x] = lo;
        hn_at<float>(a.ranges)[2 * blockIdx.x + 1] = hi;
    }
}

extern "C" __global__ void dynamic_quantize(const __grid_constant__ HnCudaDynamicArgs a)
{
    __shared__ float room[HN_WARP];
    float lo = 0, hi = 0;
    for (int i = threadIdx.x; i < a.parts; i += blockDim.x) {
        lo = Least::of(lo, hn_at<const float>(a.ranges)[2 * i]);
        hi = Largest::of(hi, hn_at<const float>(a.ranges)[2 * i + 1]);
    }
    lo = hn_block_reduce<Least>(lo, room);
    hi = hn_block_reduce<Largest>(hi, room);
    const float scale = hi == lo ? 1.0f : __fdiv_rn(__fsub_rn(hi, lo), 255.0f);
    const float at = __fsub_rn(0.0f, __fdiv_rn(lo, scale));
    const int zero = (int)(at > 0 ? at < 255 ? rintf(at) : 255.0f : 0.0f);
    if (a.y != 0)
        quantize_bytes(hn_at<const float>(a.x), hn_at<uint8_t>(a.y), a.n, scale, HN_CUDA_REAL_F32,
                       Range(HN_CUDA_INT_U8, zero), zero);
    if (blockIdx.x != 0 || threadIdx.x != 0)
        return;
    if (a.y_scale != 0)
        *hn_at<float>(a.y_scale) = scale;
    if (a.y_zero != 0)
        *hn_at<uint8_t>(a.y_zero) = (uint8_t)zero;
}
