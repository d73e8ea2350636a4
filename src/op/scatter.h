/*
 * Parameters of Scatter, ScatterElements, ScatterND and TensorScatter, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef enum { HN_SCATTER_SET, HN_SCATTER_ADD, HN_SCATTER_MUL, HN_SCATTER_MAX, HN_SCATTER_MIN } HnReduction;

typedef struct {
    int64_t axis;
    HnReduction reduction; /* what becomes of an element and its update */
} HnScatter;

typedef struct {
    int64_t axis;
    gboolean circular;
} HnTensorScatter;

/* TensorScatter of these inputs (at: NULL, absent) has something to write, and all of it fits into x. *axis: from the
 * front. */
gboolean hn_tensorscatter_fits(const HnTensorScatter *p, const HnTensor *x, const HnTensor *updates, const HnTensor *at,
                               int *axis);
