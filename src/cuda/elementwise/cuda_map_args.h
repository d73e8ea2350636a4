/*
 * One function of elements that lie side by side, or that repeat in a simple way, for host and device.
 */
#pragma once

#include "cuda/move/cuda_divide.h"

/* Instructions (run/element_codes.def) that there is such a kernel for: of few registers, so that more of a block's
 * loads are on their way; and of more. */
#define HN_CUDA_MAPS(DO) \
    DO(abs)              \
    DO(ceil)             \
    DO(clip)             \
    DO(floor)            \
    DO(hardsigmoid)      \
    DO(hardswish)        \
    DO(leakyrelu)        \
    DO(neg)              \
    DO(relu)             \
    DO(round)            \
    DO(square)
#define HN_CUDA_MAPS_OF_TWO(DO) \
    DO(add)                     \
    DO(sub)                     \
    DO(mul)                     \
    DO(max)                     \
    DO(min)                     \
    DO(prelu)
#define HN_CUDA_LONG_MAPS(DO) \
    DO(elu)                   \
    DO(erf)                   \
    DO(exp)                   \
    DO(gelu)                  \
    DO(gelu_tanh)             \
    DO(log)                   \
    DO(reciprocal)            \
    DO(sigmoid)               \
    DO(softplus)              \
    DO(sqrt)                  \
    DO(swish)                 \
    DO(tanh)
#define HN_CUDA_LONG_MAPS_OF_TWO(DO) DO(div)

#define HN_CUDA_MAP_BYTES 16 /* that a thread reads at once */
#define HN_CUDA_MAP_THREADS 128
#define HN_CUDA_MAP_TIMES 2 /* so often, before it computes */

enum {
    HN_CUDA_MAP_DENSE,   /* as the result's elements lie */
    HN_CUDA_MAP_NUMBER,  /* one for all of them */
    HN_CUDA_MAP_ROW,     /* again and again */
    HN_CUDA_MAP_CHANNEL, /* each for a run of them, and that again and again */
};

/* Which of its elements belongs to pack i of the result: i / run modulo n. */
typedef struct {
    int32_t kind;
    HnDivisor run, n; /* of a row n is its packs, of channels they themselves */
} HnCudaMapSource;

/* z = f(x), z = f(x, y); elements begin at multiples of HN_CUDA_MAP_BYTES */
typedef struct {
    uint64_t z, x, y;
    int64_t n;
    int32_t code;
    float a, b;
    HnCudaMapSource from[2];
} HnCudaMapArgs;
