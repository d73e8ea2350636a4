/*
 * Parameters of QuantizeLinear and DequantizeLinear, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean per_axis; /* may the scale have more than one element? */
    int64_t axis, block;
    HnDtype to;        /* HN_UNDEFINED: as the zero point or scale says */
    HnDtype precision; /* HN_UNDEFINED: that of the scale */
    gboolean saturate;
} HnQuantize;
