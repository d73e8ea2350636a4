#pragma once

#include <stdint.h>

#define HN_CUDA_AXES 16 /* of one kind, those side by side being one: half of HN_MAX_RANK */

/* Element i of these axes, the last of which is the fastest, lies at the sum of its indices times strides. */
typedef struct {
    int64_t dims[HN_CUDA_AXES], strides[HN_CUDA_AXES];
    int32_t n;
} HnCudaAxes;

/* What becomes of a sum: nothing, more arithmetic, or f32 whatever the results are. */
typedef enum {
    HN_CUDA_REDUCE_PLAIN,
    HN_CUDA_REDUCE_MEAN,
    HN_CUDA_REDUCE_ROOT,
    HN_CUDA_REDUCE_LOG,
    HN_CUDA_REDUCE_SHIFTED, /* shift + its logarithm */
    HN_CUDA_REDUCE_KEPT,
} HnCudaReduceLast;

typedef struct {
    uint64_t x, y;
    uint64_t partial; /* f32[outputs, parts], where there are several parts */
    uint64_t shift;   /* f32[outputs], of powers: what is taken off each exponent; infinite: nothing */
    HnCudaAxes kept, reduced;
    int64_t outputs, each; /* results; elements of one */
    int64_t parts, part;   /* of the elements of a result; elements of one part, the last one's fewer */
    int64_t inner;         /* columns: elements of the last axis, which is kept */
    int32_t group;         /* threads for a result: a power of 2, up to a warp */
    int32_t width, rows;   /* columns: results and rows that a block takes at a time */
    int32_t last;          /* HnCudaReduceLast */
    int32_t vector;        /* runs and rows: four elements at a time */
} HnCudaReduceArgs;
