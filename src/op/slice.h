/*
 * Parameters of Slice, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean inputs; /* bounds are inputs 1 to 4: starts, ends, axes, steps */
    const int64_t *starts, *ends, *axes;
    int64_t n, n_ends, n_axes;
    const int64_t *steps; /* never attributes, but of nodes that a plan makes; NULL: all 1 */
} HnSlice;

/* Elements that start, end and step leave of an axis of n; *start becomes the first one's index. step is not 0. */
int64_t hn_slice_axis(int64_t n, int64_t *start, int64_t end, int64_t step);
