/*
 * Parameters of GridSample, for its record and for backends.
 */
#pragma once

#include "op/op.h"

typedef enum { HN_GRID_LINEAR, HN_GRID_NEAREST, HN_GRID_CUBIC } HnGridMode;
typedef enum { HN_GRID_ZEROS, HN_GRID_BORDER, HN_GRID_REFLECTION } HnGridPadding;

#define HN_GRID_AXES 5 /* spatial ones, at most */

typedef struct {
    HnGridMode mode;
    HnGridPadding padding;
    gboolean align_corners; /* -1 and 1 are the centres of the outermost elements, not their edges */
} HnGridSample;

void hn_gridsample_bind(HnBind *b, void *params);
/* Do input and grid belong together? FALSE: e->error is set. */
gboolean hn_gridsample_check(HnEval *e, const HnTensor *x, const HnTensor *grid);
/* The place along an axis of that size for a coordinate of the grid, borders seen to; finite. */
double hn_grid_place(const HnGridSample *p, double v, int64_t size);
/* By how much that place moves with the coordinate. */
double hn_grid_slope(const HnGridSample *p, double v, int64_t size);
#define HN_GRID_TAPS 4 /* at most */
/* Elements along an axis around place x: how many, the index of the first one, their weights, and how those change with
 * x (NULL: nobody asks). */
int hn_grid_taps(const HnGridSample *p, double x, int64_t *first, double *w, double *slope);
/* Element that index i stands for along an axis of that size; -1: a zero. */
int64_t hn_grid_settle(const HnGridSample *p, int64_t i, int64_t size);
