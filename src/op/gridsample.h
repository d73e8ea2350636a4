/*
 * Parameters of GridSample, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef enum { HN_GRID_LINEAR, HN_GRID_NEAREST, HN_GRID_CUBIC } HnGridMode;
typedef enum { HN_GRID_ZEROS, HN_GRID_BORDER, HN_GRID_REFLECTION } HnGridPadding;

typedef struct {
    HnGridMode mode;
    HnGridPadding padding;
    gboolean align_corners; /* -1 and 1 are the centres of the outermost elements, not their edges */
} HnGridSample;

/* The place along an axis of that size for a coordinate of the grid, borders seen to; finite. */
double hn_grid_place(const HnGridSample *p, double v, int64_t size);
/* Element that index i stands for along an axis of that size; -1: a zero. */
int64_t hn_grid_settle(const HnGridSample *p, int64_t i, int64_t size);
