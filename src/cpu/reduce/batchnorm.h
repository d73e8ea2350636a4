/*
 * The loops of BatchNormalization on the batch's moments and of its gradient, for batchnorm.c at the machine's
 * instruction level.
 *
 * Elements are rows of `width` lanes, of which the last row may be shorter: channels side by side, or several pixels of
 * few channels, or pieces of one channel. What belongs to a channel (mean, factor, ...) has an element for each lane.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

typedef struct {
    const float *mean, *inv; /* [width] the gradient's */
    const float *a, *b;      /* [width] y = x * a + b */
    const float *k0, *k1;    /* [width] dx = dy * a + (x - mean) * k1 + k0 */
    float lo, hi;            /* y is cut off there */
} HnNormLanes;

typedef struct {
    /* sum += x - shift, squares += (x - shift)^2 of n elements; all [width] but x */
    void (*moments)(const float *x, int64_t n, int64_t width, const float *shift, float *sum, float *squares);
    /* y = x * a + b, + more where that is not NULL, within [lo, hi] */
    void (*apply)(float *y, const float *x, const float *more, int64_t n, int64_t width, const HnNormLanes *l);
    /* By HnMask: sum += dy, along += dy * (x - mean) of what the mask lets pass */
    void (*sums[3])(const float *dy, const float *x, int64_t n, int64_t width, const HnNormLanes *l, float *sum,
                    float *along);
    /* By HnMask: dx, which may lie on dy; with frozen moments along with the sums */
    void (*back[3])(float *dx, const float *dy, const float *x, int64_t n, int64_t width, const HnNormLanes *l);
    void (*frozen[3])(float *dx, const float *dy, const float *x, int64_t n, int64_t width, const HnNormLanes *l,
                      float *sum, float *along);
} HnBatchNormFns;

extern const HnKernel hn_cpu_batchnorm_train;
