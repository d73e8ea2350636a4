#pragma once

#include "cuda/elementwise/cuda_walk_args.h"

enum {
    HN_CUDA_ADD,
    HN_CUDA_SUB,
    HN_CUDA_MUL,
    HN_CUDA_DIV,
    HN_CUDA_MOD, /* with the sign of the divisor */
    HN_CUDA_REM, /* with the sign of the dividend */
    HN_CUDA_MAX,
    HN_CUDA_MIN,
    HN_CUDA_BITS_AND,
    HN_CUDA_BITS_OR,
    HN_CUDA_BITS_XOR,
    HN_CUDA_EQUAL, /* from here on truth values */
    HN_CUDA_GREATER,
    HN_CUDA_GREATEROREQUAL,
    HN_CUDA_LESS,
    HN_CUDA_LESSOREQUAL
};

/* z = f(x, y) */
typedef struct {
    uint64_t z, x, y;
    int64_t f;
    HnCudaWalk walk;
    HnCudaSeen seen[2];
} HnCudaPairArgs;

/* z = c ? x : y, of elements of one size */
typedef struct {
    uint64_t z, c, x, y;
    HnCudaWalk walk;
    HnCudaSeen seen[3];
} HnCudaWhereArgs;
