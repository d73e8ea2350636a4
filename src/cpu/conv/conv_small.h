/*
 * The kernel for convolutions that are too small for another layout; its inner loop serves
 * ConvTranspose as well.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_conv_small;

#define HN_CONV_OC 4 /* output channels side by side */

/* y[c][o] = bias[c] + sum over t of x[off[t] + o] * w[t][c], for HN_CONV_OC channels c and n columns o; rows of y are
 * `plane` apart, and only the first `channels` are stored. */
typedef void (*HnConvRowFn)(float *y, int64_t plane, int channels, const float *x, const int64_t *off, const float *w,
                            int64_t taps, const float *bias, int64_t n);
HnConvRowFn hn_conv_row(void); /* for the instructions that may be used */
