#pragma once

#include "cuda/core/complaint_args.h"
#include "cuda/move/cuda_divide.h"

#define HN_CUDA_RANK 32 /* of a tensor, at most */

/* A tensor of indices. */
typedef struct {
    uint64_t data;
    int32_t wide; /* i64, else i32 */
    HnCudaComplaint complaint;
} HnCudaIndices;

/* y [outer][count][run] from x, whose rows `depth` indices each say: row k of outer o is at
 * o * x_outer + sum of index[o * at_outer + k * depth + d] * strides[d]; all in elements. */
typedef struct {
    uint64_t y, x;
    HnCudaIndices at;
    uint32_t n; /* elements of y */
    int32_t depth;
    int32_t zeros; /* indices outside, and those below 0, are rows of zeros */
    HnDivisor run, count;
    int64_t x_outer, at_outer;
    int64_t at_first; /* position of the first index, where they are a part of all */
    int64_t dims[HN_CUDA_RANK], strides[HN_CUDA_RANK];
} HnCudaGatherArgs;

/* Places of elements that an index each names along `axis`: the others are where they are in the indices' own shape. */
typedef struct {
    uint64_t y, x;
    HnCudaIndices at;
    uint32_t n;
    int32_t ndim;
    int64_t size, stride; /* of the axis */
    HnDivisor dims[HN_CUDA_RANK];
    int64_t strides[HN_CUDA_RANK]; /* that of the axis is 0 */
} HnCudaElementsArgs;
