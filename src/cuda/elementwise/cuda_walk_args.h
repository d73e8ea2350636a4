/*
 * How operands that broadcast lie under the elements of a result, for host and device: the result's axes, where those
 * that all operands walk through as one are one, and each operand's strides along them.
 */
#pragma once

#include <stdint.h>

#define HN_CUDA_AXES 32 /* HN_MAX_RANK */

enum {
    HN_CUDA_DENSE,  /* as the result's elements lie */
    HN_CUDA_NUMBER, /* one for all of them */
    HN_CUDA_STRIDED
};

/* Quotients by n of what is below 2^31: (x + high half of x * mul) >> shift. */
typedef struct {
    int64_t n;
    uint32_t mul, shift;
} HnCudaAxis;

typedef struct {
    int64_t total; /* elements of the result */
    int32_t ndim;
    int32_t narrow; /* total is below 2^31 */
    int32_t quads;  /* four elements from a multiple of four on are on one row */
    int32_t unused;
} HnCudaShape;

typedef struct {
    HnCudaShape shape;
    HnCudaAxis axis[HN_CUDA_AXES];
} HnCudaWalk;

typedef struct {
    int64_t kind;
    int64_t stride[HN_CUDA_AXES];
} HnCudaSeen;
