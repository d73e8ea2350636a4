#include "cuda/conv/cuda_pool_args.h"
#include "cuda/conv/cuda_window.cuh"

/* What elements are compared as, and the least of them. */
template <typename T> struct Value {
    typedef float type;
    __device__ static float least()
    {
        return -__builtin_huge_valf();
    }
    __device__ static float load(const T *p)
    {
        return hn_load(p);
    }
    __device__ static void store(T *p, float v)
    {
        hn_store(p, v);
    }
};
template <typename T, int LEAST> struct Byte {
    typedef int32_t type;
    __device__ static int32_t least()
    {
        return LEAST;
    }
    __device__ static int32_t load(const T *p)
    {
        return *p;
    }
    __device__ static void store(T *p, int32_t v)
    {
        *p = (T)v;
    }
};
template <> struct Value<int8_t> : Byte<int8_t, -128> {
};
template <> struct Value<uint8_t> : Byte<uint8_t, 0> {
};

__device__ inline int64_t plane_of(const HnCudaWindowAxis *a, bool in)
{
    return in ? (int64_t)a[0].in * a[1].in * a[2].in : (int64_t)a[0].out * a[1].out * a[2].out;
}

/* A place in the row-major plane as one in a plane whose first axis is adjacent. */
__device__ inline int64_t by_columns(const HnCudaWindowAxis *a, int32_t z, int32_t y, int32_t x)
{
    return ((int64_t)x * a[1].in + y) * a[0].in + z;
}

/* A thread for each window. NaN is never the largest, but where places are wanted as the first of its window. */
template <typename T> __device__ void pool_max(const HnCudaPoolArgs &p)
{
    typedef Value<T> V;
    const HnCudaWindowAxis *a = p.axis;
    const int64_t x_plane = plane_of(a, true), n = p.planes * plane_of(a, false);
    for (int64_t i = hn_first(); i < n; i += hn_stride()) {
        int32_t o[3], from[3], to[3];
        const int64_t plane = hn_place(i, a[0].out, a[1].out, a[2].out, o);
        for (int k = 0; k < 3; k++)
            hn_taps_within(a[k], o[k], 0, a[k].in, from[k], to[k]);
        const T *x = hn_at<const T>(p.x) + plane * x_plane;
        typename V::type most = V::least();
        int64_t at = -1;
        for (int32_t k0 = from[0]; k0 < to[0]; k0++)
            for (int32_t k1 = from[1]; k1 < to[1]; k1++) {
                const int32_t z = o[0] * a[0].stride - a[0].pad + k0 * a[0].dilation;
                const int32_t y = o[1] * a[1].stride - a[1].pad + k1 * a[1].dilation;
                const int64_t row = ((int64_t)z * a[1].in + y) * a[2].in;
                for (int32_t k2 = from[2]; k2 < to[2]; k2++) {
                    const int32_t c = o[2] * a[2].stride - a[2].pad + k2 * a[2].dilation;
                    const typename V::type v = V::load(x + row + c);
                    if (v > most || (p.places != 0 && at < 0)) {
                        most = v;
                        at = p.by_columns ? by_columns(a, z, y, c) : row + c;
                    }
                }
            }
        V::store(hn_at<T>(p.y) + i, most);
        if (p.places != 0)
            hn_at<int64_t>(p.places)[i] = plane * x_plane + max(at, (int64_t)0);
    }
}

/* A thread for each window. */
template <typename T> __device__ void pool_mean(const HnCudaPoolArgs &p)
{
    const HnCudaWindowAxis *a = p.axis;
    const int64_t x_plane = plane_of(a, true), n = p.planes * plane_of(a, false);
    for (int64_t i = hn_first(); i < n; i += hn_stride()) {
        int32_t o[3], from[3], to[3];
        const int64_t plane = hn_place(i, a[0].out, a[1].out, a[2].out, o);
        float held = 1, sum = 0;
        for (int k = 0; k < 3; k++) {
            hn_taps_within(a[k], o[k], 0, a[k].in, from[k], to[k]);
            held *= (float)hn_held(a[k], o[k], p.count_pad);
        }
        const T *x = hn_at<const T>(p.x) + plane * x_plane;
        for (int32_t k0 = from[0]; k0 < to[0]; k0++)
            for (int32_t k1 = from[1]; k1 < to[1]; k1++) {
                const int32_t z = o[0] * a[0].stride - a[0].pad + k0 * a[0].dilation;
                const int32_t y = o[1] * a[1].stride - a[1].pad + k1 * a[1].dilation;
                const T *row = x + ((int64_t)z * a[1].in + y) * a[2].in + o[2] * a[2].stride - a[2].pad;
                for (int32_t k2 = from[2]; k2 < to[2]; k2++)
                    sum += hn_load(row + (int64_t)k2 * a[2].dilation);
            }
        hn_store(hn_at<T>(p.y) + i, held > 0 ? sum / held : 0.0f);
    }
}

/* What is made of a window's elements; `none` changes nothing. */
template <typename T> struct LargestOf {
    typedef Value<T> V;
    typedef typename V::type type;
    type v = V::least();
    __device__ static type none()
    {
        return V::least();
    }
    __device__ static type load(const T *x)
    {
        return V::load(x);
    }
    __device__ void add(type next)
    {
        v = next > v ? next : v;
    }
    __device__ void put(T *y, const HnCudaPlanePoolArgs &, int32_t, int32_t) const
    {
        V::store(y, v);
    }
};
template <typename T> struct MeanOf {
    typedef float type;
    float v = 0;
    __device__ static float none()
    {
        return 0;
    }
    __device__ static float load(const T *x)
    {
        return hn_load(x);
    }
    __device__ void add(float next)
    {
        v += next;
    }
    __device__ void put(T *y, const HnCudaPlanePoolArgs &p, int32_t oy, int32_t ox) const
    {
        const float held = (float)hn_held(p.height, oy, p.count_pad) * (float)hn_held(p.width, ox, p.count_pad);
        hn_store(y, held > 0 ? v / held : 0.0f);
    }
};

/* A thread for each window of SIDE by SIDE elements side by side; SIDE 0: of any size. */
template <typename T, class How, int SIDE> __device__ void pool_plane(const HnCudaPlanePoolArgs &p)
{
    const HnCudaWindowAxis &h = p.height, &w = p.width;
    for (uint32_t i = (uint32_t)hn_first(); i < p.n; i += (uint32_t)hn_stride()) {
        uint32_t ox = i, oy = hn_divide_off(ox, p.out_width);
        const uint32_t plane = hn_divide_off(oy, p.out_height);
        const int32_t y = (int32_t)oy * h.stride - h.pad, x = (int32_t)ox * w.stride - w.pad;
        const T *from = hn_at<const T>(p.x) + (int64_t)(plane * (uint32_t)(h.in * w.in)) + (int64_t)y * w.in + x;
        How how;
        if constexpr (SIDE > 0) {
            typename How::type v[SIDE * SIDE]; /* all of them on their way at once */
#pragma unroll
            for (int32_t k = 0; k < SIDE * SIDE; k++) {
                const bool inside =
                    (uint32_t)(y + k / SIDE) < (uint32_t)h.in && (uint32_t)(x + k % SIDE) < (uint32_t)w.in;
                v[k] = inside ? How::load(from + k / SIDE * w.in + k % SIDE) : How::none();
            }
#pragma unroll
            for (int32_t k = 0; k < SIDE * SIDE; k++)
                how.add(v[k]);
        } else {
            int32_t y0, y1, x0, x1;
            hn_taps_within(h, (int32_t)oy, 0, h.in, y0, y1);
            hn_taps_within(w, (int32_t)ox, 0, w.in, x0, x1);
            for (int32_t k = y0; k < y1; k++)
#pragma unroll 4
                for (int32_t j = x0; j < x1; j++)
                    how.add(How::load(from + (int64_t)k * h.dilation * w.in + j * w.dilation));
        }
        how.put(hn_at<T>(p.y) + i, p, (int32_t)oy, (int32_t)ox);
    }
}

/* Windows [from, to) may hold place i, which is tap k of window o where i + pad = o * stride + k * dilation. */
__device__ inline void windows_with(const HnCudaWindowAxis &a, int32_t i, int32_t &from, int32_t &to)
{
    const int32_t at = i + a.pad, reach = (a.kernel - 1) * a.dilation;
    from = at > reach ? (at - reach + a.stride - 1) / a.stride : 0;
    to = at < 0 ? 0 : min(a.out, at / a.stride + 1);
}
__device__ inline bool holds(const HnCudaWindowAxis &a, int32_t i, int32_t o)
{
    return (i + a.pad - o * a.stride) % a.dilation == 0;
}

/* A thread for each element of dx: the sum of what windows that hold it give to it, in their order. */
template <typename T, class Give> __device__ void pool_grad(const HnCudaPoolArgs &p, Give give)
{
    const HnCudaWindowAxis *a = p.axis;
    const int64_t y_plane = plane_of(a, false), n = p.planes * plane_of(a, true);
    for (int64_t i = hn_first(); i < n; i += hn_stride()) {
        int32_t at[3], from[3], to[3];
        const int64_t plane = hn_place(i, a[0].in, a[1].in, a[2].in, at);
        float sum = 0;
        for (int k = 0; k < 3; k++)
            windows_with(a[k], at[k], from[k], to[k]);
        for (int32_t z = from[0]; z < to[0]; z++)
            for (int32_t y = from[1]; y < to[1]; y++)
                for (int32_t x = from[2]; x < to[2]; x++)
                    if (holds(a[0], at[0], z) && holds(a[1], at[1], y) && holds(a[2], at[2], x)) {
                        const int32_t o[3] = { z, y, x };
                        sum += give(i, plane, plane * y_plane + ((int64_t)z * a[1].out + y) * a[2].out + x, o);
                    }
        hn_store(hn_at<T>(p.dx) + i, sum);
    }
}

template <typename T> __device__ void pool_mean_grad(const HnCudaPoolArgs &p)
{
    pool_grad<T>(p, [&p](int64_t, int64_t, int64_t window, const int32_t *o) {
        float held = 1;
        for (int k = 0; k < 3 && !p.sums; k++)
            held *= (float)hn_held(p.axis[k], o[k], p.count_pad);
        return hn_load(hn_at<const T>(p.dy) + window) / fmaxf(held, 1.0f);
    });
}

/* The first element of window o that equals `most`, as a place among those of x. */
template <typename T> __device__ int64_t first_of(const HnCudaPoolArgs &p, int64_t plane, const int32_t *o, float most)
{
    const HnCudaWindowAxis *a = p.axis;
    const int64_t base = plane * plane_of(a, true);
    int32_t from[3], to[3];
    for (int k = 0; k < 3; k++)
        hn_taps_within(a[k], o[k], 0, a[k].in, from[k], to[k]);
    for (int32_t k0 = from[0]; k0 < to[0]; k0++)
        for (int32_t k1 = from[1]; k1 < to[1]; k1++)
            for (int32_t k2 = from[2]; k2 < to[2]; k2++) {
                const int32_t z = o[0] * a[0].stride - a[0].pad + k0 * a[0].dilation;
                const int32_t y = o[1] * a[1].stride - a[1].pad + k1 * a[1].dilation;
                const int32_t x = o[2] * a[2].stride - a[2].pad + k2 * a[2].dilation;
                const int64_t at = base + ((int64_t)z * a[1].in + y) * a[2].in + x;
                if (hn_load(hn_at<const T>(p.x) + at) == most)
                    return at;
            }
    return -1;
}

template <typename T> __device__ void pool_max_grad(const HnCudaPoolArgs &p)
{
    pool_grad<T>(p, [&p](int64_t i, int64_t plane, int64_t window, const int32_t *o) {
        const float most = hn_load(hn_at<const T>(p.y) + window);
        const bool mine = hn_load(hn_at<const T>(p.x) + i) == most && first_of<T>(p, plane, o, most) == i;
        return mine ? hn_load(hn_at<const T>(p.dy) + window) : 0.0f;
    });
}

struct Most { /* NaN is never the largest */
    __device__ static float of(float a, float b)
    {
        return b > a ? b : a;
    }
    static constexpr float start = -__builtin_huge_valf();
};

template <typename T, class How, bool BLOCK> __device__ float of_plane(const T *x, int64_t n, float *room)
{
    float v = How::start;
    for (int64_t k = BLOCK ? threadIdx.x : threadIdx.x % HN_WARP; k < n; k += BLOCK ? blockDim.x : HN_WARP)
        v = How::of(v, hn_load(x + k));
    return BLOCK ? hn_block_reduce<How>(v, room) : hn_warp_reduce<How>(v);
}

/* A block for each plane, or a warp. */
template <typename T, bool BLOCK> __device__ void pool_global(const HnCudaGlobalPoolArgs &p)
{
    __shared__ float room[HN_WARP];
    const int64_t warps = BLOCK ? 1 : blockDim.x / HN_WARP;
    for (int64_t i = blockIdx.x * warps + (BLOCK ? 0 : threadIdx.x / HN_WARP); i < p.planes; i += gridDim.x * warps) {
        const T *x = hn_at<const T>(p.x) + i * p.n;
        const float v =
            p.mean ? of_plane<T, HnSum, BLOCK>(x, p.n, room) / (float)p.n : of_plane<T, Most, BLOCK>(x, p.n, room);
        if (threadIdx.x % (BLOCK ? blockDim.x : HN_WARP) == 0)
            hn_store(hn_at<T>(p.y) + i, v);
    }
}

#define DEFINE_PLANE(name, suffix, type, HOW, SIDE)                                           \
    extern "C" __global__ void name##_##suffix(const __grid_constant__ HnCudaPlanePoolArgs p) \
    {                                                                                         \
        pool_plane<type, HOW<type>, SIDE>(p);                                                 \
    }
#define DEFINE_MAX(suffix, type)                                                           \
    extern "C" __global__ void pool_max_##suffix(const __grid_constant__ HnCudaPoolArgs p) \
    {                                                                                      \
        pool_max<type>(p);                                                                 \
    }                                                                                      \
    DEFINE_PLANE(pool_max_plane_0, suffix, type, LargestOf, 0)                             \
    DEFINE_PLANE(pool_max_plane_2, suffix, type, LargestOf, 2)                             \
    DEFINE_PLANE(pool_max_plane_3, suffix, type, LargestOf, 3)
#define DEFINE(suffix, type)                                                                              \
    DEFINE_MAX(suffix, type)                                                                              \
    DEFINE_PLANE(pool_mean_plane_0, suffix, type, MeanOf, 0)                                              \
    DEFINE_PLANE(pool_mean_plane_2, suffix, type, MeanOf, 2)                                              \
    DEFINE_PLANE(pool_mean_plane_3, suffix, type, MeanOf, 3)                                              \
    extern "C" __global__ void pool_mean_##suffix(const __grid_constant__ HnCudaPoolArgs p)               \
    {                                                                                                     \
        pool_mean<type>(p);                                                                               \
    }                                                                                                     \
    extern "C" __global__ void pool_max_grad_##suffix(const __grid_constant__ HnCudaPoolArgs p)           \
    {                                                                                                     \
        pool_max_grad<type>(p);                                                                           \
    }                                                                                                     \
    extern "C" __global__ void pool_mean_grad_##suffix(const __grid_constant__ HnCudaPoolArgs p)          \
    {                                                                                                     \
        pool_mean_grad<type>(p);                                                                          \
    }                                                                                                     \
    extern "C" __global__ void pool_global_block_##suffix(const __grid_constant__ HnCudaGlobalPoolArgs p) \
    {                                                                                                     \
        pool_global<type, true>(p);                                                                       \
    }                                                                                                     \
    extern "C" __global__ void pool_global_warp_##suffix(const __grid_constant__ HnCudaGlobalPoolArgs p)  \
    {                                                                                                     \
        pool_global<type, false>(p);                                                                      \
    }
HN_EACH_FLOAT(DEFINE)
DEFINE_MAX(i8, int8_t)
DEFINE_MAX(u8, uint8_t)
