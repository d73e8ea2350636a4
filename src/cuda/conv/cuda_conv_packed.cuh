/*
 * Convolutions on tensor cores, of packed weights (cuda_conv_packed_args.h).
 *
 * A block computes a tile of rows (output channels) by columns (pixels of all images). Weights come by asynchronous
 * copies as they are; units of x are gathered to registers while the stage before is multiplied, and lie in shared
 * memory as lines of 128 bytes for each pixel, whose pieces of 16 bytes are exchanged, so that neither stores nor loads
 * of eight lines meet in a bank.
 *
 * Warps of a block share rows, columns, and the steps of a stage. Where blocks share the terms, too, the one that comes
 * last adds all parts in their order.
 */
#pragma once

#include "cuda/elementwise/cuda_end.cuh"
#include "cuda/conv/cuda_conv_packed_args.h"
#include "cuda/conv/cuda_conv_sums.cuh"
#include "cuda/conv/cuda_window.cuh"

template <typename T> struct HnConvBits {
    typedef uint16_t Bits;
    static constexpr int UNIT = 8; /* elements of a unit */
};
template <> struct HnConvBits<float> {
    typedef uint32_t Bits;
    static constexpr int UNIT = 4;
};

/* --- places ------------------------------------------------------------------------------------------------------- */

struct HnConvPixel {
    int64_t x, y;  /* the place of its first tap in x, of its first channel in y; y < 0: there is no such pixel */
    int32_t at[3]; /* the first tap's */
};

__device__ inline HnConvPixel hn_conv_pixel(const HnCudaConvPackedArgs &a, int64_t i, int32_t group)
{
    const HnCudaWindowAxis *g = a.axis;
    int32_t q[3];
    HnConvPixel p = { 0, -1, { INT32_MIN / 2, 0, 0 } };
    if (i >= a.pixels)
        return p;
    const int64_t n = hn_place(i, g[0].out, g[1].out, g[2].out, q);
    for (int k = 0; k < 3; k++)
        p.at[k] = q[k] * g[k].stride - g[k].pad;
    const int64_t images = n * a.groups + group;
    p.x = images * a.in_channels * a.x_plane + ((int64_t)p.at[0] * g[1].in + p.at[1]) * g[2].in + p.at[2];
    p.y = images * a.out_channels * a.y_plane + ((int64_t)q[0] * g[1].out + q[1]) * g[2].out + q[2];
    return p;
}

/* Elements of the unit that a pixel has: 0 where the tap is outside of x. */
__device__ inline int hn_conv_count(const HnCudaConvPackedArgs &a, const HnConvPixel &p, uint32_t place)
{
    const bool in = (uint32_t)(p.at[0] + (int32_t)(place >> 24)) < (uint32_t)a.axis[0].in &&
                    (uint32_t)(p.at[1] + (int32_t)(place >> 16 & 255)) < (uint32_t)a.axis[1].in &&
                    (uint32_t)(p.at[2] + (int32_t)(place >> 4 & 4095)) < (uint32_t)a.axis[2].in;
    return in ? (int)(place & 15) : 0;
}

/* One sum of f32 by plain operations. packed: of the 16 rows that `row` is one of. */
__device__ inline float hn_conv_plain(const HnCudaConvPackedArgs &a, const HnConvPixel &p, const float *packed, int row)
{
    const HnCudaConvUnit *units = hn_at<const HnCudaConvUnit>(a.units);
    const float *x = hn_at<const float>(a.x) + p.x;
    float sum = 0;
#pragma unroll 1
    for (int32_t u = 0; u < a.stages * HN_CUDA_CONV_UNITS; u++) {
        const int count = (int)(units[u].place & 15), held = hn_conv_count(a, p, units[u].place);
        const float *w = packed + (int64_t)(u / 2) * (HN_WARP * 4) + row % 8 * 16 + row / 8 + u % 2 * 2;
#pragma unroll 1
        for (int i = 0; i < count; i++)
            sum += w[i * 4] * (held > 0 ? x[units[u].offset + i * a.x_plane] : 0.0f);
    }
    return sum;
}

/* A sum v of row `first` + r, of what is packed from row `first` on. What tensor cores made infinite or NaN of f32 is
 * computed again. */
template <typename T>
__device__ inline void hn_conv_put(const HnCudaConvPackedArgs &a, const HnConvPixel &p, const uint8_t *packed,
                                   int32_t first, int r, int32_t group, float v)
{
    const int64_t line = (int64_t)a.stages * HN_CUDA_CONV_PACKED_BYTES, at = p.y + (int64_t)(first + r) * a.y_plane;
    const int32_t channel = group * a.out_channels + first + r;
    if (sizeof(T) == sizeof(float) && !isfinite(v))
        v = hn_conv_plain(a, p, reinterpret_cast<const float *>(packed + r / 16 * line), r % 16);
    float result[1] = { a.bias != 0 ? v + hn_load(hn_at<const T>(a.bias) + channel) : v };
    hn_end<T, 1>(a.end, result, channel, [&](int) { return at; });
    hn_store(hn_at<T>(a.y) + at, result[0]);
}

/* --- the tile ----------------------------------------------------------------------------------------------------- */

/* Elements of AT_ONCE neighbouring pixels. */
template <typename T, int AT_ONCE> struct HnConvLoad {
    typedef typename HnConvBits<T>::Bits Bits;
};
template <> struct HnConvLoad<float, 4> {
    typedef uint4 Bits;
};
template <typename T> struct HnConvLoad<T, 4> {
    typedef uint2 Bits;
};

/* Words of a unit of pixel q of those that were loaded at once. */
template <typename T>
__device__ __forceinline__ uint4 hn_conv_words(const typename HnConvBits<T>::Bits (&v)[HnConvBits<T>::UNIT], int)
{
    if constexpr (sizeof(T) == 4)
        return make_uint4(v[0], v[1], v[2], v[3]);
    else
        return make_uint4(v[0] | (uint32_t)v[1] << 16, v[2] | (uint32_t)v[3] << 16, v[4] | (uint32_t)v[5] << 16,
                          v[6] | (uint32_t)v[7] << 16);
}
template <typename T> __device__ __forceinline__ uint4 hn_conv_words(const uint4 (&v)[4], int q)
{
    return q == 0   ? make_uint4(v[0].x, v[1].x, v[2].x, v[3].x)
           : q == 1 ? make_uint4(v[0].y, v[1].y, v[2].y, v[3].y)
           : q == 2 ? make_uint4(v[0].z, v[1].z, v[2].z, v[3].z)
                    : make_uint4(v[0].w, v[1].w, v[2].w, v[3].w);
}
__device__ __forceinline__ uint32_t hn_conv_pair(const uint2 &a, const uint2 &b, int q)
{
    return __byte_perm(q / 2 ? a.y : a.x, q / 2 ? b.y : b.x, q % 2 ? 0x7632 : 0x5410);
}
template <typename T> __device__ __forceinline__ uint4 hn_conv_words(const uint2 (&v)[8], int q)
{
    return make_uint4(hn_conv_pair(v[0], v[1], q), hn_conv_pair(v[2], v[3], q), hn_conv_pair(v[4], v[5], q),
                      hn_conv_pair(v[6], v[7], q));
}

/* Where piece `piece` of a line lies in it: elsewhere than those of the lines beside it, and of each fourth one. */
__device__ __forceinline__ int hn_conv_piece(int line, int piece)
{
    return (piece ^ line % 8 ^ line / 8 % 4) * 16;
}

template <typename T, int WARPS_DOWN, int WARPS_ACROSS, int WARPS_DEEP, int DOWN, int ACROSS, int FETCHED,
          int AT_ONCE = 1>
struct HnConvForm {
    static constexpr int WARPS = WARPS_DOWN * WARPS_ACROSS * WARPS_DEEP, THREADS = WARPS * HN_WARP;
    static constexpr int ROWS = WARPS_DOWN * DOWN * 16, COLUMNS = WARPS_ACROSS * ACROSS * 8;
    static constexpr int A_BYTES = ROWS / 16 * HN_CUDA_CONV_PACKED_BYTES, B_BYTES = COLUMNS * 128;
    static constexpr int AHEAD = FETCHED + 2,
                         PITCH = COLUMNS + 4; /* stages of weights that are there or on their way */
    static constexpr int SHARED = HN_CUDA_CONV_SHARED(ROWS, COLUMNS, WARPS_DEEP, FETCHED); /* and 8 for each unit */
    static constexpr int GATHERED = COLUMNS / AT_ONCE, EACH = HN_CUDA_CONV_UNITS * GATHERED / THREADS;
    static constexpr int SUMMED = ROWS * COLUMNS / THREADS < 8 ? ROWS * COLUMNS / THREADS : 8;
    static_assert(THREADS % COLUMNS == 0 && EACH > 0, "a thread gathers EACH units of AT_ONCE columns");
    static_assert(ACROSS % 2 == 0 && HN_CUDA_CONV_STEPS % WARPS_DEEP == 0, "pairs of fragments, shares of steps");
};

/* FETCHED: stages of x on their way to registers. AT_ONCE: pixels of a load, of which all or none are in x. */
template <typename T, int WARPS_DOWN, int WARPS_ACROSS, int WARPS_DEEP, int DOWN, int ACROSS, int FETCHED,
          int AT_ONCE = 1>
__device__ __forceinline__ void hn_conv_packed(const HnCudaConvPackedArgs &a)
{
    typedef HnConvForm<T, WARPS_DOWN, WARPS_ACROSS, WARPS_DEEP, DOWN, ACROSS, FETCHED, AT_ONCE> F;
    typedef typename HnConvLoad<T, AT_ONCE>::Bits Bits;
    constexpr int UNIT = HnConvBits<T>::UNIT, LINES = F::THREADS / F::COLUMNS;
    constexpr int GATHERED = F::GATHERED, GATHERERS = F::THREADS / GATHERED;
    extern __shared__ __align__(128) uint8_t room[];
    __shared__ int32_t last;
    HnCudaConvUnit *units = reinterpret_cast<HnCudaConvUnit *>(room + F::SHARED);
    const int tid = threadIdx.x, lane = tid % HN_WARP, warp = tid / HN_WARP;
    const int deep = warp / (WARPS_DOWN * WARPS_ACROSS), flat = warp % (WARPS_DOWN * WARPS_ACROSS);
    const int down = flat % WARPS_DOWN * DOWN, across = flat / WARPS_DOWN * ACROSS * 8;

    int32_t row, group, split;
    int64_t i = hn_divide(blockIdx.x, a.rows, row);
    i = hn_divide(i, a.groups, group);
    const int64_t at_column = hn_divide(i, a.splits, split);
    const int64_t tile = (at_column * a.groups + group) * a.rows + row;
    const int32_t from = split * a.share, stages = min(a.share, a.stages - from);
    const int64_t first_column = at_column * F::COLUMNS;
    const HnConvPixel source = hn_conv_pixel(a, first_column + tid % GATHERED * AT_ONCE, group);
    const T *x = hn_at<const T>(a.x) + source.x;
    const int64_t pack_step = (int64_t)a.stages * HN_CUDA_CONV_PACKED_BYTES;
    const uint8_t *packed =
        hn_at<const uint8_t>(a.packed) + ((int64_t)group * a.rows + row) * (F::ROWS / 16) * pack_step;

    const auto copy = [&](int32_t stage) {
        if (stage < stages)
            for (int k = tid; k < F::A_BYTES / 16; k += F::THREADS) {
                const int at = k * 16 % HN_CUDA_CONV_PACKED_BYTES, of = k * 16 / HN_CUDA_CONV_PACKED_BYTES;
                hn_copy_16(room + stage % F::AHEAD * F::A_BYTES + k * 16,
                           packed + of * pack_step + (int64_t)(from + stage) * HN_CUDA_CONV_PACKED_BYTES + at, 16);
            }
        hn_copies_close();
    };
    for (int s = 0; s < F::AHEAD - 1; s++)
        copy(s);
    for (int k = tid; k < stages * HN_CUDA_CONV_UNITS; k += F::THREADS)
        units[k] = hn_at<const HnCudaConvUnit>(a.units)[from * HN_CUDA_CONV_UNITS + k];
    __syncthreads();

    Bits next[FETCHED][F::EACH][UNIT];
    const auto fetch = [&](Bits(&to)[F::EACH][UNIT], int32_t stage) {
#pragma unroll
        for (int k = 0; k < F::EACH; k++) {
            const HnCudaConvUnit u = units[stage * HN_CUDA_CONV_UNITS + tid / GATHERED + k * GATHERERS];
            const int count = hn_conv_count(a, source, u.place);
            const T *p = x + u.offset;
#pragma unroll
            for (int e = 0; e < UNIT; e++, p += a.x_plane) {
                memset(&to[k][e], 0, sizeof(Bits));
                if (e < count)
                    to[k][e] = *reinterpret_cast<const Bits *>(p);
            }
        }
    };
    const auto store = [&](uint8_t *to, const Bits(&from)[F::EACH][UNIT]) {
#pragma unroll
        for (int k = 0; k < F::EACH; k++)
#pragma unroll
            for (int q = 0; q < AT_ONCE; q++) {
                const int line = tid % GATHERED * AT_ONCE + q, piece = tid / GATHERED + k * GATHERERS;
                *reinterpret_cast<uint4 *>(to + line * 128 + hn_conv_piece(line, piece)) = hn_conv_words<T>(from[k], q);
            }
    };

    HnConvSums<T, DOWN, ACROSS> sums;
    const auto multiply = [&](int32_t s, Bits(&x_of_s)[F::EACH][UNIT]) {
        const uint8_t *as = room + s % F::AHEAD * F::A_BYTES;
        uint8_t *bs = room + F::AHEAD * F::A_BYTES + s % 2 * F::B_BYTES;
        store(bs, x_of_s);
        hn_copies_wait<F::AHEAD - 2>();
        __syncthreads();
        copy(s + F::AHEAD - 1);
        if (s + FETCHED < stages)
            fetch(x_of_s, s + FETCHED);
#pragma unroll
        for (int k = 0; k < HN_CUDA_CONV_STEPS / WARPS_DEEP; k++) {
            const int step = k * WARPS_DEEP + deep;
            uint4 w[DOWN];
            uint32_t v[ACROSS][2];
#pragma unroll
            for (int d = 0; d < DOWN; d++)
                w[d] = *reinterpret_cast<const uint4 *>(as + (down + d) * HN_CUDA_CONV_PACKED_BYTES +
                                                        (step * HN_WARP + lane) * 16);
#pragma unroll
            for (int c = 0; c < ACROSS; c += 2) {
                const int line = across + c * 8 + lane / 16 * 8 + lane % 8, piece = step * 2 + lane / 8 % 2;
                hn_fragments<false>(&v[c][0], bs + line * 128 + hn_conv_piece(line, piece));
            }
            sums.add(w, v);
        }
        if (s % 2 == 1)
            sums.renew();
    };
    sums.start();
#pragma unroll
    for (int f = 0; f < FETCHED; f++)
        if (f < stages)
            fetch(next[f], f);
    for (int32_t s = 0; s < stages; s += FETCHED) {
#pragma unroll
        for (int f = 0; f < FETCHED; f++)
            if (s + f < stages)
                multiply(s + f, next[f]);
    }
    sums.renew();
    hn_copies_wait<0>();
    __syncthreads();

    float *out = reinterpret_cast<float *>(room);
    hn_mma_results(sums.sum,
                   [&](int r, int c, float v) { out[(deep * F::ROWS + down * 16 + r) * F::PITCH + across + c] = v; });
    __syncthreads();

    const int col = tid % F::COLUMNS;
    const HnConvPixel pixel = AT_ONCE == 1 ? source : hn_conv_pixel(a, first_column + col, group);
    float *parts = a.splits > 1 ? hn_at<float>(a.parts) + tile * a.splits * (F::ROWS * F::COLUMNS) : nullptr;
    const int rows = min(F::ROWS, a.out_channels - row * F::ROWS);
    const auto met = [&](int r) {
        float v = out[r * F::PITCH + col];
#pragma unroll
        for (int d = 1; d < WARPS_DEEP; d++)
            v += out[(d * F::ROWS + r) * F::PITCH + col];
        return v;
    };
    if (a.splits > 1) {
        for (int r = tid / F::COLUMNS; r < rows; r += LINES)
            parts[(split * F::ROWS + r) * F::COLUMNS + col] = met(r);
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
        /* some rows at once: what one waits for is memory */
#pragma unroll 1
        for (int first = tid / F::COLUMNS; first < rows; first += LINES * F::SUMMED) {
            float v[F::SUMMED];
#pragma unroll
            for (int i = 0; i < F::SUMMED; i++)
                v[i] = 0;
#pragma unroll 2
            for (int32_t k = 0; k < a.splits; k++)
#pragma unroll
                for (int i = 0; i < F::SUMMED; i++)
                    if (first + i * LINES < rows)
                        v[i] += __ldcg(parts + (k * F::ROWS + first + i * LINES) * F::COLUMNS + col);
#pragma unroll
            for (int i = 0; i < F::SUMMED; i++)
                if (first + i * LINES < rows)
                    out[(first + i * LINES) * F::PITCH + col] = v[i];
        }
    }
    if (pixel.y < 0)
        return;
#pragma unroll 1
    for (int r = tid / F::COLUMNS; r < rows; r += LINES) {
        const float v = a.splits > 1 ? out[r * F::PITCH + col] : met(r);
        hn_conv_put<T>(a, pixel, packed, row * F::ROWS, r, group, v);
    }
}
