/*
 * What rows of QuantAdd and QuantMul need to know, at any instruction level.
 */
#pragma once

#include <stdint.h>

typedef struct {
    float by, plus, lo, hi;
    int zero;
    uint8_t x_flip, y_flip;
} HnPairRow;
