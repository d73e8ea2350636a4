/*
 * Reading trees from attributes, shared by trees.c and trees_read.c.
 */
#pragma once

#include "op/trees.h"

/* Lists of floats, or tensors that stand for them; neither: n is 0. */
typedef struct {
    int64_t n;
    const float *f;
    const HnTensor *t;
} HnTreeNumbers;

HnTreeNumbers hn_tree_numbers(HnBind *b, const char *list, const char *tensor);
double hn_tree_number(const HnTreeNumbers *v, int64_t i);
gboolean hn_tree_is_wide(const HnTreeNumbers *v);

/* The nodes of the forms with ids of trees and nodes, and of version 5's, with weights. t is zero-filled; b->error
 * tells whether it failed. */
void hn_trees_read_ids(HnBind *b, HnTrees *t, gboolean classes);
void hn_trees_read_indices(HnBind *b, HnTrees *t);
