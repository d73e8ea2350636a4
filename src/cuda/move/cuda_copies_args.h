#pragma once

#include "cuda/move/cuda_divide.h"

#define HN_CUDA_COPIES 64 /* in one launch, at most */

/* n elements, runs of which lie a distance apart on both sides. */
typedef struct {
    uint64_t y, x;
    uint32_t n, y_row, x_row; /* from run to run, in elements */
    HnDivisor run;
} HnCudaRuns;

typedef struct {
    HnCudaRuns part[HN_CUDA_COPIES]; /* a row of blocks for each */
} HnCudaCopiesArgs;
