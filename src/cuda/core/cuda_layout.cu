/*
 * Plain elements to channels last and back, by tiles of pixels and channels in shared memory; few channels without one.
 */
#include "cuda/core/cuda_layout_args.h"
#include "cuda/core/device.cuh"

#define TILE HN_CUDA_TURN_TILE
#define THREADS HN_CUDA_TURN_THREADS

template <typename B> struct Line {
    static constexpr int N = 16 / (int)sizeof(B); /* elements */
    B at[N];
    __device__ void load(const B *from)
    {
        const uint4 v = *reinterpret_cast<const uint4 *>(from);
        memcpy(at, &v, sizeof v);
    }
    __device__ void store(B *to) const
    {
        uint4 v;
        memcpy(&v, at, sizeof v);
        *reinterpret_cast<uint4 *>(to) = v;
    }
};

/* Where a block's tile begins. */
struct Place {
    int64_t image, channel, pixel;
    __device__ Place(const HnCudaTurnArgs &a)
    {
        const int64_t i = blockIdx.x / a.across;
        pixel = (int64_t)(blockIdx.x % a.across) * TILE;
        channel = i % a.down * TILE;
        image = i / a.down;
    }
};

/* A tile [channel][pixel], whose lines begin two words apart. */
template <typename B> struct Room {
    static constexpr int PITCH = TILE + 4 / (int)sizeof(B);
    B at[TILE * PITCH];
};

template <typename B> __device__ void turn_last(const HnCudaTurnArgs &a)
{
    typedef Line<B> L;
    __shared__ Room<B> room;
    const Place p(a);
    const B *plain = hn_at<const B>(a.plain) + (p.image * a.channels + p.channel) * a.pixels + p.pixel;
    const int channels = (int)min((int64_t)TILE, a.channels - p.channel),
              pixels = (int)min((int64_t)TILE, a.pixels - p.pixel);
    if (a.wide) {
        constexpr int EACH = TILE / L::N, TURNS = TILE * EACH / THREADS;
        L line[TURNS];
#pragma unroll
        for (int k = 0; k < TURNS; k++) {
            const int i = k * THREADS + threadIdx.x, c = i / EACH, q = i % EACH * L::N;
            if (c < channels && q < pixels)
                line[k].load(plain + c * a.pixels + q);
        }
#pragma unroll
        for (int k = 0; k < TURNS; k++) {
            const int i = k * THREADS + threadIdx.x, c = i / EACH, q = i % EACH * L::N;
#pragma unroll
            for (int e = 0; e < L::N; e++)
                if (c < channels && q < pixels)
                    room.at[c * Room<B>::PITCH + q + e] = line[k].at[e];
        }
    } else {
#pragma unroll 8
        for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
            const int c = i / TILE, q = i % TILE;
            if (c < channels && q < pixels)
                room.at[c * Room<B>::PITCH + q] = plain[c * a.pixels + q];
        }
    }
    __syncthreads();
    B *last = hn_at<B>(a.last) + (p.image * a.pixels + p.pixel) * a.pitch + p.channel;
#pragma unroll
    for (int i = threadIdx.x; i < TILE * TILE / L::N; i += THREADS) {
        const int c = i % (TILE / L::N) * L::N, q = i / (TILE / L::N);
        L line;
        if (c >= channels || q >= pixels)
            continue;
#pragma unroll
        for (int e = 0; e < L::N; e++)
            line.at[e] = c + e < channels ? room.at[(c + e) * Room<B>::PITCH + q] : (B)0;
        line.store(last + q * a.pitch + c);
    }
}

template <typename B> __device__ void turn_back(const HnCudaTurnArgs &a)
{
    typedef Line<B> L;
    __shared__ Room<B> room;
    constexpr int EACH = TILE / L::N, TURNS = TILE * EACH / THREADS;
    const Place p(a);
    const B *last = hn_at<const B>(a.last) + (p.image * a.pixels + p.pixel) * a.pitch + p.channel;
    const int channels = (int)min((int64_t)TILE, a.channels - p.channel),
              pixels = (int)min((int64_t)TILE, a.pixels - p.pixel);
    L line[TURNS];
#pragma unroll
    for (int k = 0; k < TURNS; k++) {
        const int i = k * THREADS + threadIdx.x, c = i % EACH * L::N, q = i / EACH;
        if (c < channels && q < pixels)
            line[k].load(last + q * a.pitch + c);
    }
#pragma unroll
    for (int k = 0; k < TURNS; k++) {
        const int i = k * THREADS + threadIdx.x, c = i % EACH * L::N, q = i / EACH;
#pragma unroll
        for (int e = 0; e < L::N; e++)
            if (c + e < channels && q < pixels)
                room.at[(c + e) * Room<B>::PITCH + q] = line[k].at[e];
    }
    __syncthreads();
    B *plain = hn_at<B>(a.plain) + (p.image * a.channels + p.channel) * a.pixels + p.pixel;
    if (a.wide) {
#pragma unroll
        for (int k = 0; k < TURNS; k++) {
            const int i = k * THREADS + threadIdx.x, c = i / EACH, q = i % EACH * L::N;
            if (c >= channels || q >= pixels)
                continue;
#pragma unroll
            for (int e = 0; e < L::N; e++)
                line[0].at[e] = room.at[c * Room<B>::PITCH + q + e];
            line[0].store(plain + c * a.pixels + q);
        }
        return;
    }
#pragma unroll 8
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int c = i / TILE, q = i % TILE;
        if (c < channels && q < pixels)
            plain[c * a.pixels + q] = room.at[c * Room<B>::PITCH + q];
    }
}

/* A thread for each pixel, whose channels are one line. */
template <typename B, bool BACK> __device__ void turn_few(const HnCudaTurnArgs &a)
{
    typedef Line<B> L;
    const int64_t i = hn_first();
    if (i >= a.images * a.pixels)
        return;
    const int64_t image = i / a.pixels, first = image * a.channels * a.pixels + (i - image * a.pixels);
    const int channels = (int)a.channels;
    L line;
    if (BACK)
        line.load(hn_at<const B>(a.last) + i * a.pitch);
#pragma unroll
    for (int c = 0; c < L::N; c++) {
        if (BACK && c < channels)
            hn_at<B>(a.plain)[first + c * a.pixels] = line.at[c];
        if (!BACK)
            line.at[c] = c < channels ? hn_at<const B>(a.plain)[first + c * a.pixels] : (B)0;
    }
    if (!BACK)
        line.store(hn_at<B>(a.last) + i * a.pitch);
}

#define DEFINE(bits, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS) turn_last_##bits(const __grid_constant__ HnCudaTurnArgs a) \
    {                                                                                                                \
        turn_last<type>(a);                                                                                          \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS) turn_back_##bits(const __grid_constant__ HnCudaTurnArgs a) \
    {                                                                                                                \
        turn_back<type>(a);                                                                                          \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                            \
        turn_last_few_##bits(const __grid_constant__ HnCudaTurnArgs a)                                               \
    {                                                                                                                \
        turn_few<type, false>(a);                                                                                    \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                            \
        turn_back_few_##bits(const __grid_constant__ HnCudaTurnArgs a)                                               \
    {                                                                                                                \
        turn_few<type, true>(a);                                                                                     \
    }
DEFINE(16, uint16_t)
DEFINE(32, uint32_t)
