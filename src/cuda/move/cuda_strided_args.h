#pragma once

#include "cuda/move/cuda_divide.h"

#define HN_CUDA_AXES 64 /* as many as two of a tensor's rank */
#define HN_CUDA_TILE_ROWS 8
#define HN_CUDA_WIDE_SIDE 64 /* of tiles that are moved by four elements */

/* y[k . ys] = x[k . xs] for all k within dims; distances in elements. */
typedef struct {
    uint64_t y, x;
    uint32_t n; /* elements; of tiles, how many there are */
    int32_t ndim;
    /* of tiles: m by n elements, those of a row of m side by side in x, those of a column side by side in y */
    uint32_t tile_m, tile_n;
    int64_t tile_x, tile_y; /* from column to column in x, from row to row in y */
    HnDivisor tiles_m, tiles_n;
    HnDivisor dims[HN_CUDA_AXES];
    int64_t ys[HN_CUDA_AXES], xs[HN_CUDA_AXES];
} HnCudaStridedArgs;
