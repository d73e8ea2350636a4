/*
 * Parameters of Clip, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean attrs; /* before opset 11: the bounds are those below, else inputs 1 and 2 */
    gboolean has_min, has_max;
    float min, max;
} HnClip;
