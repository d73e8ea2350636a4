#pragma once

#include <stdint.h>

/* x and y: [outer][n][inner] */
typedef struct {
    uint64_t x, y;
    int64_t outer, n, inner;
    int32_t logs;   /* logarithms of the shares */
    int32_t vector; /* rows: four elements at a time */
} HnCudaSoftmaxArgs;
