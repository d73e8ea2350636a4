#pragma once

#include <stdint.h>

/* dy, y, dx: [outer][n][inner] */
typedef struct {
    uint64_t dy, y, dx;
    int64_t outer, n, inner;
    int32_t logs; /* of LogSoftmax */
} HnCudaSoftmaxGradArgs;
