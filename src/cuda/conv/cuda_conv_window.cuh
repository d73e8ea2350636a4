/*
 * Convolutions on tensor cores whose windows overlap, of packed weights: a block reads each element of x that its tile
 * of an image looks at once, and multiplies it for all taps.
 *
 * Terms are ordered by pieces of 128 bytes of channels, then taps, then channels: a stage is a tap of such a piece.
 * The piece that comes next is gathered a bit in each stage.
 */
#pragma once

#include "cuda/conv/cuda_conv_packed.cuh"

template <typename T, int WARPS_DOWN, int WARPS_ACROSS, int DOWN, int ACROSS, int JOBS>
using HnConvWindowForm = HnConvForm<T, WARPS_DOWN, WARPS_ACROSS, 1, DOWN, ACROSS, 1>;

/* JOBS: units that a thread gathers in each stage. */
template <typename T, int WARPS_DOWN, int WARPS_ACROSS, int DOWN, int ACROSS, int JOBS>
__device__ __forceinline__ void hn_conv_window(const HnCudaConvPackedArgs &a)
{
    typedef HnConvWindowForm<T, WARPS_DOWN, WARPS_ACROSS, DOWN, ACROSS, JOBS> F;
    typedef typename HnConvBits<T>::Bits Bits;
    constexpr int UNIT = HnConvBits<T>::UNIT, LINES = F::THREADS / F::COLUMNS;
    extern __shared__ __align__(128) uint8_t room[];
    const int tid = threadIdx.x, lane = tid % HN_WARP, warp = tid / HN_WARP;
    const int down = warp % WARPS_DOWN * DOWN, across = warp / WARPS_DOWN * ACROSS * 8;
    const HnCudaWindowAxis &high = a.axis[1], &wide = a.axis[2];
    const int taps = high.kernel * wide.kernel, chunks = a.stages / taps;
    const int width = (1 << a.shift) + wide.kernel - 1, places = a.places, b_bytes = places * 128;
    uint8_t *lines = room + F::AHEAD * F::A_BYTES;
    int32_t *offset = reinterpret_cast<int32_t *>(room + a.list); /* of each place in a plane of x; < 0: outside */

    int32_t row, group, tx, ty;
    int64_t i = hn_divide(blockIdx.x, a.rows, row);
    i = hn_divide(i, a.groups, group);
    i = hn_divide(i, a.across, tx);
    const int64_t image = hn_divide(i, a.down, ty);
    const int32_t top = ty * (F::COLUMNS >> a.shift), left = tx << a.shift;
    const Bits *x = hn_at<const Bits>(a.x) + (image * a.groups + group) * a.in_channels * a.x_plane;
    const int64_t pack_step = (int64_t)a.stages * HN_CUDA_CONV_PACKED_BYTES;
    const uint8_t *packed =
        hn_at<const uint8_t>(a.packed) + ((int64_t)group * a.rows + row) * (F::ROWS / 16) * pack_step;

    const auto copy = [&](int32_t stage) {
        if (stage < a.stages)
            for (int k = tid; k < F::A_BYTES / 16; k += F::THREADS) {
                const int at = k * 16 % HN_CUDA_CONV_PACKED_BYTES, of = k * 16 / HN_CUDA_CONV_PACKED_BYTES;
                hn_copy_16(room + stage % F::AHEAD * F::A_BYTES + k * 16,
                           packed + of * pack_step + (int64_t)stage * HN_CUDA_CONV_PACKED_BYTES + at, 16);
            }
        hn_copies_close();
    };
    for (int s = 0; s < F::AHEAD - 1; s++)
        copy(s);
    for (int k = tid; k < places; k += F::THREADS) {
        const int32_t y = top - high.pad + k / width, z = left - wide.pad + k % width;
        offset[k] = (uint32_t)y < (uint32_t)high.in && (uint32_t)z < (uint32_t)wide.in ? y * wide.in + z : -1;
    }
    __syncthreads();

    /* A job is a unit of a place: `at` of them are done, places first. */
    Bits next[JOBS][UNIT];
    const int jobs = places * HN_CUDA_CONV_UNITS;
    const auto fetch = [&](int chunk, int at) {
#pragma unroll
        for (int k = 0; k < JOBS; k++) {
            const int job = at + k * F::THREADS + tid, unit = job / places;
            const int first = (chunk * HN_CUDA_CONV_UNITS + unit) * UNIT;
            const int32_t o = job < jobs ? offset[job - unit * places] : -1;
            const int count = o < 0 ? 0 : a.in_channels - first;
            const Bits *p = x + first * a.x_plane + o;
#pragma unroll
            for (int e = 0; e < UNIT; e++, p += a.x_plane)
                next[k][e] = e < count ? *p : (Bits)0;
        }
    };
    const auto store = [&](uint8_t *to, int at) {
#pragma unroll
        for (int k = 0; k < JOBS; k++) {
            const int job = at + k * F::THREADS + tid, unit = job / places, line = job - unit * places;
            if (job < jobs)
                *reinterpret_cast<uint4 *>(to + line * 128 + (unit ^ line % 8) * 16) = hn_conv_words<T>(next[k], 0);
        }
    };
    for (int at = 0; at < jobs; at += JOBS * F::THREADS) {
        fetch(0, at);
        store(lines, at);
    }

    int first[ACROSS / 2]; /* places that lane names for pairs of columns of fragments */
#pragma unroll
    for (int c = 0; c < ACROSS / 2; c++) {
        const int p = across + c * 16 + lane / 16 * 8 + lane % 8;
        first[c] = (p >> a.shift) * width + (p & ((1 << a.shift) - 1));
    }
    HnConvSums<T, DOWN, ACROSS> sums;
    sums.start();
    int32_t stage = 0;
    for (int chunk = 0; chunk < chunks; chunk++) {
        const uint8_t *bs = lines + chunk % 2 * b_bytes;
        uint8_t *other = lines + (chunk + 1) % 2 * b_bytes;
        int at = chunk + 1 < chunks ? 0 : jobs, dx = 0, to = 0;
        for (int tap = 0; tap < taps; tap++, stage++) {
            const uint8_t *as = room + stage % F::AHEAD * F::A_BYTES;
            hn_copies_wait<F::AHEAD - 2>();
            __syncthreads();
            copy(stage + F::AHEAD - 1);
            if (tap > 0 && at < jobs) {
                store(other, at);
                at += JOBS * F::THREADS;
            }
            if (at < jobs)
                fetch(chunk + 1, at);
#pragma unroll
            for (int step = 0; step < HN_CUDA_CONV_STEPS; step++) {
                uint4 w[DOWN];
                uint32_t v[ACROSS][2];
#pragma unroll
                for (int d = 0; d < DOWN; d++)
                    w[d] = *reinterpret_cast<const uint4 *>(as + (down + d) * HN_CUDA_CONV_PACKED_BYTES +
                                                            (step * HN_WARP + lane) * 16);
#pragma unroll
                for (int c = 0; c < ACROSS; c += 2) {
                    const int line = first[c / 2] + to, piece = step * 2 + lane / 8 % 2;
                    hn_fragments<false>(&v[c][0], bs + line * 128 + (piece ^ line % 8) * 16);
                }
                sums.add(w, v);
            }
            if (stage % 2 == 1)
                sums.renew();
            to++;
            if (++dx == wide.kernel) {
                dx = 0;
                to += width - wide.kernel;
            }
        }
        /* what is left where there are few taps */
        for (bool fetched = true; at < jobs; fetched = false) {
            if (!fetched)
                fetch(chunk + 1, at);
            store(other, at);
            at += JOBS * F::THREADS;
        }
    }
    sums.renew();
    hn_copies_wait<0>();
    __syncthreads();

    float *out = reinterpret_cast<float *>(room);
    hn_mma_results(sums.sum, [&](int r, int c, float v) { out[(down * 16 + r) * F::PITCH + across + c] = v; });
    __syncthreads();
    const int col = tid % F::COLUMNS;
    const int32_t oy = top + (col >> a.shift), ox = left + (col & ((1 << a.shift) - 1));
    if (oy >= high.out || ox >= wide.out)
        return;
    const HnConvPixel pixel = hn_conv_pixel(a, (image * high.out + oy) * wide.out + ox, group);
    const int rows = min(F::ROWS, a.out_channels - row * F::ROWS);
#pragma unroll 1
    for (int r = tid / F::COLUMNS; r < rows; r += LINES)
        hn_conv_put<T>(a, pixel, packed, row * F::ROWS, r, group, out[r * F::PITCH + col]);
}
