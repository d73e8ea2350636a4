#pragma once

#include <stdint.h>

/* Integers, by their bits in memory; those below 8 bits lie several in a byte, the first one in its low bits. */
typedef enum {
    HN_CUDA_INT_U8,
    HN_CUDA_INT_I8,
    HN_CUDA_INT_U16,
    HN_CUDA_INT_I16,
    HN_CUDA_INT_I32,
    HN_CUDA_INT_U4,
    HN_CUDA_INT_I4,
    HN_CUDA_INT_U2,
    HN_CUDA_INT_I2
} HnCudaInt;

typedef enum { HN_CUDA_REAL_F32, HN_CUDA_REAL_F16, HN_CUDA_REAL_BF16 } HnCudaReal;

/* n elements as [outer][size][inner]. Scales: one (scales 1); one for each index of `size` (block 0); or one for each
 * block of it, [outer][scales][inner]. */
typedef struct {
    uint64_t x, scale, zero, y; /* zero: 0 where absent */
    int64_t n, size, inner, scales, block;
    int32_t ints;       /* HnCudaInt, of x or of y */
    int32_t scale_type; /* HnCudaReal */
    int32_t precision;  /* HnCudaReal that quotients are rounded to */
} HnCudaQuantizeArgs;

/* y_scale, y_zero: 0 where they are not wanted. ranges: [parts][2] */
typedef struct {
    uint64_t x, y, y_scale, y_zero, ranges;
    int64_t n;
    int32_t parts;
} HnCudaDynamicArgs;
