#include "cuda/reduce/cuda_groupnorm_args.h"
#include "cuda/reduce/cuda_rows.cuh"

typedef struct {
    float mean, squares; /* sum of (x - mean)^2 */
} Moments;

#define AT_ONCE 4 /* times four elements that a thread reads before it computes */

/* f(v, i) for elements [i, i + 4) of [from, end), by a block; those behind the end are 0. */
template <typename T, typename F>
__device__ static void each_four(const T *x, int64_t from, int64_t end, bool vector, F f)
{
    const int64_t step = 4 * (int64_t)blockDim.x;
    for (int64_t i = from + 4 * threadIdx.x; i < end; i += AT_ONCE * step) {
        float v[AT_ONCE][4];
        hn_load_pieces(v, x, i, step, end, vector);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k * step < end)
                f(v[k], i + k * step);
    }
}

/* Of elements [from, end), by a block. */
template <typename T>
__device__ static Moments moments_of(const T *x, int64_t from, int64_t end, bool vector, float *room)
{
    float sum = 0;
    each_four(x, from, end, vector, [&](const float *v, int64_t) { sum += (v[0] + v[1]) + (v[2] + v[3]); });
    const float mean = hn_block_reduce<HnSum>(sum, room) / (float)(end - from);
    sum = 0;
    each_four(x, from, end, vector, [&](const float *v, int64_t i) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum += i + j < end ? (v[j] - mean) * (v[j] - mean) : 0.0f;
    });
    return { mean, hn_block_reduce<HnSum>(sum, room) };
}

/* Elements [from, end) of a set with its moments. */
template <typename T>
__device__ static void apply(const HnCudaGroupNormArgs &a, int64_t set, int64_t from, int64_t end, Moments m)
{
    const float inv = 1.0f / sqrtf(m.squares / (float)a.size + a.epsilon);
    const int64_t group = set % a.groups;
    const T *scale = hn_at<const T>(a.scale), *bias = hn_at<const T>(a.bias);
    T *y = hn_at<T>(a.y) + set * a.size;
    each_four(hn_at<const T>(a.x) + set * a.size, from, end, a.vector, [&](float *v, int64_t i) {
        float by = 0, plus = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (j == 0 || !a.vector) {
                const int64_t in_set = min(i + j, end - 1),
                              k = a.per_group ? group : group * a.each + hn_divide(in_set, a.inner);
                by = inv * hn_load(scale + k);
                plus = hn_load(bias + k);
            }
            v[j] = fmaf(v[j] - m.mean, by, plus);
        }
        hn_store4(y, v, i, end, a.vector);
    });
}

/* A block for each set. */
template <typename T> __device__ static void whole(const HnCudaGroupNormArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int64_t set = blockIdx.x; set < a.sets; set += gridDim.x) {
        const Moments m = moments_of(hn_at<const T>(a.x) + set * a.size, 0, a.size, a.vector, room);
        apply<T>(a, set, 0, a.size, m);
    }
}

/* A block for each part of a set: its moments, ... */
template <typename T> __device__ static void parts(const HnCudaGroupNormArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int64_t unit = blockIdx.x; unit < a.sets * a.parts; unit += gridDim.x) {
        const int64_t set = unit / a.parts, from = unit % a.parts * a.part;
        const Moments m =
            moments_of(hn_at<const T>(a.x) + set * a.size, from, min(from + a.part, a.size), a.vector, room);
        if (threadIdx.x == 0) {
            hn_at<float>(a.partial)[2 * unit] = m.mean;
            hn_at<float>(a.partial)[2 * unit + 1] = m.squares;
        }
    }
}

/* ... and, from those of all parts, its elements. */
template <typename T> __device__ static void joined(const HnCudaGroupNormArgs &a)
{
    for (int64_t unit = blockIdx.x; unit < a.sets * a.parts; unit += gridDim.x) {
        const int64_t set = unit / a.parts, from = unit % a.parts * a.part;
        const float *part = hn_at<const float>(a.partial) + 2 * set * a.parts;
        float mean = 0, squares = 0;
        for (int64_t p = threadIdx.x % HN_WARP; p < a.parts; p += HN_WARP)
            mean += part[2 * p] * ((float)min(a.part, a.size - p * a.part) / (float)a.size);
        mean = hn_warp_reduce<HnSum>(mean);
        for (int64_t p = threadIdx.x % HN_WARP; p < a.parts; p += HN_WARP) {
            const float d = part[2 * p] - mean;
            squares += part[2 * p + 1] + (float)min(a.part, a.size - p * a.part) * d * d;
        }
        apply<T>(a, set, from, min(from + a.part, a.size), { mean, hn_warp_reduce<HnSum>(squares) });
    }
}

#define KERNEL(form, suffix, type)                                                                        \
    extern "C" __global__ void groupnorm_##form##_##suffix(const __grid_constant__ HnCudaGroupNormArgs a) \
    {                                                                                                     \
        form<type>(a);                                                                                    \
    }
#define DEFINE(suffix, type)    \
    KERNEL(whole, suffix, type) \
    KERNEL(parts, suffix, type) \
    KERNEL(joined, suffix, type)
HN_EACH_FLOAT(DEFINE)
