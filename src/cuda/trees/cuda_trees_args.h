#pragma once

#include <stdint.h>

/* Kinds of leaves (run/trees_pack.h), aggregates (op/trees.h), transforms (op/ml.h). */
enum { HN_CUDA_LEAF_VALUE, HN_CUDA_LEAF_DENSE, HN_CUDA_LEAF_SOME };
enum { HN_CUDA_TREES_AVERAGE, HN_CUDA_TREES_SUM, HN_CUDA_TREES_MIN, HN_CUDA_TREES_MAX };
enum { HN_CUDA_ML_NONE, HN_CUDA_ML_SOFTMAX, HN_CUDA_ML_LOGISTIC, HN_CUDA_ML_SOFTMAX_ZERO, HN_CUDA_ML_PROBIT };
/* What becomes of the scores of a row. */
enum { HN_CUDA_TREES_TARGETS, HN_CUDA_TREES_PAIR, HN_CUDA_TREES_CLASSES };

typedef struct {
    int32_t first;  /* cell: the root */
    int32_t kind;   /* of leaves */
    int32_t target; /* of leaves with a value */
} HnCudaTree;

typedef struct {
    int32_t feature;
    int32_t nan;   /* key of NaN */
    int64_t first; /* thresholds in `rank`, where keys are ranks */
    int32_t n;
} HnCudaTreeColumn;

typedef struct {
    double value;
    int32_t target;
} HnCudaTreeWeight;

/* x [rows][features] -> key, i32 [columns][rows] */
typedef struct {
    uint64_t x, key;
    uint64_t column; /* HnCudaTreeColumn [columns] */
    uint64_t rank;   /* i64: thresholds in ascending order for each column; 0: keys are bits of f32 */
    int64_t rows, features;
    int32_t columns;
} HnCudaTreeKeysArgs;

/* What trees gave: group g of them, `group` in a row, to target k of row r: sum[g][k][r], has[g][k][r]. */
typedef struct {
    uint64_t key, cell, value; /* cell: uint2 { key, child << bits | column }; value: f32 or i32, of leaves */
    uint64_t tree;             /* HnCudaTree [trees] */
    uint64_t table;            /* f64 [rows][targets]: of leaves with a weight for each target */
    uint64_t first, weight;    /* of leaves with any: i32, HnCudaTreeWeight */
    uint64_t sum, has;         /* f64; u8, 0: the same for all rows */
    int64_t rows, targets, trees, groups, group;
    int32_t bits, aggregate;
} HnCudaTreeWalkArgs;

/* Sums over all groups become scores y [rows][targets] and labels [rows]. */
typedef struct {
    uint64_t sum, has;
    uint64_t base, label; /* f64 [n_base]; i64 [targets]: what labels are called */
    uint64_t given;       /* u8 [targets]: has of all rows */
    uint64_t y, labels;   /* f32 or f64; i64; 0: not wanted */
    int64_t rows, targets, groups, n_base;
    double divide; /* sums by it */
    int32_t aggregate, transform, how;
    int32_t wide;        /* y is f64 */
    int32_t probability; /* of two classes all weights are of one, and none is below 0 */
} HnCudaTreeScoresArgs;
