#pragma once

#include <stdint.h>

/* x and y: [samples][channels][inner]; each element with `below` and `above` neighbouring channels */
typedef struct {
    uint64_t x, y;
    int64_t samples, channels, inner, below, above;
    float alpha, beta, bias; /* alpha: of one channel */
} HnCudaLrnArgs;
