/*
 * Parameters of LayerNormalization and RMSNormalization, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    int64_t axis;
    float epsilon;
    HnDtype stash; /* type of the outputs Mean and InvStdDev */
} HnLayerNorm;

/* Of LayerNormGrad. */
typedef struct {
    int64_t axis;
    float epsilon;
    gboolean centred; /* the mean is taken off */
} HnLayerNormGrad;
