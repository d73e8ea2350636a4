/*
 * Parameters of Pad, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef enum { HN_PAD_CONSTANT, HN_PAD_REFLECT, HN_PAD_EDGE, HN_PAD_WRAP } HnPadding;

typedef struct {
    gboolean inputs; /* amounts, value, axes are inputs 1 to 3 */
    const int64_t *pads;
    int64_t n;
    float value;
    HnPadding mode;
} HnPad;
