#pragma once

#include "cuda/elementwise/cuda_end_args.h"
#include "cuda/conv/cuda_window_args.h"
#include "cuda/move/cuda_divide.h"

/*
 * A convolution of values channels last (core/cuda_layout.h). Terms of a sum are ordered by taps, then channels, and
 * taken by units of 16 bytes: so many channels of one tap. A stage is eight units of all pixels and channels of a tile.
 * Packed weights are [channel of y][units of all stages].
 */
#define HN_CUDA_LAST_UNITS 8         /* of a stage */
#define HN_CUDA_LAST_LINE 128        /* bytes of them */
#define HN_CUDA_LAST_REACH (1 << 14) /* sizes and places of x are below it */

/* Forms, named by the tile of a block, pixels by channels: warps that share its pixels and channels; of each warp, 16
 * pixels and 8 channels of fragments; stages that are there or on their way. */
#define HN_CUDA_LAST_128x128 2, 2, 4, 8, 3
#define HN_CUDA_LAST_128x64 2, 2, 4, 4, 3
#define HN_CUDA_LAST_128x32 4, 1, 2, 4, 3
#define HN_CUDA_LAST_64x64 2, 2, 2, 4, 4
#define HN_CUDA_LAST_64x32 4, 1, 1, 4, 4
#define HN_CUDA_LAST_F32_128x64 4, 2, 2, 4, 3
#define HN_CUDA_LAST_F32_64x64 2, 2, 2, 4, 4
#define HN_CUDA_LAST_F32_64x32 2, 2, 2, 2, 4

/* The same of warpgroups, which read stages where they are: four warps of each share 64 pixels. */
#define HN_CUDA_LAST_GROUP_128x256 8, 1, 1, 32, 4
#define HN_CUDA_LAST_GROUP_128x128 8, 1, 1, 16, 3
#define HN_CUDA_LAST_GROUP_128x64 8, 1, 1, 8, 3
#define HN_CUDA_LAST_GROUP_64x128 4, 1, 1, 16, 4
#define HN_CUDA_LAST_GROUP_64x64 4, 1, 1, 8, 4
#define HN_CUDA_LAST_PATTERN 1024 /* bytes, that stages of theirs begin at a multiple of */

/* Bytes of shared memory: the stages, or the sums of a tile. */
#define HN_CUDA_LAST_STAGES(pixels, channels, stages) ((stages) * ((pixels) + (channels)) * HN_CUDA_LAST_LINE)
#define HN_CUDA_LAST_SUMS(pixels, channels) ((pixels) * ((channels) + 8) * 4)
#define HN_CUDA_LAST_SHARED(pixels, channels, stages)                                    \
    (HN_CUDA_LAST_STAGES(pixels, channels, stages) > HN_CUDA_LAST_SUMS(pixels, channels) \
         ? HN_CUDA_LAST_STAGES(pixels, channels, stages)                                 \
         : HN_CUDA_LAST_SUMS(pixels, channels))

/* From the place of a pixel's first tap: rows << 16 | columns, and pixels, to that of the unit's; its first channel,
 * and bytes, without what fills the line. Units that fill the last stage are far outside of x. Copies are of 16 bytes
 * or none. */
typedef struct {
    int32_t place, pixels, channel, bytes;
} HnCudaLastUnit;

typedef struct {
    uint64_t x, packed, units, bias, y;
    uint64_t parts,
        done; /* f32 [tile][splits][pixels][channels], and how many parts of each tile there are, 0 at first */
    HnCudaWindowAxis height, width;
    HnDivisor of_width, of_height; /* of y */
    int64_t x_pitch, y_pitch;      /* elements from a pixel to the next */
    int32_t pixels, channels;      /* of all images of y; of y */
    int32_t rows, splits;          /* tiles of channels; parts of the terms */
    int32_t stages, share;         /* stages, of a part at most */
    int32_t plain;                 /* y is plain */
    HnCudaEnd end;
} HnCudaConvLastArgs;
