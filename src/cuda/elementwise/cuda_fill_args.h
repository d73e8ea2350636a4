#pragma once

#include <stdint.h>

/* Elements of 16 bytes or a part of them, all alike. */
typedef struct {
    uint64_t z;
    int64_t bytes;
    uint64_t low, high; /* 16 bytes of them */
} HnCudaFillArgs;

/* z[i] = start + i * delta, by one element each */
typedef struct {
    uint64_t z, start, delta;
    int64_t n;
} HnCudaRangeArgs;

/* Truth values: NaN, or an infinity of a sign that counts. */
typedef struct {
    uint64_t z, x;
    int64_t n;
    int32_t nan, positive, negative;
} HnCudaIsArgs;
