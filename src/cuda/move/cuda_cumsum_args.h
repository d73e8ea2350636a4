#pragma once

#include <stdint.h>

/* x and y: [outer][n][inner] */
typedef struct {
    uint64_t x, y;
    int64_t outer, n, inner;
    int32_t product, exclusive, reverse;
} HnCudaCumArgs;
