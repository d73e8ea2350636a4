/*
 * Parameters of InstanceNormalization and GroupNormalization, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    float epsilon;
    int64_t groups;     /* 0: as many as channels */
    gboolean per_group; /* one scale and bias per group */
} HnGroupNorm;
