#pragma once

#include <stdint.h>

/* x as [outer, size, inner], of which each scale has a block of the middle axis, or of all (HnFakeGrid). */
typedef struct {
    uint64_t y, x, scale, zero, dy; /* zero: 0 where all are 0 */
    uint64_t parts;                 /* of gradients of scales: float [parts][scales] */
    int64_t n, size, inner;
    int64_t block, blocks; /* along the middle axis */
    int32_t blocked;       /* each index of the other axes has a scale of its own, too */
    int32_t one;           /* a single scale */
    float lowest, highest;
    int64_t scales, n_parts;
} HnCudaFakeArgs;

/* Gradients of scales: sums of parts times 1 / sqrt(elements * levels) */
typedef struct {
    uint64_t ds, parts, zero;
    int64_t scales, n_parts;
    int32_t gain; /* else the factor is 1 */
    double elements, lowest, highest;
} HnCudaFakeSumArgs;
