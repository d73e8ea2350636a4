#include "cuda/reduce/cuda_groupnorm_args.h"
#include "cuda/reduce/cuda_rows.cuh"

typedef struct {
    float mean, squares; /* sum of (x - mean)^2 */
} Moments;

/* Of n elements, by a block. */
template <typename T> __device__ static Moments moments_of(const T *x, int64_t n, float *room)
{
    float sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += hn_load(x + i);
    const float mean = hn_block_reduce<HnSum>(sum, room) / (float)n;
    sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float d = hn_load(x + i) - mean;
        sum += d * d;
    }
    return { mean, hn_block_reduce<HnSum>(sum, room) };
}

/* Elements [from, end) of a set with its moments. */
template <typename T>
__device__ static void apply(const HnCudaGroupNormArgs &a, int64_t set, int64_t from, int64_t end, Moments m)
{
    const float inv = 1.0f / sqrtf(m.squares / (float)a.size + a.epsilon);
    const T *x = hn_at<const T>(a.x) + set * a.size;
    T *y = hn_at<T>(a.y) + set * a.size;
    for (int64_t i = from + threadIdx.x; i < end; i += blockDim.x) {
        const int64_t group = set % a.groups, k = a.per_group ? group : group * a.each + hn_divide(i, a.inner);
        const float by = inv * hn_load(hn_at<const T>(a.scale) + k);
        hn_store(y + i, fmaf(hn_load(x + i) - m.mean, by, hn_load(hn_at<const T>(a.bias) + k)));
    }
}

/* A block for each set. */
template <typename T> __device__ static void whole(const HnCudaGroupNormArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int64_t set = blockIdx.x; set < a.sets; set += gridDim.x) {
        const Moments m = moments_of(hn_at<const T>(a.x) + set * a.size, a.size, room);
        apply<T>(a, set, 0, a.size, m);
    }
}

/* A block for each part of a set: its moments, ... */
template <typename T> __device__ static void parts(const HnCudaGroupNormArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int64_t unit = blockIdx.x; unit < a.sets * a.parts; unit += gridDim.x) {
        const int64_t set = unit / a.parts, from = unit % a.parts * a.part;
        const Moments m = moments_of(hn_at<const T>(a.x) + set * a.size + from, min(a.part, a.size - from), room);
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
