/*
 * What rows of QuantAdd and QuantMul need to know, at any instruction level.
 */
#pragma once

#include <stdint.h>

typedef struct {
    float by, plus, lo, hi;
    int zero;
    uint8_t x_flip, y_flip;
    int easy; /* unsigned bytes with unsigned bytes, whose sums or products fit into 32 bits and are limited by y alone
               */
} HnPairRow;

/* Rows of n bytes, which are so far apart. b: bytes, or NULL and `other` holds numbers of steps: of all elements of
 * each row, or (`one`) one for each row. */
typedef struct {
    uint8_t *y;
    const uint8_t *a, *b;
    const float *other;
    int64_t y_pitch, a_pitch, b_pitch, rows, n;
    int one;
} HnPairRows;
