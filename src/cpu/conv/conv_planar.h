/*
 * Convolutions of few channels in plain layout: lanes are output columns, so that no lane is empty for want of channels
 * and no source is put channels last.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

#include "op/conv.h"

extern const HnKernel hn_cpu_conv_planar;

/* It takes such a step, and less than the time of so many products of the instruction level, surely. */
gboolean hn_conv_planar_beats(const HnStep *s, const HnConvPlan *plan, double products);

#define HN_PLANAR_OC 6 /* output channels of a tile, at most */
#define HN_PLANAR_NV 4 /* vectors of columns, at most */

typedef struct {
    const float *x;     /* where the first column's first tap is */
    const int64_t *off; /* [taps]: from there on */
    const float *w;     /* [taps][channels of the tile] */
    const float *bias;  /* of these channels; NULL: zeros */
    const float *add;   /* as y lies, is added to the sums; NULL: nothing is */
    float *y;           /* channels are `plane` apart */
    int64_t taps, plane;
    int columns;
    float lo, hi; /* what results are clamped to */
} HnPlanarTile;

typedef void (*HnPlanarFn)(const HnPlanarTile *t);
