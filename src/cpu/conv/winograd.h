/*
 * Convolutions with 3x3 kernels in fewer products, after Winograd: conv.c lists the kernel before the direct ones.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_winograd, hn_cpu_winograd_turned; /* of ConvTranspose: cpu/conv/turned.h */

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

/* For the gradient of weights. Where the inputs of a tile begin, point by point -> n channels of V: points lie `plane`
 * apart. */
typedef void (*HnWinogradInFn)(float *v, int64_t plane, const float *const *x, int64_t n);
HnWinogradInFn hn_winograd_in(int edge);
/* Row i of g takes 3 taps along an axis to point i of F(edge x edge, 3x3). */
void hn_winograd_taps(int edge, double g[6][3]);
