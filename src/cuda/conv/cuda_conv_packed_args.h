#pragma once

#include "cuda/elementwise/cuda_end_args.h"
#include "cuda/conv/cuda_window_args.h"

/*
 * A convolution whose weights were packed. Terms of a sum are ordered by taps, then channels, and taken by units of 16
 * bytes: so many channels of one tap. A stage is eight units of all rows and columns of a tile.
 *
 * Packed weights are [group][16 rows][stage][step 4][lane 32][words 4]: the fragments of tensor cores, whose rows are
 * output channels.
 */
#define HN_CUDA_CONV_UNITS 8           /* of a stage */
#define HN_CUDA_CONV_STEPS 4           /* of tensor cores in a stage */
#define HN_CUDA_CONV_PACKED_BYTES 2048 /* of 16 rows in a stage */
#define HN_CUDA_CONV_PART_UNITS 1024   /* of a part of the terms, at most: a list in shared memory */

/* Forms, named by the tile of a block: warps that share its rows, its columns, and the steps of a stage; of each warp,
 * 16 rows and 8 columns of fragments; stages of x that are on their way while one is multiplied. */
#define HN_CUDA_CONV_16x32 1, 1, 4, 1, 4, 2
#define HN_CUDA_CONV_32x32 2, 1, 4, 1, 4, 2
#define HN_CUDA_CONV_64x64 2, 2, 1, 2, 4, 1
#define HN_CUDA_CONV_64x64_deep 2, 2, 2, 2, 4, 2 /* where there are few blocks */
#define HN_CUDA_CONV_64x128 2, 4, 1, 2, 4, 1

/* Of cuda_conv_window.cuh: warps that share rows and columns; 16 rows and 8 columns of fragments; units that a thread
 * gathers in a stage. */
#define HN_CUDA_CONV_WINDOW_64x64 2, 2, 2, 4, 2
#define HN_CUDA_CONV_WINDOW_64x128 2, 4, 2, 4, 1

/* Bytes of shared memory for stages of units and weights, or for the sums of the warps; behind them is the list. */
#define HN_CUDA_CONV_STAGES(rows, columns, fetched) \
    (((fetched) + 2) * ((rows) / 16 * HN_CUDA_CONV_PACKED_BYTES) + 2 * ((columns)*128))
#define HN_CUDA_CONV_SUMS(rows, columns, deep) ((deep) * (rows) * ((columns) + 4) * 4)
#define HN_CUDA_CONV_SHARED(rows, columns, deep, fetched)                                 \
    (HN_CUDA_CONV_STAGES(rows, columns, fetched) > HN_CUDA_CONV_SUMS(rows, columns, deep) \
         ? HN_CUDA_CONV_STAGES(rows, columns, fetched)                                    \
         : HN_CUDA_CONV_SUMS(rows, columns, deep))

/* offset: of its first element from the place in x of a pixel's first tap. place: depth << 24 | height << 16 | width <<
 * 4 | channels, the rest of which are 0. */
typedef struct {
    int32_t offset;
    uint32_t place;
} HnCudaConvUnit;

typedef struct {
    uint64_t x, packed, units, bias, y;
    uint64_t parts, done; /* f32 [tile][splits][rows][columns], and how many parts of each tile there are, 0 at first */
    HnCudaWindowAxis axis[HN_CUDA_SPATIAL];
    int64_t pixels, x_plane, y_plane;
    int64_t columns;                           /* tiles of them */
    int32_t rows, splits;                      /* tiles of rows; parts of the terms */
    int32_t stages, share;                     /* stages, of a part at most */
    int32_t groups, in_channels, out_channels; /* channels of a group */
    /* of cuda_conv_window.cuh: tiles of an image; the width of one, as a power of two; places of x that one looks at,
     * and where their list is in shared memory */
    int32_t down, across, shift, places, list;
    HnCudaEnd end;
} HnCudaConvPackedArgs;
