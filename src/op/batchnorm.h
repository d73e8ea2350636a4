/*
 * Parameters of BatchNormalization, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    float epsilon, momentum;
    gboolean training;    /* mean and variance are those of the batch */
    gboolean per_element; /* each element of a sample is a channel of its own */
} HnBatchNorm;
