#pragma once

#include <stdint.h>

#define HN_CUDA_SPATIAL 3 /* depth, height, width; those that are not there are of size 1 */

/* HnWindowAxis; all positions that windows look at fit 32 bits. */
typedef struct {
    int32_t in, out, kernel, stride, dilation, pad, pad_end;
} HnCudaWindowAxis;
