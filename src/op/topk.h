/*
 * Parameters of TopK, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    int64_t axis, k;
    gboolean input; /* k is input 1 */
    gboolean smallest;
} HnTopK;
