#include "cuda/core/device.cuh"
#include "cuda/int8/cuda_int8_elements_args.h"

/* The table in shared memory, where lanes may read different places of it at once. */
__device__ inline void load_limits(const HnCudaInt8Limits &l, uint8_t *table)
{
    for (int i = threadIdx.x; l.exchanges && i < 256; i += blockDim.x)
        table[i] = l.table[i];
    __syncthreads();
}

__device__ inline float limited_number(const HnCudaInt8Limits &l, float v)
{
    v = l.lo > v ? l.lo : v;
    return l.hi < v ? l.hi : v;
}

__device__ inline uint8_t limited_byte(const HnCudaInt8Limits &l, const uint8_t *table, float v)
{
    v = v > l.lo ? v : l.lo; /* which NaN becomes */
    v = v < l.hi ? v : l.hi;
    const uint8_t byte = (uint8_t)((int)rintf(v) + l.zero);
    return l.exchanges ? table[byte] : byte;
}

__device__ inline void store_limited(const HnCudaInt8Limits &l, const uint8_t *table, uint64_t y, int64_t i, float v)
{
    if (l.numbers)
        hn_at<float>(y)[i] = limited_number(l, v);
    else
        hn_at<uint8_t>(y)[i] = limited_byte(l, table, v);
}

__device__ inline float byte_number(uint8_t byte, int32_t is_signed)
{
    return is_signed ? (float)(int8_t)byte : (float)byte;
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

__device__ inline float left_of(const HnCudaPairArgs &p, uint8_t byte)
{
    return __fadd_rn(__fmul_rn(byte_number(byte, p.a_signed), p.a_by), p.a_plus);
}

__device__ inline float right_of(const HnCudaPairArgs &p, int64_t i)
{
    const float v = p.b_numbers ? hn_at<const float>(p.b)[i] : byte_number(hn_at<const uint8_t>(p.b)[i], p.b_signed);
    return __fadd_rn(__fmul_rn(v, p.b_by), p.b_plus);
}

__device__ inline float both(const HnCudaPairArgs &p, float a, float b)
{
    return p.product ? __fmul_rn(a, b) : __fadd_rn(a, b);
}

extern "C" __global__ void int8_pair(const __grid_constant__ HnCudaPairArgs p)
{
    __shared__ uint8_t table[256];
    load_limits(p.limits, table);
    for (int64_t i = hn_first(); i < p.n; i += hn_stride()) {
        int64_t left = 0, right = 0, rest = i;
        for (int d = p.axes - 1; d >= 0; d--) {
            const int64_t at = rest % p.dims[d];
            rest /= p.dims[d];
            left += at * p.a_stride[d];
            right += at * p.b_stride[d];
        }
        store_limited(p.limits, table, p.y, i,
                      both(p, left_of(p, hn_at<const uint8_t>(p.a)[left]), right_of(p, right)));
    }
}

/* Element by element, or with one of b; 4 bytes at a time where all lies on borders. */
extern "C" __global__ void int8_pair_flat(const __grid_constant__ HnCudaPairArgs p)
{
    __shared__ uint8_t table[256];
    load_limits(p.limits, table);
    const bool words = ((p.a | p.y) & 3) == 0 && !p.limits.numbers;
    const int64_t fours = words ? p.n / 4 : 0;
    for (int64_t i = hn_first(); i < fours; i += hn_stride()) {
        const uint32_t a = hn_at<const uint32_t>(p.a)[i];
        uint32_t y = 0;
        for (int k = 0; k < 4; k++) {
            const float v = both(p, left_of(p, (uint8_t)(a >> (8 * k))), right_of(p, (4 * i + k) * p.b_step));
            y |= (uint32_t)limited_byte(p.limits, table, v) << (8 * k);
        }
        hn_at<uint32_t>(p.y)[i] = y;
    }
    for (int64_t i = 4 * fours + hn_first(); i < p.n; i += hn_stride())
        store_limited(p.limits, table, p.y, i,
                      both(p, left_of(p, hn_at<const uint8_t>(p.a)[i]), right_of(p, i * p.b_step)));
}

/* --- means -------------------------------------------------------------------------------------------------------- */

/* Elements that a window counts along an axis, from position `begin` on. */
__device__ inline int64_t held(const HnCudaMeanArgs &a, int axis, int64_t begin)
{
    const int64_t lo = a.count_pad ? -a.pad[axis] : 0, hi = a.in[axis] + (a.count_pad ? a.pad_end[axis] : 0);
    const int64_t d = a.dilation[axis], first = begin >= lo ? 0 : (lo - begin + d - 1) / d;
    const int64_t end = hi <= begin ? 0 : (hi - begin + d - 1) / d;
    const int64_t n = (end < a.kernel[axis] ? end : a.kernel[axis]) - first;
    return n > 0 ? n : 0;
}

/* Threads `lane`, `lane` + lanes ... of those that share an output; all of them get the sum with lanes 32. */
template <int LANES> __device__ void mean(const HnCudaMeanArgs &a)
{
    __shared__ uint8_t table[256];
    load_limits(a.limits, table);
    const int64_t outs = a.out[0] * a.out[1] * a.out[2], plane = a.in[0] * a.in[1] * a.in[2];
    const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
    const int lane = threadIdx.x % LANES;
    for (int64_t o = hn_first() / LANES; o < a.planes * outs; o += hn_stride() / LANES) {
        const uint8_t *x = hn_at<const uint8_t>(a.x) + o / outs * plane;
        int64_t begin[3], rest = o % outs;
        double elements = 1;
        for (int i = 2; i >= 0; i--) {
            begin[i] = rest % a.out[i] * a.stride[i] - a.pad[i];
            rest /= a.out[i];
            elements *= (double)held(a, i, begin[i]);
        }
        int sum = 0;
        for (int64_t k = lane; k < taps; k += LANES) {
            int64_t tap = k, at[3];
            bool inside = true;
            for (int i = 2; i >= 0; i--) {
                at[i] = begin[i] + tap % a.kernel[i] * a.dilation[i];
                tap /= a.kernel[i];
                inside = inside && at[i] >= 0 && at[i] < a.in[i];
            }
            if (!inside)
                continue;
            const uint8_t byte = x[(at[0] * a.in[1] + at[1]) * a.in[2] + at[2]];
            sum += (a.is_signed ? (int)(int8_t)byte : (int)byte) - a.x_zero;
        }
        for (int d = LANES / 2; d > 0; d /= 2)
            sum += __shfl_xor_sync(HN_ALL_LANES, sum, d);
        if (lane == 0)
            store_limited(a.limits, table, a.y, o,
                          elements > 0 ? __fmul_rn((float)sum, __fdiv_rn(a.scale, (float)elements)) : 0.0f);
    }
}

extern "C" __global__ void int8_mean(const __grid_constant__ HnCudaMeanArgs a)
{
    mean<1>(a);
}
extern "C" __global__ void int8_mean_large(const __grid_constant__ HnCudaMeanArgs a)
{
    mean<HN_WARP>(a);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

template <typename T> __device__ void exchange(const HnCudaTableArgs &a)
{
    __shared__ T table[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        table[i] = hn_at<const T>(a.table)[i];
    __syncthreads();
    const bool words = (a.x % 4 | a.y % (4 * sizeof(T))) == 0;
    const int64_t fours = words ? a.n / 4 : 0;
    for (int64_t i = hn_first(); i < fours; i += hn_stride()) {
        const uint32_t x = hn_at<const uint32_t>(a.x)[i];
        struct alignas(4 * sizeof(T)) Store {
            T v[4];
        } y;
        for (int k = 0; k < 4; k++)
            y.v[k] = table[x >> (8 * k) & 0xff];
        hn_at<Store>(a.y)[i] = y;
    }
    for (int64_t i = 4 * fours + hn_first(); i < a.n; i += hn_stride())
        hn_at<T>(a.y)[i] = table[hn_at<const uint8_t>(a.x)[i]];
}

extern "C" __global__ void int8_table(const __grid_constant__ HnCudaTableArgs a)
{
    exchange<uint8_t>(a);
}
extern "C" __global__ void int8_numbers(const __grid_constant__ HnCudaTableArgs a)
{
    exchange<float>(a);
}
