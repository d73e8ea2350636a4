/*
 * Parameters of BatchNormalization, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    float epsilon, momentum;
    gboolean training;    /* mean and variance are those of the batch */
    gboolean per_element; /* each element of a sample is a channel of its own */
    gboolean inverse;     /* BatchNormTrain: outputs 3 and 4 are the batch's mean and 1 / deviation */
} HnBatchNorm;

/* BatchNormGrad of the internal domain: what lies between the normalized values and the gradient that comes in. */
typedef enum {
    HN_MASK_NONE,
    HN_MASK_RELU, /* it passes where they are above 0 */
    HN_MASK_CLIP, /* it passes where they are in [lo, hi] */
} HnMask;

typedef struct {
    gboolean frozen; /* moments are not those of the batch: mean and variance are given */
    HnMask mask;
    float lo, hi, epsilon;
} HnBatchNormGrad;
