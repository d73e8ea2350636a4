#pragma once

#include "cuda/core/complaint_args.h"
#include "cuda/gemm/cuda_product_args.h"

/* Weights of few bits: (w - w_zero) * w_scale, which belong to w[row, col] at row / row_block * row_step + col /
 * col_block * col_step. */
typedef struct {
    uint64_t w, scale, zero; /* zero 0: none */
    int64_t row_block, row_step, col_block, col_step;
    int32_t bits; /* 4 or 8 */
    int32_t flip; /* what makes an element unsigned, and is added to its value so: 0, 8 or 128 */
} HnCudaWeights;

/* product.b is not used but for its strides. */
typedef struct {
    HnCudaProductArgs product;
    HnCudaWeights weights;
    int32_t turned; /* w is [N, K] */
} HnCudaWeightMatMulArgs;

#define HN_CUDA_WEIGHT_COLUMNS 4 /* of a warp that goes along k */
#define HN_CUDA_WEIGHT_WIDTH 128 /* columns of a block, where they lie side by side and are read eight at a time */

#define HN_CUDA_WEIGHT_TERMS 4096 /* of k, at most, of a block on tensor cores */

/* y[i][j] = weight[at[i]][j] */
typedef struct {
    HnCudaWeights weights;
    HnCudaComplaint complaint; /* of the index's number */
    uint64_t at, y;
    int64_t rows, n, vocabulary;
    int32_t wide; /* indices of 64 bits */
} HnCudaWeightGatherArgs;
