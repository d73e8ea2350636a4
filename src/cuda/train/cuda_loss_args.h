#pragma once

#include <stdint.h>

#include "cuda/core/complaint_args.h"

/* Rows of n elements, `inner` apart; of input a, what the model made, and b, what it should be, or of labels. A block
 * takes `width` rows at a time, a power of 2. */
typedef struct {
    uint64_t a, b;
    uint64_t labels;  /* i32 or i64 for each row */
    uint64_t dy;      /* of a gradient: its factor, one number ... */
    uint64_t y;       /* ... and what it becomes, like a; of a loss one number */
    uint64_t partial; /* of a loss: f64[parts], sums of blocks */
    int64_t rows, n, inner, parts;
    int64_t ignore_index;
    HnCudaComplaint complaint; /* of labels */
    float smoothing, temperature;
    int32_t standardize, probabilities, label_bytes, width;
} HnCudaLossArgs;
