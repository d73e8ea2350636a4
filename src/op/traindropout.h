/*
 * Parameters of TrainDropout, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    double ratio;       /* [0, 1) */
    uint32_t threshold; /* random 32 bits below it drop an element */
    uint32_t salt;
} HnTrainDropout;

/* Elements of input 1. */
enum { HN_DROPOUT_SEED, HN_DROPOUT_STEP, HN_DROPOUT_STATE };
