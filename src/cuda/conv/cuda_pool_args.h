#pragma once

#include "cuda/conv/cuda_window_args.h"
#include "cuda/move/cuda_divide.h"

/* x: [planes][in...], y: [planes][out...]; of a gradient, dx lies as x does, dy as y. */
typedef struct {
    uint64_t x, y, places, dx, dy; /* places: i64, where each largest element was; 0: not wanted */
    HnCudaWindowAxis axis[HN_CUDA_SPATIAL];
    int64_t planes;
    int32_t count_pad;
    int32_t by_columns; /* places as if the first axis were adjacent */
    int32_t sums;       /* a gradient of sums, not of means */
} HnCudaPoolArgs;

/* Windows in planes, x: [planes][height][width]; fewer than HN_DIVIDE_LIMIT elements on both sides. */
typedef struct {
    uint64_t x, y;
    uint32_t n; /* windows */
    int32_t count_pad;
    HnCudaWindowAxis height, width;
    HnDivisor out_height, out_width;
} HnCudaPlanePoolArgs;

/* x: [planes][n], y: [planes] */
typedef struct {
    uint64_t x, y;
    int64_t planes, n;
    int32_t mean; /* else the largest */
} HnCudaGlobalPoolArgs;
