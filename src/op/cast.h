/*
 * Parameters of Cast and CastLike, for their records and for backends.
 */
#pragma once

#include "op/convert.h"
#include "op/op.h"

typedef struct {
    HnDtype to; /* HN_UNDEFINED: the type of input 1 */
    HnConvert how;
} HnCast;
