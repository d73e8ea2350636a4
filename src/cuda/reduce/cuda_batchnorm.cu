#include "cuda/reduce/cuda_batchnorm_args.h"
#include "cuda/reduce/cuda_rows.cuh"

enum { MASK_NONE, MASK_RELU, MASK_CLIP }; /* as HnMask */

/* --- parts of channels -------------------------------------------------------------------------------------------- */

/* What a thread has of part `part` of channel c: elements from `first` on, `step` apart, up to `end`. */
typedef struct {
    int64_t c, part, first, end;
    int step;
    bool mine; /* there is such a channel */
} Share;

__device__ static Share share_of(const HnCudaChannels &s, int64_t unit)
{
    Share u;
    u.part = unit % s.parts;
    u.c = unit / s.parts * s.width + threadIdx.x % s.width;
    u.first = u.part * s.part + threadIdx.x / s.width;
    u.end = min((u.part + 1) * s.part, s.samples * s.inner);
    u.step = HN_TILE_THREADS / s.width;
    u.mine = u.c < s.channels;
    return u;
}

__device__ static int64_t units_of(const HnCudaChannels &s)
{
    return (s.channels + s.width - 1) / s.width * s.parts;
}

/* Where element e of channel c lies. */
__device__ static int64_t place_of(const HnCudaChannels &s, int64_t c, int64_t e)
{
    const int64_t sample = hn_divide(e, s.inner);
    return (sample * s.channels + c) * s.inner + (e - sample * s.inner);
}

/* The channel of an element. */
__device__ static int64_t channel_of(const HnCudaChannels &s, int64_t at)
{
    const int64_t row = hn_divide(at, s.inner);
    return row - hn_divide(row, s.channels) * s.channels;
}

__device__ static int64_t part_size(const HnCudaChannels &s, int64_t part)
{
    return min(s.part, s.samples * s.inner - part * s.part);
}

/* y = x * a + b, the same to the last bit here and where the gradient asks what an activation cut off */
typedef struct {
    float a, b;
} Affine;

__device__ static Affine affine(float scale, float bias, float mean, float inv)
{
    const float a = scale * inv;
    return { a, fmaf(-mean, a, bias) };
}

/* --- inference ---------------------------------------------------------------------------------------------------- */

/* By given moments. */
template <typename T> __device__ static void infer(const HnCudaBatchNormArgs &a)
{
    const int64_t n = a.shape.samples * a.shape.channels * a.shape.inner, each = a.vector ? 4 : 1;
    for (int64_t i = hn_first() * each; i < n; i += hn_stride() * each) {
        float v[4];
        hn_load4(v, hn_at<const T>(a.x), i, i + each, a.vector); /* on its way while the channel is found */
        const int64_t c = channel_of(a.shape, i);
        const float mean = hn_load_any(a.mean, a.moment_type, c), bias = hn_load_any(a.bias, a.weight_type, c);
        const float by =
            hn_load_any(a.scale, a.weight_type, c) / sqrtf(hn_load_any(a.var, a.moment_type, c) + a.epsilon);
        for (int k = 0; k < each; k++)
            v[k] = fmaf(v[k] - mean, by, bias);
        hn_store4(hn_at<T>(a.y), v, i, i + each, a.vector);
    }
}

/* --- training ----------------------------------------------------------------------------------------------------- */

/* Mean of a part, and the sum of squares about it. */
template <typename T> __device__ static void moments(const HnCudaBatchNormArgs &a)
{
    __shared__ float room[HN_TILE_THREADS];
    for (int64_t unit = blockIdx.x; unit < units_of(a.shape); unit += gridDim.x) {
        const Share u = share_of(a.shape, unit);
        const T *x = hn_at<const T>(a.x);
        float sum = 0, squares = 0;
        for (int64_t e = u.first; u.mine && e < u.end; e += u.step)
            sum += hn_load(x + place_of(a.shape, u.c, e));
        const float mean = hn_tile_sum(sum, a.shape.width, room) / (float)part_size(a.shape, u.part);
        for (int64_t e = u.first; u.mine && e < u.end; e += u.step) {
            const float d = hn_load(x + place_of(a.shape, u.c, e)) - mean;
            squares += d * d;
        }
        squares = hn_tile_sum(squares, a.shape.width, room);
        if (u.mine && threadIdx.x < a.shape.width) {
            float *to = hn_at<float>(a.partial) + 2 * (u.c * a.shape.parts + u.part);
            to[0] = mean;
            to[1] = squares;
        }
    }
}

__device__ static void follow(const HnCudaBatchNormArgs &a, uint64_t to, uint64_t from, int64_t c, float v)
{
    if (to == 0)
        return;
    const float old = a.momentum == 0 ? 0.0f : hn_load_any(from, a.moment_type, c) * a.momentum;
    hn_store_any(to, a.moment_type, c, old + v * (1 - a.momentum));
}

/* A warp for each channel. */
__device__ static void finish(const HnCudaBatchNormArgs &a)
{
    const HnCudaChannels &s = a.shape;
    const int lane = threadIdx.x % HN_WARP;
    const float all = (float)(s.samples * s.inner);
    for (int64_t c = hn_first() / HN_WARP; c < s.channels; c += hn_stride() / HN_WARP) {
        const float *part = hn_at<const float>(a.partial) + 2 * c * s.parts;
        float mean = 0, var = 0;
        for (int64_t p = lane; p < s.parts; p += HN_WARP)
            mean += part[2 * p] * ((float)part_size(s, p) / all);
        mean = hn_warp_reduce<HnSum>(mean);
        for (int64_t p = lane; p < s.parts; p += HN_WARP) {
            const float d = part[2 * p] - mean;
            var += (part[2 * p + 1] + (float)part_size(s, p) * d * d) / all;
        }
        var = hn_warp_reduce<HnSum>(var);
        if (lane != 0)
            continue;
        const float inv = 1.0f / sqrtf(var + a.epsilon);
        const Affine by =
            affine(hn_load_any(a.scale, a.weight_type, c), hn_load_any(a.bias, a.weight_type, c), mean, inv);
        hn_at<float>(a.factors)[2 * c] = by.a;
        hn_at<float>(a.factors)[2 * c + 1] = by.b;
        follow(a, a.next_mean, a.mean, c, mean);
        follow(a, a.next_var, a.var, c, var);
        if (a.batch_mean != 0)
            hn_store_any(a.batch_mean, a.moment_type, c, mean);
        if (a.batch_spread != 0)
            hn_store_any(a.batch_spread, a.moment_type, c, a.inverse ? inv : var);
    }
}

template <typename T> __device__ static void apply(const HnCudaBatchNormArgs &a)
{
    const int64_t n = a.shape.samples * a.shape.channels * a.shape.inner, each = a.vector ? 4 : 1;
    for (int64_t i = hn_first() * each; i < n; i += hn_stride() * each) {
        const float *by = hn_at<const float>(a.factors) + 2 * channel_of(a.shape, i);
        float v[4];
        hn_load4(v, hn_at<const T>(a.x), i, i + each, a.vector);
        for (int k = 0; k < each; k++)
            v[k] = fmaf(v[k], by[0], by[1]);
        hn_store4(hn_at<T>(a.y), v, i, i + each, a.vector);
    }
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

typedef struct {
    Affine by;
    float mean, inv;
} Channel;

__device__ static Channel channel(const HnCudaBatchNormGradArgs &a, int64_t c)
{
    const float scale = hn_load_any(a.scale, a.weight_type, c), mean = hn_load_any(a.mean, a.moment_type, c);
    const float bias = a.bias != 0 ? hn_load_any(a.bias, a.weight_type, c) : 0.0f;
    const float spread = hn_load_any(a.spread, a.moment_type, c);
    const float inv = a.frozen ? 1.0f / sqrtf(spread + a.epsilon) : spread;
    return { affine(scale, bias, mean, inv), mean, inv };
}

/* dy, or 0 where the activation behind cut y off */
__device__ static float pass(const HnCudaBatchNormGradArgs &a, const Channel &ch, float dy, float x)
{
    const float y = fmaf(x, ch.by.a, ch.by.b);
    if (a.mask == MASK_RELU)
        return y > 0 ? dy : 0.0f;
    if (a.mask == MASK_CLIP)
        return y >= a.lo && y <= a.hi ? dy : 0.0f;
    return dy;
}

template <typename T> __device__ static void grad_sums(const HnCudaBatchNormGradArgs &a)
{
    __shared__ float room[HN_TILE_THREADS];
    for (int64_t unit = blockIdx.x; unit < units_of(a.shape); unit += gridDim.x) {
        const Share u = share_of(a.shape, unit);
        float sum = 0, along = 0;
        if (u.mine) {
            const Channel ch = channel(a, u.c);
            for (int64_t e = u.first; e < u.end; e += u.step) {
                const int64_t at = place_of(a.shape, u.c, e);
                const float x = hn_load(hn_at<const T>(a.x) + at);
                const float d = pass(a, ch, hn_load(hn_at<const T>(a.dy) + at), x);
                sum += d;
                along += d * (x - ch.mean);
            }
        }
        sum = hn_tile_sum(sum, a.shape.width, room);
        along = hn_tile_sum(along, a.shape.width, room);
        if (u.mine && threadIdx.x < a.shape.width) {
            float *to = hn_at<float>(a.partial) + 2 * (u.c * a.shape.parts + u.part);
            to[0] = sum;
            to[1] = along;
        }
    }
}

/* dx = a dy - a dbias / n - (x - mean) a inv dscale / n: a warp for each channel. */
__device__ static void grad_finish(const HnCudaBatchNormGradArgs &a)
{
    const HnCudaChannels &s = a.shape;
    const int lane = threadIdx.x % HN_WARP;
    const float all = (float)(s.samples * s.inner);
    for (int64_t c = hn_first() / HN_WARP; c < s.channels; c += hn_stride() / HN_WARP) {
        const float *part = hn_at<const float>(a.partial) + 2 * c * s.parts;
        float sum = 0, along = 0;
        for (int64_t p = lane; p < s.parts; p += HN_WARP) {
            sum += part[2 * p];
            along += part[2 * p + 1];
        }
        sum = hn_warp_reduce<HnSum>(sum);
        along = hn_warp_reduce<HnSum>(along);
        if (lane != 0)
            continue;
        const Channel ch = channel(a, c);
        const float dscale = along * ch.inv;
        if (a.dscale != 0)
            hn_store_any(a.dscale, a.weight_type, c, dscale);
        if (a.dbias != 0)
            hn_store_any(a.dbias, a.weight_type, c, sum);
        hn_at<float>(a.factors)[2 * c] = a.frozen ? 0.0f : -ch.by.a * sum / all;
        hn_at<float>(a.factors)[2 * c + 1] = a.frozen ? 0.0f : -ch.by.a * ch.inv * dscale / all;
    }
}

template <typename T> __device__ static void grad_back(const HnCudaBatchNormGradArgs &a)
{
    const int64_t n = a.shape.samples * a.shape.channels * a.shape.inner, each = a.vector ? 4 : 1;
    for (int64_t i = hn_first() * each; i < n; i += hn_stride() * each) {
        const int64_t c = channel_of(a.shape, i);
        const float *k = hn_at<const float>(a.factors) + 2 * c;
        const Channel ch = channel(a, c);
        float x[4], d[4];
        hn_load4(x, hn_at<const T>(a.x), i, i + each, a.vector);
        hn_load4(d, hn_at<const T>(a.dy), i, i + each, a.vector);
        for (int j = 0; j < each; j++)
            d[j] = fmaf(pass(a, ch, d[j], x[j]), ch.by.a, fmaf(x[j] - ch.mean, k[1], k[0]));
        hn_store4(hn_at<T>(a.dx), d, i, i + each, a.vector);
    }
}

#define KERNEL(form, suffix, type, Args)                                                   \
    extern "C" __global__ void batchnorm_##form##_##suffix(const __grid_constant__ Args a) \
    {                                                                                      \
        form<type>(a);                                                                     \
    }
#define DEFINE(suffix, type)                                 \
    KERNEL(infer, suffix, type, HnCudaBatchNormArgs)         \
    KERNEL(moments, suffix, type, HnCudaBatchNormArgs)       \
    KERNEL(apply, suffix, type, HnCudaBatchNormArgs)         \
    KERNEL(grad_sums, suffix, type, HnCudaBatchNormGradArgs) \
    KERNEL(grad_back, suffix, type, HnCudaBatchNormGradArgs)
HN_EACH_FLOAT(DEFINE)

extern "C" __global__ void batchnorm_finish(const __grid_constant__ HnCudaBatchNormArgs a)
{
    finish(a);
}

extern "C" __global__ void batchnorm_grad_finish(const __grid_constant__ HnCudaBatchNormGradArgs a)
{
    grad_finish(a);
}
