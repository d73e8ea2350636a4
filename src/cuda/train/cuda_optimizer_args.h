#pragma once

#include <stdint.h>

#define HN_CUDA_STATES 3

/* f32[n] each: weights and state, what becomes of them, and the gradient */
typedef struct {
    uint64_t in[HN_CUDA_STATES], out[HN_CUDA_STATES], dw;
    uint64_t hyper; /* f32[HN_HYPERS]; 0: of a moving average that is always made */
    int64_t n;
    int32_t first; /* of the blocks that are its own */
    float decay;
} HnCudaOptimized;

typedef struct {
    float momentum, epsilon;
    float new1, new2, keep2; /* 1 - beta1, 1 - beta2, beta2 */
    int32_t states;
} HnCudaOptimizer;

#define HN_CUDA_OPTIMIZERS 40 /* of a launch */

typedef struct {
    HnCudaOptimizer how;
    int32_t weights, blocks;
    HnCudaOptimized weight[HN_CUDA_OPTIMIZERS];
} HnCudaOptimizersArgs;

#define HN_CUDA_NORM_INPUTS 128 /* of a launch */
#define HN_CUDA_NORM_CHUNK 8192 /* elements whose squares are one sum */

typedef struct {
    uint64_t x; /* f32[n] */
    int64_t n;
    int64_t first; /* its chunks are numbered from here on */
} HnCudaNormInput;

typedef struct {
    uint64_t sums;        /* f64[chunks] */
    int64_t chunks, from; /* of all inputs; of this launch's first one */
    int32_t inputs;
    HnCudaNormInput input[HN_CUDA_NORM_INPUTS];
} HnCudaNormArgs;

typedef struct {
    uint64_t sums, hyper, next, norm; /* next: hyper'; norm: f32, may be absent */
    int64_t chunks;
    double limit;
} HnCudaClipArgs;
