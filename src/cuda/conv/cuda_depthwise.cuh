/*
 * Convolutions whose groups have one input channel: a thread computes ROWS results, one below the other, and reads each
 * line of x that they look at once.
 */
#pragma once

#include "cuda/conv/cuda_conv_end.cuh"
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
    const int64_t at = (plane * h.out + row) * w.out + column;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum[r] += bias;
    hn_end<T, ROWS>(a.end, sum, h.out - row, channel, at, w.out);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (row + r < h.out)
            hn_store(hn_at<T>(a.y) + at + (int64_t)r * w.out, sum[r]);
}
