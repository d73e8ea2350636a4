#pragma once

#include "cuda/core/complaint_args.h"
#include "cuda/move/cuda_divide.h"

/* y [.., rows, cols]: x above the diagonal k, or below it, and zeros. */
typedef struct {
    uint64_t y, x, k; /* k: i64; 0: the diagonal is 0 */
    uint32_t n;
    int32_t upper;
    HnDivisor rows, cols;
} HnCudaTriluArgs;

/* y [outer][depth][inner]: values[1] where index [outer][inner] says, else values[0]. */
typedef struct {
    uint64_t y, index, values;
    uint32_t n;
    int32_t from_back; /* indices below 0 count from the back */
    HnDivisor depth, inner;
} HnCudaOneHotArgs;

/* Updates [outer][rows][run] go to y [outer][length][run], from row at[outer / per_batch] on, in a circle. */
typedef struct {
    uint64_t y, x, at; /* at: i64; 0: from the first row on */
    uint32_t n;
    int32_t circular;
    int64_t length;
    HnDivisor run, rows, per_batch;
    HnCudaComplaint complaint;
} HnCudaCacheArgs;
