#pragma once

#include "cuda/elementwise/cuda_end_args.h"
#include "cuda/conv/cuda_window_args.h"

#define HN_CUDA_DEPTHWISE_THREADS 128

/* Channels of x that are a group each: channel c of y [planes][height][width] reads c / each, and its own taps w
 * [channels][taps]. axis: height and width. */
typedef struct {
    uint64_t x, w, bias, y;
    HnCudaWindowAxis axis[2];
    int64_t threads;          /* that have something to do: a strip of a column of a plane each */
    int32_t strips, channels; /* of a plane; of y */
    int32_t each;             /* channels of y for one of x */
    HnCudaEnd end;
} HnCudaDepthwiseArgs;
