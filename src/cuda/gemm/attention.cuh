/*
 * What kernels of attention share: where vectors lie, and what becomes of a product of a query and a key.
 */
#pragma once

#include "cuda/core/device.cuh"
#include "cuda/gemm/cuda_attention_args.h"

#define HN_LOG2_E 1.4426950408889634f

template <typename T>
__device__ inline const T *attention_vector(const HnCudaHeads &h, int64_t b, int64_t head, int64_t t)
{
    return hn_at<const T>(h.data) + b * h.batch + head * h.head + t * h.token;
}
template <typename T>
__device__ inline const T *attention_key(const HnCudaAttentionArgs &a, int64_t b, int64_t g, int64_t t)
{
    return t < a.past ? attention_vector<T>(a.past_k, b, g, t) : attention_vector<T>(a.k, b, g, t - a.past);
}
template <typename T>
__device__ inline const T *attention_value(const HnCudaAttentionArgs &a, int64_t b, int64_t g, int64_t t)
{
    return t < a.past ? attention_vector<T>(a.past_v, b, g, t) : attention_vector<T>(a.v, b, g, t - a.past);
}

/* Keys that queries up to `last` may see end there. */
__device__ inline int64_t attention_end(const HnCudaAttentionArgs &a, int64_t last)
{
    int64_t end = a.past + a.keys;
    end = a.mask_kind != HN_CUDA_MASK_NONE && a.mask_length < end ? a.mask_length : end;
    end = a.causal && a.past + last + 1 < end ? a.past + last + 1 : end;
    return a.right >= 0 && a.past + last + a.right + 1 < end ? a.past + last + a.right + 1 : end;
}
/* ... and begin here for those from `first` on. */
__device__ inline int64_t attention_begin(const HnCudaAttentionArgs &a, int64_t first)
{
    return a.left >= 0 && a.past + first > a.left ? a.past + first - a.left : 0;
}

/* The score of query i and key t, from their product. */
template <typename T>
__device__ inline float attention_score(const HnCudaAttentionArgs &a, int64_t b, int64_t h, int64_t i, int64_t t,
                                        float product)
{
    float s = product * a.scale;
    if (a.softcap > 0)
        s = tanhf(s / a.softcap) * a.softcap;
    if (t >= attention_end(a, i) || t < attention_begin(a, i))
        return -INFINITY;
    if (a.mask_kind == HN_CUDA_MASK_NONE)
        return s;
    const int64_t at = b * a.mask_steps[0] + h * a.mask_steps[1] + i * a.mask_steps[2] + t * a.mask_steps[3];
    if (a.mask_kind == HN_CUDA_MASK_BOOL)
        return hn_at<const uint8_t>(a.mask)[at] ? s : -INFINITY;
    const float m =
        a.mask_kind == HN_CUDA_MASK_F32 ? hn_at<const float>(a.mask)[at] : hn_load(hn_at<const T>(a.mask) + at);
    return a.hides && m == -INFINITY ? m : s + m;
}

/* What exponents are taken against: where nothing was seen yet, all are 0. */
__device__ inline float attention_base(float most)
{
    return most == -INFINITY ? 0.0f : most;
}
/* What a sum of values becomes. most, sum: of the scores and of their exponentials. */
__device__ inline float attention_result(const HnCudaAttentionArgs &a, float most, float sum, float values)
{
    if (most == -INFINITY)
        return a.dead;
    return a.guard && sum != sum ? 0.0f : values / sum;
}

/* 2 to the x. */
__device__ inline float attention_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline uint32_t attention_pair(hn_f16, float a, float b)
{
    const __half2 h = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&h);
}
__device__ inline uint32_t attention_pair(hn_bf16, float a, float b)
{
    const __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&h);
}
