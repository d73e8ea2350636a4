#pragma once

#include <stdint.h>

/* Where heads lie; strides in elements, a vector's are adjacent. */
typedef struct {
    uint64_t data;
    int64_t batch, head, token;
} HnCudaHeads;

enum { HN_CUDA_MASK_NONE, HN_CUDA_MASK_BOOL, HN_CUDA_MASK_SAME, HN_CUDA_MASK_F32 }; /* SAME: type as queries */

/* y = softmax(scale * q k' + bias) v. Keys and values are `past` ones of a cache, then those of k and v. */
typedef struct {
    HnCudaHeads q, k, v, past_k, past_v, y;
    uint64_t mask;
    int64_t mask_steps[4]; /* along batch, heads, queries, keys */
    int64_t mask_length;   /* keys from there on are hidden */
    int64_t batch, heads, kv_heads, queries, keys, past, size, value_size;
    int64_t left, right; /* window: so many keys before and behind the query's own; -1: all */
    float scale, softcap;
    int32_t mask_kind, causal;
    int32_t hides;  /* a mask of -inf hides what is NaN, too */
    float dead;     /* results of a query that sees no key */
    int32_t guard;  /* probabilities that are NaN count as zeros */
    int32_t wide;   /* vectors of q, k, v and of the cache can be read 16 bytes at a time */
    int32_t y_wide; /* pairs of results can be written at once */
} HnCudaAttentionArgs;

#define HN_CUDA_ATTENTION_THREADS 128
#define HN_CUDA_ATTENTION_QUERIES 64 /* of a block of attention_tiles */
/* Keys at once, and bytes of shared memory: queries, keys and values of `size` elements, padded, and scores of f32. */
#define HN_CUDA_ATTENTION_TILE_KEYS_F32 32
#define HN_CUDA_ATTENTION_TILE_KEYS_HALF 64
#define HN_CUDA_ATTENTION_TILE_BYTES_F32(size) ((64 + 2 * 32) * ((size)*4 + 16) + 64 * 32 * 4)
/* Of 16 queries, whose keys some warps share: each has tiles of `keys` of them and of values, and, of f32, scores. */
#define HN_CUDA_ATTENTION_FEW_QUERIES 16
#define HN_CUDA_ATTENTION_FEW_WARPS 8
#define HN_CUDA_ATTENTION_FEW_BYTES_F32(size, keys) \
    (16 * ((size)*4 + 16) + HN_CUDA_ATTENTION_FEW_WARPS * ((keys)*2 * ((size)*4 + 16) + 16 * (keys)*4))
#define HN_CUDA_ATTENTION_FEW_KEYS_HALF 32
#define HN_CUDA_ATTENTION_FEW_BYTES_HALF(size) \
    (((size)*2 + 16) * (16 + HN_CUDA_ATTENTION_FEW_WARPS * 2 * HN_CUDA_ATTENTION_FEW_KEYS_HALF))
/* Of halves: of queries of 4 * m warps, 16 each, and two turns of keys and values. */
#define HN_CUDA_ATTENTION_HALF_BYTES(size, m) ((64 * (m) + 4 * 64) * ((size)*2 + 16))
/* Of halves by warpgroups, 64 queries each: how many a block has, keys of a tile, tiles on their way, bytes. */
#define HN_CUDA_ATTENTION_GROUPS(size) ((size) == 64 ? 2 : 3)
#define HN_CUDA_ATTENTION_GROUP_KEYS 64
#define HN_CUDA_ATTENTION_STAGES 2
#define HN_CUDA_ATTENTION_WARPGROUP_BYTES(size, groups, keys, stages) \
    (1024 + ((groups)*64 + (stages)*2 * (keys)) * (size)*2)
#define HN_CUDA_ATTENTION_KEYS 128 /* at once, by the rows of attention_rows */
/* Floats of shared memory of a query: itself, the sums of each warp, scores. */
#define HN_CUDA_ATTENTION_ROW_FLOATS(size, value_size) \
    ((size) + (HN_CUDA_ATTENTION_THREADS / 32) * (value_size) + HN_CUDA_ATTENTION_KEYS)

/* past and new vectors to [batch, heads, past + length, size] */
typedef struct {
    HnCudaHeads x;
    uint64_t past, y;
    int64_t batch, heads, past_length, length, size;
} HnCudaPresentArgs;
