/*
 * Parameters of Trilu, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean upper;
} HnTrilu;
