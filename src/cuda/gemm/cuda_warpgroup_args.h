/*
 * Products of warpgroups, compute capability 9.0: what the host says, and what both sides know of tiles.
 */
#pragma once

#include "cuda/core/tensor_map.h"
#include "cuda/gemm/cuda_product_args.h"

typedef struct {
    HnCuTensorMap a, b; /* of lines of 128 bytes; axes: along a line, lines, stacks */
    HnCudaProductArgs product;
    int32_t a_stacked, b_stacked; /* the operand has stacks; else all use the same one */
    int32_t y_wide;               /* results can be written 16 bytes at a time, and an addend is one for each column */
} HnCudaWarpgroupArgs;

/* b of f32, [stacks][k][n] with any strides, as [stacks][hi, lo][n][line]. */
typedef struct {
    uint64_t from, to;
    int64_t n, k, stacks;
    int64_t row, col, step; /* strides in elements: of k, of columns, of stacks */
    int64_t line;           /* a multiple of 4, k at least */
} HnCudaSplitArgs;
#define HN_WARPGROUP_SPLIT_THREADS 256

/* A warpgroup copies, the others multiply, each 64 rows of the block's tile. */
#define HN_WARPGROUP_THREADS 128
#define HN_WARPGROUP_ROWS 64
#define HN_WARPGROUP_STAGE(rows, columns) (128 * ((rows) + (columns))) /* bytes: a line of each row and column */
#define HN_WARPGROUP_OUT 8192                                          /* bytes: 64 x 64 halves on their way out */
/* Bytes of shared memory; its start is rounded up to 1024. */
#define HN_WARPGROUP_HALF_BYTES(rows, columns, stages) \
    (1280 + (stages)*HN_WARPGROUP_STAGE(rows, columns) + (rows) / HN_WARPGROUP_ROWS * HN_WARPGROUP_OUT)
/* Of f32 b is there as it came, twice, and in two parts. */
#define HN_WARPGROUP_F32_BYTES(rows, columns) \
    (1280 + HN_WARPGROUP_F32_STAGES(rows, columns) * HN_WARPGROUP_STAGE(rows, 2 * (columns)) + 2 * 128 * (columns))
#define HN_WARPGROUP_HALF_STAGES(rows, columns) ((columns) == 256 ? 4 : (rows) == 128 ? 6 : 8)
#define HN_WARPGROUP_F32_STAGES(rows, columns) ((columns) == 64 ? 3 : 4)
/* Blocks of a multiprocessor: small tiles of f32 leave room for another one. */
#define HN_WARPGROUP_F32_TOGETHER(rows, columns) ((rows) + (columns) <= 128 ? 2 : 1)
