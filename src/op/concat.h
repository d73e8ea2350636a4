/*
 * Parameters of Concat and Split, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    int64_t axis;
} HnConcat;

typedef struct {
    int64_t axis;
    const int64_t *sizes; /* NULL: input 1, or equal parts */
    int64_t n_sizes;
    gboolean uneven; /* equal parts may leave a smaller last one */
} HnSplit;
