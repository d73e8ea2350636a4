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

/* t, a scale or bias, is one row of x, whose rows are the axes from `axis` on. */
gboolean hn_is_norm_row(const HnTensor *t, const HnTensor *x, int axis);

/* Of LayerNormGrad. */
typedef struct {
    int64_t axis;
    float epsilon;
    gboolean centred; /* the mean is taken off */
} HnLayerNormGrad;
