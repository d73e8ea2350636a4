#pragma once

#include "cuda/elementwise/cuda_walk_args.h"

#define HN_CUDA_TERMS 8

/* z = (sum + x[0] + x[1] + ...) / share, rounded once */
typedef struct {
    uint64_t z, x[HN_CUDA_TERMS];
    uint64_t sum; /* double [total]: of earlier launches, and for later ones; 0: there are none */
    int32_t n, first, last;
    double share;
    HnCudaWalk walk;
    HnCudaSeen seen[HN_CUDA_TERMS];
} HnCudaSumArgs;
