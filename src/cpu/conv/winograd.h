/*
 * Convolutions with kernels of 3x3, 5x5, and 3, 5 or 7 taps along one axis in fewer products, after Winograd: conv.c
 * lists the kernel before the direct ones.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "op/conv.h"

extern const HnKernel hn_cpu_winograd, hn_cpu_winograd_turned; /* of ConvTranspose: cpu/conv/turned.h */

/* Times less than a direct convolution takes, by estimates; 1: the kernel does not take it. */
double hn_winograd_gain(const HnConvPlan *p);

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

/* For the gradient of weights of 3x3. Where the inputs of a tile begin, point by point -> n channels of V: points lie
 * `plane` apart. */
typedef void (*HnWinogradInFn)(float *v, int64_t plane, const float *const *x, int64_t n);
HnWinogradInFn hn_winograd_in(int side);
/* Row i of g [side][taps] takes the taps along an axis to point i of `side`. */
void hn_winograd_taps(int side, int taps, double *g);
