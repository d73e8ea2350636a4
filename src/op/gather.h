/*
 * Parameters of Gather, GatherElements and GatherND, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    int64_t axis;
    int64_t batch_dims; /* GatherND since 12 */
} HnGather;
