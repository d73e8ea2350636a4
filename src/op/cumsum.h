/*
 * Parameters of CumSum and CumProd, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean exclusive, reverse;
} HnCum;
