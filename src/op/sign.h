/*
 * Parameters of IsInf and IsNaN, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean negative, positive, nan; /* what is looked for */
} HnIs;
