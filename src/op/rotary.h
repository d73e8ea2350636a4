/*
 * Parameters of RotaryEmbedding.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef struct {
    int64_t heads, dim; /* 0: not given; the whole head */
    gboolean interleaved;
} HnRotary;

G_END_DECLS
