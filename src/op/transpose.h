/*
 * Parameters of Transpose, DepthToSpace and SpaceToDepth, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    const int64_t *perm; /* NULL: axes reversed */
    int64_t n;
} HnTranspose;

typedef struct {
    int64_t block;
    gboolean crd; /* depth is the outer part of the channels, the place in the block the inner; else the reverse */
} HnDepthBlock;
