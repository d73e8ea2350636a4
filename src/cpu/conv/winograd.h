/*
 * Convolutions with 3x3 kernels in fewer products, after Winograd: conv.c lists the kernel before the direct ones.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_winograd;

/* Sums at the points of one tile to its outputs. */
typedef struct {
    const float *m; /* [points][plane] */
    int64_t plane, n;
    float *y;         /* the tile's first output */
    const float *add; /* residual; NULL: none */
    int64_t y_row, y_pitch, add_row, add_pitch;
    int rows, cols;             /* outputs that exist */
    const float *scale, *shift; /* per channel */
    float lo, hi;
} HnWinogradOut;
