#pragma once

#include <stdint.h>

#define HN_CUDA_SORT_THREADS 256
#define HN_CUDA_SORT_EACH 8 /* items of a thread */
#define HN_CUDA_SORT_TILE (HN_CUDA_SORT_THREADS * HN_CUDA_SORT_EACH)
#define HN_CUDA_SORT_BITS 4 /* of a key, sorted by at a time */
#define HN_CUDA_SORT_DIGITS (1 << HN_CUDA_SORT_BITS)
#define HN_CUDA_SCAN_THREADS 1024

/* Items are numbers (item[i] has key key[i]); they and their keys go to where keys' digits say. */
typedef struct {
    uint64_t key, item, key_to, item_to; /* u32 each */
    uint64_t counts;                     /* u32 [digits][tiles] */
    int64_t n, tiles;
    int32_t shift; /* of the digit */
    int32_t first; /* items are 0, 1, ... so far, and not in memory */
} HnCudaSortArgs;
