/*
 * Parameters of Dropout, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean train;     /* fixed by the attributes of old opsets ... */
    gboolean by_input;  /* ... or said by the inputs */
    gboolean bool_mask; /* else of the type of the data */
    gboolean has_seed;
    uint64_t seed;
    float ratio;
} HnDropout;
