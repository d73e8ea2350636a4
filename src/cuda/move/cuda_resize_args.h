#pragma once

#include "cuda/move/cuda_divide.h"

#define HN_CUDA_RESIZE_AXES 32

/* y[i, j, ...] = x[table[i], table[j], ...]; an axis whose table is -1 has its own indices. */
typedef struct {
    uint64_t y, x, table; /* i32 */
    uint32_t n;
    int32_t ndim;
    HnDivisor dims[HN_CUDA_RESIZE_AXES];  /* of y */
    int64_t strides[HN_CUDA_RESIZE_AXES]; /* of x */
    int64_t tables[HN_CUDA_RESIZE_AXES];  /* where in `table` the axis' indices begin */
} HnCudaNearestArgs;

#define HN_CUDA_RESIZE_ROWS 4 /* that a thread makes */

/* The same of [outer][rows][columns]; table: indices of rows, then of columns. */
typedef struct {
    uint64_t y, x, row_table, column_table;
    uint32_t n; /* threads */
    int32_t rows;
    int64_t in_rows, in_columns;
    HnDivisor columns, row_groups;
} HnCudaGridNearestArgs;

/* y [outer][out][inner] of x [outer][in][inner]: along the middle axis sums of weight[t] * x[at[t]], t from first[i] to
 * first[i + 1]. */
typedef struct {
    uint64_t y, x, first, at, weight; /* i32, i32, f32 */
    uint32_t n;
    int64_t in;
    HnDivisor out, inner;
} HnCudaMeanArgs;

/* What a place along an axis is made of: two places of the source, -1 for one that is not there, and their weights. */
typedef struct {
    int32_t at[2];
    float weight[2];
} HnCudaTaps;

/* y [outer][rows][columns][inner] of x, both axes at once; taps of rows, taps of columns. */
typedef struct {
    uint64_t y, x, row_taps, column_taps;
    uint32_t n;            /* threads */
    int32_t columns_first; /* sums along columns are within those along rows */
    int32_t rows;
    int64_t in_rows, in_columns;
    HnDivisor inner, columns, row_groups;
} HnCudaGridMeanArgs;
