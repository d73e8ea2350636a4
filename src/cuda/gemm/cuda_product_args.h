#pragma once

#include <stdint.h>

#include "cuda/elementwise/cuda_end_args.h"

#define HN_CUDA_STACK_AXES 12

/* y[s][i][j] = end(alpha * (sum over k of a[s][i][k] * b[s][k][j]) + beta * c[i][j]); strides in elements. */
typedef struct {
    uint64_t a, b, c, y; /* c 0: none */
    uint64_t parts;      /* f32 [splits][stacks][m][n]: sums of a part of k each, in scratch memory; 0: none */
    uint64_t counts;     /* u32, zeros: of each tile, where several blocks make parts of it; 0: others add these up */
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col, y_row, y_col;
    int64_t stacks;
    int64_t splits, chunk; /* of k: each of so many, a multiple of 64 */
    int64_t dims[HN_CUDA_STACK_AXES], a_step[HN_CUDA_STACK_AXES], b_step[HN_CUDA_STACK_AXES]; /* axes of the stacks */
    int32_t axes;
    int32_t a_wide, b_wide; /* lines of that operand can be read 16 bytes at a time */
    float alpha, beta;
    HnCudaEnd end;    /* its channels are columns, or, ... */
    int32_t end_rows; /* ... where a and b were exchanged, rows */
} HnCudaProductArgs;

/* Tiles of results of a block on tensor cores. */
#define HN_CUDA_TILE_SMALL 64
#define HN_CUDA_TILE_LARGE 128
#define HN_CUDA_TILE_STAGES 3
/* Bytes of shared memory of tiles of a and b: lines of 64 bytes, padded. */
#define HN_CUDA_TILE_BYTES(rows, columns) (HN_CUDA_TILE_STAGES * 80 * ((rows) + (columns)))

#define HN_CUDA_PLAIN_TILE 64
#define HN_CUDA_PLAIN_THREADS 256
#define HN_CUDA_FEW_ROWS 8      /* that a block reads b once for */
#define HN_CUDA_FEW_THREADS 256 /* three such blocks of one row are on a multiprocessor at once */
#define HN_CUDA_FEW_COLUMNS 4   /* of a warp that goes along k */
#define HN_CUDA_ROWS_THREADS 256
