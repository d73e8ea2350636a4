/*
 * What results of a convolution or a product go through before they are stored (cuda_end_args.h).
 */
#pragma once

#include "cuda/elementwise/cuda_end_args.h"
#include "cuda/core/cuda_lines.cuh"
#include "cuda/core/device.cuh"
#include "cuda/elementwise/element_functions.cuh"

/* What cuda_end.c takes. */
#define HN_END_FUNCTIONS(F) F(clip) F(hardsigmoid) F(hardswish) F(leakyrelu) F(relu) F(sigmoid) F(swish)
#define HN_END_PAIRS(F) F(add) F(div) F(mul) F(prelu) F(sub)

/* v: numbers that become what `d` makes of them, and of x. */
template <int N> __device__ __forceinline__ void hn_end_do(const HnCudaEndDo &d, float (&v)[N], const float (&x)[N])
{
#define FUNCTION(name)                           \
    case HN_DO_##name:                           \
        for (int k = 0; k < N; k++)              \
            v[k] = hn_do_##name(v[k], d.a, d.b); \
        break;
#define PAIR(name)                           \
    case HN_DO_##name:                       \
        for (int k = 0; k < N; k++)          \
            v[k] = hn_do_##name(v[k], x[k]); \
        break;
    switch (d.code) {
        HN_END_FUNCTIONS(FUNCTION)
        HN_END_PAIRS(PAIR)
    }
#undef FUNCTION
#undef PAIR
}

/* v: N results; take(d, x): the N numbers of d's operand that they meet. */
template <int N, class Take> __device__ inline void hn_end_with(const HnCudaEnd &e, float (&v)[N], Take take)
{
#pragma unroll 1
    for (int i = 0; i < e.n; i++) {
        const HnCudaEndDo &d = e.at[i];
        float x[N] = {};
        if (d.of != HN_CUDA_END_NONE)
            take(d, x);
        hn_end_do(d, v, x);
    }
}

/* channel(k): the result's; at(k): which element of all results it is, below 0 where there is none. */
template <typename T, int N, class Channel, class At>
__device__ inline void hn_end_of(const HnCudaEnd &e, float (&v)[N], Channel channel, At at)
{
    hn_end_with(e, v, [&](const HnCudaEndDo &d, float(&x)[N]) {
        if (d.of == HN_CUDA_END_ELEMENT) {
#pragma unroll
            for (int k = 0; k < N; k++)
                x[k] = at(k) >= 0 ? hn_load(hn_at<const T>(d.x) + at(k)) : 0.0f;
        } else {
#pragma unroll
            for (int k = 0; k < N; k++)
                x[k] = at(k) >= 0 ? hn_load(hn_at<const T>(d.x) + (d.of == HN_CUDA_END_ONE ? 0 : channel(k))) : 0.0f;
        }
    });
}

/* All of one channel. */
template <typename T, int N, class At>
__device__ inline void hn_end(const HnCudaEnd &e, float (&v)[N], int32_t channel, At at)
{
    hn_end_of<T, N>(
        e, v, [&](int) { return channel; }, at);
}

/* v: of N pixels `count` of UNIT channels, from this one on, channels last; at[k]: which pixel of all results k is,
 * below 0 where there is none. */
template <typename T, int N, int UNIT>
__device__ __forceinline__ void hn_end_lines(const HnCudaEnd &e, float (&v)[N * UNIT], int32_t channel, int count,
                                             const int32_t (&at)[N])
{
#pragma unroll 1
    for (int i = 0; i < e.n; i++) {
        const HnCudaEndDo &d = e.at[i];
        float x[N * UNIT];
        if (d.of == HN_CUDA_END_ELEMENT) {
#pragma unroll
            for (int k = 0; k < N; k++)
                hn_load_line<T, UNIT>(x + k * UNIT, hn_at<const T>(d.x) + max(at[k], 0) * d.pitch + channel);
        } else {
#pragma unroll
            for (int c = 0; c < UNIT; c++) {
                const int32_t of = d.of == HN_CUDA_END_ONE ? 0 : channel + min(c, count - 1);
                const float one = d.of == HN_CUDA_END_NONE ? 0.0f : hn_load(hn_at<const T>(d.x) + of);
#pragma unroll
                for (int k = 0; k < N; k++)
                    x[k * UNIT + c] = one;
            }
        }
        hn_end_do(d, v, x);
    }
}
