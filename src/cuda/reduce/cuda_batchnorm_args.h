#pragma once

#include <stdint.h>

/* Elements of a channel: [samples][inner], samples channels * inner apart, are cut into parts. */
typedef struct {
    int64_t samples, channels, inner, parts, part;
    int32_t width; /* channels that a block takes at a time: 1, or a warp's of one element a sample */
} HnCudaChannels;

/* x, y like x; all else: [channels] */
typedef struct {
    uint64_t x, scale, bias, mean, var, y;
    uint64_t next_mean, next_var, batch_mean, batch_spread; /* of training; absent where nobody wants them */
    uint64_t partial;                                       /* f32[channels, parts, 2] */
    uint64_t factors;                                       /* f32[channels, 2]: y = x * a + b */
    HnCudaChannels shape;
    float epsilon, momentum;
    int32_t inverse; /* batch_spread is 1 / deviation, not the variance */
    int32_t vector;
    int32_t weight_type, moment_type; /* HN_ELEMENT_*: of scale and bias; of mean, var and what follows them */
} HnCudaBatchNormArgs;

typedef struct {
    uint64_t dy, x, scale, mean, spread, bias, dx, dscale, dbias;
    uint64_t partial; /* f32[channels, parts, 2] */
    uint64_t factors; /* f32[channels, 2]: what is added to dx, as it is and times x - mean */
    HnCudaChannels shape;
    float epsilon, lo, hi;
    int32_t frozen; /* `spread` is the variance, not 1 / deviation, and does not depend on x */
    int32_t mask;   /* HnMask */
    int32_t vector;
    int32_t weight_type, moment_type;
} HnCudaBatchNormGradArgs;
