#pragma once

#include "cuda/move/cuda_divide.h"

#define HN_CUDA_TURN_TILE 64 /* pixels and channels of a block's tile */
#define HN_CUDA_TURN_THREADS 256

/* Plain elements [images][channels][pixels] and the same channels last, `pitch` elements from a pixel to the next. */
typedef struct {
    uint64_t plain, last;
    int64_t images, channels, pixels, pitch;
    int32_t across, down; /* tiles of pixels and of channels */
    int32_t wide;         /* planes begin at multiples of 16 bytes */
} HnCudaTurnArgs;
