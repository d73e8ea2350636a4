/*
 * Parameters of Resize and Upsample, and where their outputs come from, for their records and for backends.
 */
#pragma once

#include "op/unbind.h"

typedef enum { HN_RESIZE_NEAREST, HN_RESIZE_LINEAR, HN_RESIZE_CUBIC } HnResizeMode;
typedef enum {
    HN_RESIZE_HALF_PIXEL,
    HN_RESIZE_HALF_SYMMETRIC,
    HN_RESIZE_HALF_PYTORCH,
    HN_RESIZE_HALF_NEAREST,
    HN_RESIZE_ALIGN_CORNERS,
    HN_RESIZE_ASYMMETRIC,
    HN_RESIZE_CROP
} HnResizePlace;
typedef enum {
    HN_RESIZE_PREFER_FLOOR,
    HN_RESIZE_PREFER_CEIL,
    HN_RESIZE_DOWN,
    HN_RESIZE_UP,
    HN_RESIZE_OLD /* up where an axis shrinks, else down */
} HnResizeRound;
typedef enum { HN_RESIZE_STRETCH, HN_RESIZE_NOT_LARGER, HN_RESIZE_NOT_SMALLER } HnResizePolicy;

typedef struct {
    HnResizeMode mode;
    HnResizePlace place;
    HnResizeRound round;
    HnResizePolicy policy;
    gboolean antialias, exclude_outside;
    float cubic_a, extrapolation;
    const int64_t *axes; /* NULL: all */
    int64_t n_axes;
    int roi, scales, sizes; /* inputs; -1: the operator has none */
    const float *list;      /* scales of Upsample 7 */
    int64_t n_list;
    float height, width; /* scales of Upsample 1; 0: others */
} HnResize;

/* One axis with all numbers known. */
typedef struct {
    int64_t in, out;
    double scale, length; /* of the output before rounding down */
    double start, end;    /* of the region of interest, as parts of the input */
} HnResizeAxis;

/* Parameters of a Resize of that opset. */
void hn_resize_bind(HnBind *b, int64_t version, HnResize *p);
/* All axes of e's input 0, from its parameters and inputs; FALSE: failed, e->error is set. */
gboolean hn_resize_axes(HnEval *e, HnResizeAxis *axis);
/* Index in [0, in) of output y of the nearest element; -1: outside of a cropped input. */
int64_t hn_resize_nearest(const HnResize *p, const HnResizeAxis *a, int64_t y);
/* Elements that a mean is made of; -1: too many to count. */
int64_t hn_resize_taps(const HnResize *p, const HnResizeAxis *a);
/* Weights of that many elements from *first on, which may lie outside (the border's element is meant), for output y.
 * FALSE: outside of a cropped input. */
gboolean hn_resize_weights(const HnResize *p, const HnResizeAxis *a, int64_t y, int64_t *first, double *w);

/* In other opsets; Upsample became Resize. */
void hn_resize_unbind(HnUnbind *u);
void hn_upsample_unbind(HnUnbind *u);
