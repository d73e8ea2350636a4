/*
 * Parameters of LRN, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    float alpha, beta, bias;
    int64_t size;
} HnLrn;
