/*
 * Parameters of OneHot, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    int64_t axis; /* of the output */
    gboolean from_back;
} HnOneHot;
