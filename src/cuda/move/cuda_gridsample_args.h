#pragma once

#include "cuda/move/cuda_divide.h"

/* In the order of HnGridPadding (op/gridsample.h). */
enum { HN_CUDA_GRID_ZEROS, HN_CUDA_GRID_BORDER, HN_CUDA_GRID_REFLECTION };

#define HN_CUDA_GRID_CHANNELS 8 /* of a thread, for which it finds places once */

/* x [batch][channels][height][width], grid [batch][places][2], y [batch][channels][places] */
typedef struct {
    uint64_t x, grid, y;
    uint32_t n; /* batch * groups of channels * places */
    int32_t padding, align_corners;
    int64_t channels, height, width;
    HnDivisor places, groups;
} HnCudaGridArgs;
