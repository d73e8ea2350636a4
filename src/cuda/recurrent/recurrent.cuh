/*
 * What kernels of recurrent layers share: functions of gates, places of rows.
 */
#pragma once

#include "cuda/core/device.cuh"
#include "cuda/recurrent/cuda_recurrent_args.h"

enum { /* HnGateFunction */
       GATE_RELU,
       GATE_TANH,
       GATE_SIGMOID,
       GATE_AFFINE,
       GATE_LEAKY_RELU,
       GATE_THRESHOLDED_RELU,
       GATE_SCALED_TANH,
       GATE_HARD_SIGMOID,
       GATE_ELU,
       GATE_SOFTSIGN,
       GATE_SOFTPLUS
};

__device__ inline float gate_value(const HnCudaGate &a, float x)
{
    switch (a.f) {
    case GATE_RELU:
        return x > 0 ? x : 0;
    case GATE_TANH:
        return tanhf(x);
    case GATE_SIGMOID:
        return 1 / (1 + expf(-x));
    case GATE_AFFINE:
        return a.alpha * x + a.beta;
    case GATE_LEAKY_RELU:
        return x >= 0 ? x : a.alpha * x;
    case GATE_THRESHOLDED_RELU:
        return x >= a.alpha ? x : 0;
    case GATE_SCALED_TANH:
        return a.alpha * tanhf(a.beta * x);
    case GATE_HARD_SIGMOID:
        return fminf(fmaxf(a.alpha * x + a.beta, 0), 1);
    case GATE_ELU:
        return x >= 0 ? x : a.alpha * expm1f(x);
    case GATE_SOFTSIGN:
        return x / (1 + fabsf(x));
    default:
        return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
    }
}

/* The derivative where the value is y. */
__device__ inline float gate_slope(const HnCudaGate &a, float y)
{
    switch (a.f) {
    case GATE_RELU:
    case GATE_THRESHOLDED_RELU:
        return y > 0 ? 1 : 0;
    case GATE_TANH:
        return 1 - y * y;
    case GATE_SIGMOID:
        return y * (1 - y);
    case GATE_AFFINE:
        return a.alpha;
    case GATE_LEAKY_RELU:
        return y >= 0 ? 1 : a.alpha;
    case GATE_SCALED_TANH:
        return a.beta * (a.alpha - y * y / a.alpha);
    case GATE_HARD_SIGMOID:
        return y > 0 && y < 1 ? a.alpha : 0;
    case GATE_ELU:
        return y >= 0 ? 1 : y + a.alpha;
    case GATE_SOFTSIGN:
        return (1 - fabsf(y)) * (1 - fabsf(y));
    default:
        return -expm1f(-y);
    }
}

template <typename T> __device__ inline float element(uint64_t address, int64_t i)
{
    return address != 0 ? hn_load(hn_at<const T>(address) + i) : 0.0f;
}

__device__ inline int64_t length_of(const HnCudaLayer &l, uint64_t lens, int64_t b)
{
    return lens != 0 ? hn_at<const int32_t>(lens)[b] : l.steps;
}

__device__ inline bool goes_back(const HnCudaLayer &l, int64_t d)
{
    return l.backwards || d == 1;
}

/* Rows: of X; of Y, in rows of H; of a state; of what training keeps. */
__device__ inline int64_t x_row(const HnCudaLayer &l, int64_t t, int64_t b)
{
    return l.batch_first ? b * l.steps + t : t * l.batch + b;
}
__device__ inline int64_t kept_row(const HnCudaLayer &l, int64_t d, int64_t t, int64_t b)
{
    return (t * l.directions + d) * l.batch + b;
}
__device__ inline int64_t y_row(const HnCudaLayer &l, int64_t d, int64_t t, int64_t b)
{
    return l.batch_first ? (b * l.steps + t) * l.directions + d : kept_row(l, d, t, b);
}
__device__ inline int64_t state_row(const HnCudaLayer &l, int64_t d, int64_t b)
{
    return l.batch_first ? b * l.directions + d : d * l.batch + b;
}
