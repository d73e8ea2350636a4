/*
 * Parameters of ArgMax and ArgMin, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    int64_t axis;
    gboolean keepdims, last;
} HnArg;
