/*
 * What passes over moved elements share: axes and bounds that are attributes or inputs, and shapes as constants.
 */
#pragma once

#include "pass/rewrite.h"

G_BEGIN_DECLS

/* Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order. */
gboolean hn_shapes_is_view(const HnNode *n);

/* The axes of n, input 1 or (before it was one) attribute `axes`, counted from the front of `rank` dimensions. FALSE:
 * not constant, outside, named twice, or not given at all. */
gboolean hn_shapes_axes(const HnRewrite *r, const HnNode *n, int rank, int *axes, int *n_axes);
/* The same as marks, for a reduction: none given are all, unless that means none. FALSE: not known. */
gboolean hn_shapes_reduced(const HnRewrite *r, const HnNode *n, gboolean *mark);

/* A list for Reshape that makes of a shape like x's the shape `to` (rank of them) whatever the symbols stand for; 0
 * copies a size of x, one -1 may stand for what the others leave. FALSE: not possible. */
gboolean hn_shapes_constant(const HnRewrite *r, const HnValue *x, int rank, const HnDim *to, int64_t *list);
/* hn_rw_add() of a Reshape of x to a constant list. */
HnNode *hn_shapes_reshape(HnRewrite *r, HnNode *before, HnValue *x, const int64_t *list, int n);
/* The same of Squeeze or Unsqueeze. */
HnNode *hn_shapes_squeeze(HnRewrite *r, HnNode *before, const char *op, HnValue *x, const int *axes, int n);

typedef struct {
    int n;
    int axis[HN_MAX_RANK]; /* each once */
    int64_t start[HN_MAX_RANK], end[HN_MAX_RANK], step[HN_MAX_RANK];
} HnBounds;

/* What a Slice cuts, all constant. FALSE: not known, or negative axes of an unknown rank. */
gboolean hn_shapes_bounds(const HnRewrite *r, const HnNode *slice, HnBounds *b);
/* The only axis along which it cuts, of a known size: [*start, *end) in steps of 1. */
gboolean hn_shapes_cut(const HnRewrite *r, const HnNode *slice, int *axis, int64_t *start, int64_t *end);
/* hn_rw_add() of a Slice of x; steps other than 1 need opset 10. */
HnNode *hn_shapes_slice(HnRewrite *r, HnNode *before, HnValue *x, const HnBounds *b);

/* Sizes of the parts of a Split along *axis, for each output (g_free); NULL: not known. */
int64_t *hn_shapes_parts(const HnRewrite *r, const HnNode *split, int *axis);

/* Which of them comes first in g. */
HnNode *hn_shapes_first(const HnGraph *g, HnNode *const *nodes, guint n);

G_END_DECLS
