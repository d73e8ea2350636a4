/*
 * Parameters of ConstantOfShape, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    const HnTensor *value; /* one element; NULL: a float 0 */
} HnFilled;
