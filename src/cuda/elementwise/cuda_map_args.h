/*
 * One function of elements that lie side by side, or of one number, for host and device.
 */
#pragma once

#include <stdint.h>

/* Instructions (run/element_codes.def) that there is such a kernel for. */
#define HN_CUDA_MAPS(DO) \
    DO(abs)              \
    DO(ceil)             \
    DO(clip)             \
    DO(elu)              \
    DO(erf)              \
    DO(exp)              \
    DO(floor)            \
    DO(gelu)             \
    DO(gelu_tanh)        \
    DO(hardsigmoid)      \
    DO(hardswish)        \
    DO(leakyrelu)        \
    DO(log)              \
    DO(neg)              \
    DO(reciprocal)       \
    DO(relu)             \
    DO(round)            \
    DO(sigmoid)          \
    DO(softplus)         \
    DO(sqrt)             \
    DO(square)           \
    DO(swish)            \
    DO(tanh)
#define HN_CUDA_MAPS_OF_TWO(DO) \
    DO(add)                     \
    DO(sub)                     \
    DO(mul)                     \
    DO(div)                     \
    DO(max)                     \
    DO(min)                     \
    DO(prelu)

#define HN_CUDA_MAP_BYTES 16 /* that a thread reads at once */
#define HN_CUDA_MAP_TIMES 2  /* so often, before it computes */

/* z = f(x), z = f(x, y); elements begin at multiples of HN_CUDA_MAP_BYTES */
typedef struct {
    uint64_t z, x, y;
    int64_t n;
    int32_t code, one_x, one_y; /* one_x: x is one number */
    float a, b;
} HnCudaMapArgs;
