#pragma once

#include <stdint.h>

typedef struct {
    uint64_t x, y, state; /* state: i64[2], seed and step */
    int64_t n;
    float scale; /* 1 / (1 - ratio) */
    uint32_t threshold, salt;
} HnCudaTrainDropoutArgs;
