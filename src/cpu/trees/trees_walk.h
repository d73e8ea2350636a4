/*
 * Walks through packed trees, at each level of instructions. All of them end at the same leaves.
 */
#pragma once

#include "run/trees_pack.h"

G_BEGIN_DECLS

#define HN_WALK_ROWS 64 /* rows at a time, through one tree */

typedef struct {
    /* leaf[i]: the cell of the tree where row i of n <= HN_WALK_ROWS ends, counted from the tree's first; there is room
     * for HN_WALK_ROWS. Rows of keys are `stride` apart. */
    void (*rows)(int32_t *leaf, const HnPackedTrees *p, const HnTreePlace *t, const int32_t *keys, int32_t stride,
                 int n);
    /* leaf[i]: the cell, counted from the first of all, where the row ends in tree `from` + i of n <= HN_WALK_TREES;
     * there is room for HN_WALK_TREES. */
    void (*trees)(int32_t *leaf, const HnPackedTrees *p, const int32_t *keys, int64_t from, int n);
    /* keys[c] of n rows of `features` f32 each. */
    void (*keys)(int32_t *keys, int32_t stride, const HnPackedTrees *p, const float *x, int64_t features, int64_t n);
    /* sum[i] += value of leaf[i]; n <= HN_WALK_ROWS */
    void (*add)(double *sum, const HnCellValue *value, const int32_t *leaf, int n);
    double (*sum)(const HnCellValue *value, const int32_t *leaf, int64_t n); /* of values of leaves */
} HnTreeWalks;

const HnTreeWalks *hn_tree_walks(void);

G_END_DECLS
