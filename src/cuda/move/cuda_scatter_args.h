#pragma once

#include "cuda/move/cuda_gather_args.h"

/* What becomes of an element and its update: HnReduction (op/scatter.h). */
enum { HN_CUDA_SET, HN_CUDA_ADD, HN_CUDA_MUL, HN_CUDA_MAX, HN_CUDA_MIN };

/* How an update's row is found. */
enum { HN_CUDA_BY_TUPLES, HN_CUDA_BY_ELEMENTS, HN_CUDA_BY_PLACES };

/* Updates [count][run] go to rows of y [rows][run]: update i to row[i], or nowhere (HN_CUDA_NO_ROW). */
#define HN_CUDA_NO_ROW 0xffffffffu

typedef struct {
    uint64_t row; /* u32 [count] */
    uint32_t count, rows;
    int32_t how, depth;
    HnCudaElementsArgs elements; /* by elements; of tuples, the indices */
    int64_t dims[HN_CUDA_RANK], strides[HN_CUDA_RANK];
} HnCudaRowsArgs;

typedef struct {
    uint64_t y, updates, row, owner; /* owner: u32 [rows], the last update's number, from 1 on; 0: no
                                        two updates have one row */
    uint64_t item; /* u32 [count]: updates sorted by their rows, and the rows as they are then; 0: not sorted */
    int64_t n;     /* count * run */
    uint32_t count;
    int32_t reduction;
    int64_t run;
    HnDivisor divisor; /* run, where n is below HN_DIVIDE_LIMIT */
} HnCudaScatterArgs;
