#include "cuda/core/device.cuh"
#include "cuda/fourier/cuda_fourier_args.h"

/*
 * Transforms by factors of n. With those before making L points, and n = L * M, the state is
 *
 *     S[k][s] = sum over t < L of x[s + M t] w(L)^(k t),  w(L) = e^(-2 pi i / L)
 *
 * which starts as the signal and ends as its spectrum. A factor r makes L' = r L, M' = M / r and
 *
 *     S'[k][s] = sum over u < r of w(L')^(k u) S[k mod L][s + M' u]
 */

/* e^(-+ 2 pi i k / n), k < n */
__device__ inline float2 root(int64_t k, int64_t n, int32_t inverse)
{
    float sine, cosine;
    sincospif((float)(2.0 * (double)k / (double)n), &sine, &cosine);
    return make_float2(cosine, inverse ? sine : -sine);
}

__device__ inline void add_product(float2 &sum, float2 a, float2 b)
{
    sum.x += a.x * b.x - a.y * b.y;
    sum.y += a.x * b.y + a.y * b.x;
}

/* Point j of signal s, 0 behind its end. */
template <typename T> __device__ inline float2 given(const HnCudaFourierArgs &a, int64_t s, int64_t j)
{
    if (j >= a.points)
        return make_float2(0, 0);
    const T *x = hn_at<const T>(a.x) + (s / a.group * a.x_far + s % a.group * a.x_near + j * a.x_step) * a.x_parts;
    float2 v = make_float2(hn_load(x), a.x_parts == 2 ? hn_load(x + 1) : 0.0f);
    if (a.window != 0) {
        const float w = hn_load(hn_at<const T>(a.window) + j);
        v.x *= w;
        v.y *= w;
    }
    return v;
}

template <typename T> __device__ inline float2 point(const HnCudaFourierArgs &a, int64_t s, int64_t j)
{
    if (!a.half)
        return given<T>(a, s, j);
    float2 v = given<T>(a, s, j <= a.n / 2 ? j : a.n - j);
    if (j == 0 || 2 * j == a.n)
        v.y = 0;
    if (j > a.n / 2)
        v.y = -v.y;
    return v;
}

template <typename T> __device__ inline void store(const HnCudaFourierArgs &a, int64_t s, int64_t k, float2 v)
{
    T *y = hn_at<T>(a.y) + (s / a.group * a.y_far + s % a.group * a.y_near + k * a.y_step) * a.y_parts;
    const float scale = a.inverse ? 1.0f / (float)a.n : 1.0f;
    hn_store(y, v.x * scale);
    if (a.y_parts == 2)
        hn_store(y + 1, v.y * scale);
}

/* A block for each signal, which lies in shared memory twice, behind the n roots. */
template <typename T> __device__ void short_signals(const HnCudaFourierArgs &a)
{
    extern __shared__ float2 room[];
    const int n = (int)a.n;
    float2 *roots = room, *from = room + n, *to = room + 2 * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        roots[i] = root(i, n, a.inverse);
    for (int64_t s = blockIdx.x; s < a.signals; s += gridDim.x) {
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            from[i] = point<T>(a, s, i);
        __syncthreads();
        for (int f = 0, done = 1; f < a.factors; f++) {
            const int r = a.factor[f], all = done * r, rest = n / all;
            for (int i = threadIdx.x; i < n; i += blockDim.x) {
                const int k = i / rest, at = k % done * rest * r + i % rest;
                float2 sum = make_float2(0, 0);
                for (int u = 0, w = 0; u < r; u++) {
                    add_product(sum, roots[w * rest], from[at + u * rest]);
                    w += k;
                    w -= w >= all ? all : 0;
                }
                to[i] = sum;
            }
            __syncthreads();
            float2 *const swap = from;
            from = to;
            to = swap;
            done = all;
        }
        for (int k = threadIdx.x; k < (int)a.bins; k += blockDim.x)
            store<T>(a, s, k, from[k]);
        __syncthreads();
    }
}

/* Long signals: from the input, by a factor, to the result. */
template <typename T> __device__ void begin(const HnCudaFourierArgs &a)
{
    for (int64_t i = hn_first(); i < a.signals * a.n; i += hn_stride())
        hn_at<float2>(a.to)[i] = point<T>(a, i / a.n, i % a.n);
}

extern "C" __global__ void fourier_pass(const __grid_constant__ HnCudaFourierArgs a)
{
    const int64_t all = a.done * a.radix, rest = a.n / all;
    for (int64_t i = hn_first(); i < a.signals * a.n; i += hn_stride()) {
        const int64_t s = i / a.n, at = i % a.n, k = at / rest;
        const float2 *from = hn_at<const float2>(a.from) + s * a.n + k % a.done * rest * a.radix + at % rest;
        float2 sum = make_float2(0, 0);
        for (int64_t u = 0, w = 0; u < a.radix; u++) {
            add_product(sum, root(w, all, a.inverse), from[u * rest]);
            w += k;
            w -= w >= all ? all : 0;
        }
        hn_at<float2>(a.to)[i] = sum;
    }
}

template <typename T> __device__ void finish(const HnCudaFourierArgs &a)
{
    for (int64_t i = hn_first(); i < a.signals * a.bins; i += hn_stride())
        store<T>(a, i / a.bins, i % a.bins, hn_at<const float2>(a.from)[i / a.bins * a.n + i % a.bins]);
}

#define DEFINE(suffix, type)                                                                       \
    extern "C" __global__ void fourier_short_##suffix(const __grid_constant__ HnCudaFourierArgs a) \
    {                                                                                              \
        short_signals<type>(a);                                                                    \
    }                                                                                              \
    extern "C" __global__ void fourier_begin_##suffix(const __grid_constant__ HnCudaFourierArgs a) \
    {                                                                                              \
        begin<type>(a);                                                                            \
    }                                                                                              \
    extern "C" __global__ void fourier_end_##suffix(const __grid_constant__ HnCudaFourierArgs a)   \
    {                                                                                              \
        finish<type>(a);                                                                           \
    }
HN_EACH_FLOAT(DEFINE)
