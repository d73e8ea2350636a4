#pragma once

#include <stdint.h>

#define HN_CUDA_TOPK_ROOM 2048 /* elements that a block keeps */
#define HN_CUDA_TOPK_MOST 1024 /* results that are found without sorting all */

/* x [outer][n][inner] -> values y and their index (i64; 0: not wanted) [outer][k][inner], outer * inner rows. A block
 * looks through `part` elements of a row, `parts` of them; what it finds in one is left as ranks in `found`,
 * u64 [rows][parts][k], and found there in the end. */
typedef struct {
    uint64_t x, y, index;
    uint64_t found;
    int64_t rows, n, k, inner, parts, part;
    int32_t smallest;
    int32_t from_found, to_found;
    uint64_t key, item; /* u32 [rows][n]: all elements, for sorting */
} HnCudaTopKArgs;
