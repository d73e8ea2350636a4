/*
 * Convolutions whose groups have one input channel: a thread computes ROWS results, one below the other, and reads each
 * line of x that they look at once.
 */
#pragma once

#include "cuda/elementwise/cuda_end.cuh"
#include "cuda/conv/cuda_depthwise_args.h"
#include "cuda/conv/cuda_window.cuh"

template <typename T, int TAPS, int STRIDE, int ROWS>
__device__ __forceinline__ void depthwise(const HnCudaDepthwiseArgs &a)
{
    constexpr int LINES = (ROWS - 1) * STRIDE + TAPS;
    const HnCudaWindowAxis &h = a.axis[0], &w = a.axis[1];
    int32_t column, strip, channel;
    int64_t i = hn_first();
    if (i >= a.threads)
        return;
    i = hn_divide(i, w.out, column);
    const int64_t plane = hn_divide(i, a.strips, strip), image = hn_divide(plane, a.channels, channel);
    const int32_t row = strip * ROWS, y0 = row * STRIDE - h.pad, x0 = column * STRIDE - w.pad;
    const T *x =
        hn_at<const T>(a.x) + ((image * (a.channels / a.each) + channel / a.each) * h.in + y0) * (int64_t)w.in + x0;
    float weight[TAPS][TAPS], sum[ROWS];
#pragma unroll
    for (int k = 0; k < TAPS * TAPS; k++)
        weight[k / TAPS][k % TAPS] = hn_load(hn_at<const T>(a.w) + (int64_t)channel * (TAPS * TAPS) + k);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum[r] = 0;
#pragma unroll
    for (int l = 0; l < LINES; l++, x += w.in) {
        float v[TAPS];
        const bool inside = (uint32_t)(y0 + l) < (uint32_t)h.in;
#pragma unroll
        for (int k = 0; k < TAPS; k++)
            v[k] = inside && (uint32_t)(x0 + k) < (uint32_t)w.in ? hn_load(x + k) : 0.0f;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (l >= r * STRIDE && l < r * STRIDE + TAPS) {
#pragma unroll
                for (int k = 0; k < TAPS; k++)
                    sum[r] += weight[l - r * STRIDE][k] * v[k];
            }
    }
    const float bias = a.bias != 0 ? hn_load(hn_at<const T>(a.bias) + channel) : 0.0f;
    const int64_t first = (plane * h.out + row) * w.out + column;
    const auto at = [&](int r) { return row + r < h.out ? first + (int64_t)r * w.out : -1; };
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum[r] += bias;
    hn_end<T, ROWS>(a.end, sum, channel, at);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (row + r < h.out)
            hn_store(hn_at<T>(a.y) + at(r), sum[r]);
}

/* --- lines of x and y that are multiples of four elements: a thread computes ROWS by 4 results ---------------------
 */

template <typename T> struct HnFour {
    typedef uint2 Bits;
};
template <> struct HnFour<float> {
    typedef uint4 Bits;
};

template <typename T> __device__ inline void hn_load_four(float *to, const T *from)
{
    const typename HnFour<T>::Bits bits = *reinterpret_cast<const typename HnFour<T>::Bits *>(from);
    T v[4];
    memcpy(v, &bits, sizeof v);
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = hn_load(&v[i]);
}
template <typename T> __device__ inline void hn_store_four(T *to, const float *from)
{
    T v[4];
    typename HnFour<T>::Bits bits;
#pragma unroll
    for (int i = 0; i < 4; i++)
        hn_store(&v[i], from[i]);
    memcpy(&bits, v, sizeof v);
    *reinterpret_cast<typename HnFour<T>::Bits *>(to) = bits;
}

/* Stride 1, as much padding on the left as the window has on that side. */
template <typename T, int TAPS, int ROWS> __device__ __forceinline__ void depthwise_fours(const HnCudaDepthwiseArgs &a)
{
    constexpr int LINES = ROWS - 1 + TAPS, SIDE = TAPS / 2;
    const HnCudaWindowAxis &h = a.axis[0], &w = a.axis[1];
    int32_t column, strip, channel;
    int64_t i = hn_first();
    if (i >= a.threads)
        return;
    i = hn_divide(i, w.out / 4, column);
    const int64_t plane = hn_divide(i, a.strips, strip), image = hn_divide(plane, a.channels, channel);
    const int32_t row = strip * ROWS, y0 = row - h.pad, x0 = column * 4;
    const T *x =
        hn_at<const T>(a.x) + ((image * (a.channels / a.each) + channel / a.each) * h.in + y0) * (int64_t)w.in + x0;
    float weight[TAPS * TAPS], sum[ROWS * 4];
#pragma unroll
    for (int k = 0; k < TAPS * TAPS; k++)
        weight[k] = hn_load(hn_at<const T>(a.w) + (int64_t)channel * (TAPS * TAPS) + k);
#pragma unroll
    for (int k = 0; k < ROWS * 4; k++)
        sum[k] = 0;
#pragma unroll
    for (int l = 0; l < LINES; l++, x += w.in) {
        float v[SIDE + 4 + SIDE];
        const bool inside = (uint32_t)(y0 + l) < (uint32_t)h.in;
#pragma unroll
        for (int k = 0; k < SIDE; k++) {
            const int before = k - SIDE, behind = 4 + k;
            v[k] = inside && x0 + before >= 0 && x0 + before < w.in ? hn_load(x + before) : 0.0f;
            v[SIDE + behind] = inside && x0 + behind < w.in ? hn_load(x + behind) : 0.0f;
        }
        v[SIDE] = v[SIDE + 1] = v[SIDE + 2] = v[SIDE + 3] = 0;
        if (inside && x0 < w.in)
            hn_load_four(v + SIDE, x);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (l >= r && l < r + TAPS) {
#pragma unroll
                for (int c = 0; c < 4; c++)
#pragma unroll
                    for (int k = 0; k < TAPS; k++)
                        sum[r * 4 + c] += weight[(l - r) * TAPS + k] * v[c + k];
            }
    }
    const float bias = a.bias != 0 ? hn_load(hn_at<const T>(a.bias) + channel) : 0.0f;
    const int64_t first = (plane * h.out + row) * w.out + x0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t line = first + (int64_t)r * w.out;
        float v[4];
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[c] = sum[r * 4 + c] + bias;
        if (row + r >= h.out)
            return;
        hn_end<T, 4>(a.end, v, channel, [&](int k) { return line + k; });
        hn_store_four(hn_at<T>(a.y) + line, v);
    }
}
