/*
 * Convolutions on tensor cores of values channels last (cuda_conv_last_args.h).
 *
 * A block computes a tile of pixels by channels. Lines of x and of packed weights come by asynchronous copies, 128
 * bytes for each pixel and channel of a stage, whose pieces of 16 bytes are exchanged, so that eight lines meet in no
 * bank. Where blocks share the terms, the one that comes last adds all parts in their order.
 */
#pragma once

#include "cuda/elementwise/cuda_end.cuh"
#include "cuda/conv/cuda_conv_last_args.h"
#include "cuda/conv/cuda_conv_sums.cuh"
#include "cuda/core/cuda_lines.cuh"

template <typename T, int WARPS_DOWN, int WARPS_ACROSS, int DOWN, int ACROSS, int N_STAGES> struct HnLastForm {
    static constexpr int THREADS = WARPS_DOWN * WARPS_ACROSS * HN_WARP, STAGES = N_STAGES;
    static constexpr int PIXELS = WARPS_DOWN * DOWN * 16, CHANNELS = WARPS_ACROSS * ACROSS * 8;
    static constexpr int X_BYTES = PIXELS * HN_CUDA_LAST_LINE, W_BYTES = CHANNELS * HN_CUDA_LAST_LINE;
    static constexpr int STAGE = X_BYTES + W_BYTES, PITCH = CHANNELS + 8;
    static constexpr int APART = THREADS / HN_CUDA_LAST_UNITS; /* lines that a thread copies are so far apart */
    static constexpr int X_LINES = PIXELS / APART, W_LINES = CHANNELS / APART;
    static_assert(PIXELS % APART == 0 && CHANNELS % APART == 0 && APART % 8 == 0, "lines of a thread");
    static_assert(THREADS % PIXELS == 0 || PIXELS % THREADS == 0, "plain results");
};

/* A pixel of y: the place of its first tap. */
struct HnLastPixel {
    int32_t place; /* row << 16 | column, both signed */
    int32_t at;    /* among the pixels of x */
};

__device__ __forceinline__ HnLastPixel hn_last_pixel(const HnCudaConvLastArgs &a, int32_t i)
{
    if (i >= a.pixels)
        return { INT32_MIN, 0 };
    uint32_t column = (uint32_t)i, line = hn_divide_off(column, a.of_width);
    const uint32_t image = hn_divide_off(line, a.of_height);
    const int32_t y = (int32_t)line * a.height.stride - a.height.pad;
    const int32_t x = (int32_t)column * a.width.stride - a.width.pad;
    return { (int32_t)((uint32_t)y << 16 | ((uint32_t)x & 0xffff)),
             ((int32_t)image * a.height.in + y) * a.width.in + x };
}

/* The unit's place is within x. */
__device__ __forceinline__ bool hn_last_within(const HnCudaConvLastArgs &a, int32_t place, int32_t unit)
{
    const int32_t y = (place >> 16) + (unit >> 16), x = (int32_t)(int16_t)place + (unit & 0xffff);
    return (uint32_t)y < (uint32_t)a.height.in && (uint32_t)x < (uint32_t)a.width.in;
}

/* One sum by plain operations; packed: the channel's weights. */
template <typename T>
__device__ __noinline__ float hn_last_plain(const HnCudaConvLastArgs &a, int32_t pixel, const T *packed)
{
    const HnCudaLastUnit *units = hn_at<const HnCudaLastUnit>(a.units);
    const HnLastPixel p = hn_last_pixel(a, pixel);
    constexpr int UNIT = 16 / (int)sizeof(T);
    float sum = 0;
#pragma unroll 1
    for (int32_t i = 0; i < a.stages * HN_CUDA_LAST_UNITS; i++) {
        const HnCudaLastUnit u = units[i];
        const bool in = hn_last_within(a, p.place, u.place);
        const T *x = hn_at<const T>(a.x) + (int64_t)(p.at + u.pixels) * a.x_pitch + u.channel;
#pragma unroll 1
        for (int k = 0; k < u.bytes / (int)sizeof(T); k++)
            sum += hn_load(packed + (int64_t)i * UNIT + k) * (in ? hn_load(x + k) : 0.0f);
    }
    return sum;
}

/* How a warp multiplies a stage: fragments of its part of the tile. */
template <typename T, int DOWN, int ACROSS> struct HnLastWarp {
    HnConvSums<T, DOWN, ACROSS> sums;
    static constexpr int PATTERN = 128;

    __device__ void start()
    {
        sums.start();
    }
    __device__ void multiply(const uint8_t *xs, const uint8_t *ws, int down, int across, int32_t stage)
    {
        const int lane = threadIdx.x % HN_WARP;
        const int x_line = down + lane % 16, w_line = across + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int step = 0; step < HN_CUDA_LAST_UNITS / 2; step++) {
            uint4 p[DOWN];
            uint32_t q[ACROSS][2];
#pragma unroll
            for (int d = 0; d < DOWN; d++) {
                uint32_t r[4];
                hn_fragments<false>(r, xs + (x_line + d * 16) * HN_CUDA_LAST_LINE +
                                           ((step * 2 + lane / 16) ^ x_line % 8) * 16);
                p[d] = make_uint4(r[0], r[1], r[2], r[3]);
            }
#pragma unroll
            for (int c = 0; c < ACROSS; c += 2)
                hn_fragments<false>(&q[c][0], ws + (w_line + c * 8) * HN_CUDA_LAST_LINE +
                                                  ((step * 2 + lane / 8 % 2) ^ w_line % 8) * 16);
            sums.add(p, q);
        }
        if (stage % 2 == 1)
            sums.renew();
    }
    /* This thread's copies are there. */
    __device__ void copied()
    {
    }
    /* Nobody reads the stage any more. */
    __device__ void done()
    {
    }
    __device__ void end()
    {
        sums.renew();
    }
};

template <typename T, int WARPS_DOWN, int WARPS_ACROSS, int DOWN, int ACROSS, int N_STAGES>
using HnLastWarpOf = HnLastWarp<T, DOWN, ACROSS>;

template <class How, typename T, int WARPS_DOWN, int WARPS_ACROSS, int DOWN, int ACROSS, int N_STAGES>
__device__ __forceinline__ void hn_conv_last(const HnCudaConvLastArgs &a)
{
    typedef HnLastForm<T, WARPS_DOWN, WARPS_ACROSS, DOWN, ACROSS, N_STAGES> F;
    constexpr int UNIT = 16 / (int)sizeof(T);
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ int32_t last;
    uint8_t *room = shared + (-hn_shared(shared) & (How::PATTERN - 1));
    const int tid = threadIdx.x, lane = tid % HN_WARP, warp = tid / HN_WARP;
    const int down = warp % WARPS_DOWN * (DOWN * 16), across = warp / WARPS_DOWN * (ACROSS * 8);
    const int unit = tid % HN_CUDA_LAST_UNITS, line = tid / HN_CUDA_LAST_UNITS;
    const int piece = line * HN_CUDA_LAST_LINE + (unit ^ line % 8) * 16;

    const int32_t row = (int32_t)(blockIdx.x % (uint32_t)a.rows), rest = (int32_t)(blockIdx.x / (uint32_t)a.rows);
    const int32_t split = (int32_t)((uint32_t)rest % (uint32_t)a.splits), column = rest / a.splits;
    const int32_t tile = column * a.rows + row, from = split * a.share, stages = min(a.share, a.stages - from);
    const int32_t first_pixel = column * F::PIXELS, first_channel = row * F::CHANNELS;
    const T *x = hn_at<const T>(a.x);
    const HnCudaLastUnit *units = hn_at<const HnCudaLastUnit>(a.units) + from * HN_CUDA_LAST_UNITS + unit;
    const int64_t weights = (int64_t)a.stages * (HN_CUDA_LAST_LINE / (int)sizeof(T)); /* of a channel */
    const T *packed = hn_at<const T>(a.packed) + first_channel * weights;
    const T *w = packed + line * weights + (from * HN_CUDA_LAST_UNITS + unit) * UNIT;

    HnLastPixel pixel[F::X_LINES];
#pragma unroll
    for (int k = 0; k < F::X_LINES; k++)
        pixel[k] = hn_last_pixel(a, first_pixel + line + k * F::APART);
    HnCudaLastUnit next = units[0];
    const auto copy = [&](int32_t stage) {
        if (stage < stages) {
            uint8_t *to = room + stage % F::STAGES * F::STAGE + piece;
            const HnCudaLastUnit u = next;
            if (stage + 1 < stages)
                next = units[(stage + 1) * HN_CUDA_LAST_UNITS];
#pragma unroll
            for (int k = 0; k < F::X_LINES; k++) {
                const bool in = hn_last_within(a, pixel[k].place, u.place);
                const T *p = x + ((int64_t)(pixel[k].at + u.pixels) * a.x_pitch + u.channel);
                hn_copy_16(to + k * (F::APART * HN_CUDA_LAST_LINE), in ? p : x, in ? 16 : 0);
            }
#pragma unroll
            for (int k = 0; k < F::W_LINES; k++)
                hn_copy_16(to + F::X_BYTES + k * (F::APART * HN_CUDA_LAST_LINE),
                           w + k * (F::APART * weights) + stage * (HN_CUDA_LAST_UNITS * UNIT), 16);
        }
        hn_copies_close();
    };
    for (int s = 0; s < F::STAGES - 1; s++)
        copy(s);

    How how;
    how.start();
#pragma unroll 1
    for (int32_t s = 0; s < stages; s++) {
        hn_copies_wait<F::STAGES - 2>();
        how.copied();
        __syncthreads();
        const uint8_t *xs = room + s % F::STAGES * F::STAGE;
        if constexpr (How::PATTERN == 128)
            copy(s + F::STAGES - 1);
        how.multiply(xs, xs + F::X_BYTES, down, across, s);
        if constexpr (How::PATTERN != 128)
            copy(s + F::STAGES - 1); /* meanwhile */
        how.done();
    }
    how.end();
    hn_copies_wait<0>();
    __syncthreads();

    float *out = reinterpret_cast<float *>(room);
#pragma unroll
    for (int d = 0; d < DOWN; d++)
#pragma unroll
        for (int c = 0; c < ACROSS; c++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *reinterpret_cast<float2 *>(out + (down + d * 16 + h * 8 + lane / 4) * F::PITCH + across + c * 8 +
                                            lane % 4 * 2) =
                    make_float2(how.sums.sum[d][c][h * 2], how.sums.sum[d][c][h * 2 + 1]);
    __syncthreads();

    /* units of results: channels first */
    constexpr int ACROSS_UNITS = F::CHANNELS / UNIT, ALL = F::PIXELS * ACROSS_UNITS, LINES = F::THREADS / ACROSS_UNITS;
    constexpr int EACH = ALL / F::THREADS, AT_ONCE = EACH < 4 ? EACH : 4;
    static_assert(F::THREADS % ACROSS_UNITS == 0 && EACH % AT_ONCE == 0, "a thread's results are of the same channels");
    const int at_channel = tid % ACROSS_UNITS * UNIT, at_line = tid / ACROSS_UNITS;
    if (a.splits > 1) {
        float *parts = hn_at<float>(a.parts) + (int64_t)tile * a.splits * (F::PIXELS * F::CHANNELS);
        for (int k = 0; k < EACH; k++) {
            const int l = at_line + k * LINES;
#pragma unroll
            for (int e = 0; e < UNIT; e += 4)
                *reinterpret_cast<float4 *>(parts + (split * F::PIXELS + l) * F::CHANNELS + at_channel + e) =
                    *reinterpret_cast<const float4 *>(out + l * F::PITCH + at_channel + e);
        }
        __threadfence();
        __syncthreads();
        if (tid == 0) {
            const uint32_t n = atomicAdd(hn_at<uint32_t>(a.done) + tile, 1u);
            last = n == (uint32_t)a.splits - 1;
            if (last)
                hn_at<uint32_t>(a.done)[tile] = 0; /* for the next launch */
        }
        __syncthreads();
        if (!last)
            return;
        __threadfence();
        /* many of them on their way: what one waits for is memory */
#pragma unroll 1
        for (int k = 0; k < EACH; k += AT_ONCE) {
            float v[AT_ONCE * UNIT];
#pragma unroll
            for (int e = 0; e < AT_ONCE * UNIT; e++)
                v[e] = 0;
#pragma unroll 2
            for (int32_t i = 0; i < a.splits; i++) {
                float4 q[AT_ONCE * UNIT / 4];
#pragma unroll
                for (int e = 0; e < AT_ONCE * UNIT; e += 4)
                    q[e / 4] = __ldcg(reinterpret_cast<const float4 *>(
                        parts + (i * F::PIXELS + at_line + (k + e / UNIT) * LINES) * F::CHANNELS + at_channel +
                        e % UNIT));
#pragma unroll
                for (int e = 0; e < AT_ONCE * UNIT; e += 4) {
                    v[e] += q[e / 4].x;
                    v[e + 1] += q[e / 4].y;
                    v[e + 2] += q[e / 4].z;
                    v[e + 3] += q[e / 4].w;
                }
            }
#pragma unroll
            for (int e = 0; e < AT_ONCE * UNIT; e++)
                out[(at_line + (k + e / UNIT) * LINES) * F::PITCH + at_channel + e % UNIT] = v[e];
        }
        if (a.plain)
            __syncthreads();
    }
    const auto plain_sum = [&](int l, int channel, float v) {
        return sizeof(T) == 4 && !isfinite(v) ? hn_last_plain(a, first_pixel + l, packed + channel * weights) : v;
    };
    const int32_t plane = a.height.out * a.width.out;
    if (a.plain && plane % UNIT == 0 && a.y % 16 == 0) {
        constexpr int SIDE = 4; /* units of pixels that threads side by side store */
#pragma unroll 1
        for (int i = tid; i < ALL; i += F::THREADS) {
            const int l = (i / (SIDE * F::CHANNELS) * SIDE + i % SIDE) * UNIT, c = i / SIDE % F::CHANNELS;
            const int32_t channel = first_channel + c, pixel = first_pixel + l, image = pixel / plane;
            if (pixel >= a.pixels || channel >= a.channels)
                continue;
            const int64_t at = ((int64_t)image * a.channels + channel) * plane + (pixel - image * plane);
            const float bias = a.bias != 0 ? hn_load(hn_at<const T>(a.bias) + channel) : 0.0f;
            float v[UNIT];
#pragma unroll
            for (int e = 0; e < UNIT; e++)
                v[e] = plain_sum(l + e, c, out[(l + e) * F::PITCH + c]) + bias;
            hn_end<T, UNIT>(a.end, v, channel, [&](int k) { return at + k; });
            hn_store_line<T, UNIT>(hn_at<T>(a.y) + at, v, UNIT);
        }
        return;
    }
    if (a.plain) {
        constexpr int WIDE = F::PIXELS < F::THREADS ? F::PIXELS : F::THREADS;
#pragma unroll 1
        for (int i = tid; i < ALL * UNIT; i += F::THREADS) {
            const int l = i / WIDE % (F::PIXELS / WIDE) * WIDE + i % WIDE, c = i / F::PIXELS;
            const int32_t channel = first_channel + c;
            if (first_pixel + l >= a.pixels || channel >= a.channels)
                continue;
            const int32_t image = (first_pixel + l) / plane;
            const int64_t at = ((int64_t)image * a.channels + channel) * plane + (first_pixel + l - image * plane);
            float v[1] = { plain_sum(l, c, out[l * F::PITCH + c]) };
            v[0] += a.bias != 0 ? hn_load(hn_at<const T>(a.bias) + channel) : 0.0f;
            hn_end<T, 1>(a.end, v, channel, [&](int) { return at; });
            hn_store(hn_at<T>(a.y) + at, v[0]);
        }
        return;
    }
    const int32_t channel = first_channel + at_channel, count = min(UNIT, a.channels - channel);
    if (count <= 0)
        return;
    float bias[UNIT];
#pragma unroll
    for (int e = 0; e < UNIT; e++)
        bias[e] = a.bias != 0 && e < count ? hn_load(hn_at<const T>(a.bias) + channel + e) : 0.0f;
#pragma unroll 1
    for (int k = 0; k < EACH; k += AT_ONCE) {
        float v[AT_ONCE * UNIT];
        int32_t at[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int l = at_line + (k + i) * LINES;
            at[i] = first_pixel + l < a.pixels ? first_pixel + l : -1;
#pragma unroll
            for (int e = 0; e < UNIT; e += 4) {
                const float4 q = *reinterpret_cast<const float4 *>(out + l * F::PITCH + at_channel + e);
                v[i * UNIT + e] = q.x;
                v[i * UNIT + e + 1] = q.y;
                v[i * UNIT + e + 2] = q.z;
                v[i * UNIT + e + 3] = q.w;
            }
            if (sizeof(T) == 4 && at[i] >= 0)
#pragma unroll
                for (int e = 0; e < UNIT; e++)
                    if (e < count)
                        v[i * UNIT + e] = plain_sum(l, at_channel + e, v[i * UNIT + e]);
#pragma unroll
            for (int e = 0; e < UNIT; e++)
                v[i * UNIT + e] += bias[e];
        }
        hn_end_lines<T, AT_ONCE, UNIT>(a.end, v, channel, count, at);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (at[i] >= 0)
                hn_store_line<T, UNIT>(hn_at<T>(a.y) + at[i] * a.y_pitch + channel, v + i * UNIT, count);
    }
}
