#pragma once

#include <stdint.h>

/* x [outer][n][inner] of floats, y [outer][inner] of i64 */
typedef struct {
    uint64_t x, y;
    int64_t outer, n, inner;
    int32_t min, last; /* of equal ones the last */
} HnCudaArgArgs;
