/*
 * Convolutions of images: sources of up to four channels as they lie, plain, into results channels last.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

G_BEGIN_DECLS

extern const HnKernel hn_cpu_conv_few;

#define HN_FEW_NV 3    /* vectors of output channels of a tile, at most */
#define HN_FEW_SIZES 6 /* of tiles */

/* Outputs of a row side by side, of vectors of channels. */
typedef struct {
    const float *x;     /* what the first tap of the first output sees, in the first line */
    const int64_t *off; /* [lines]: elements from there to the other lines */
    int64_t lines, kernel;
    const float *w; /* [lines][kernel][vectors][lanes] */
    const float *bias, *add;
    float *y;
    int64_t y_pitch, add_pitch;
    int tail; /* channels of the last vector */
    float lo, hi;
} HnFewTile;

typedef void (*HnFewFn)(const HnFewTile *t);

/* At AVX-512 with half vectors, by vectors, stride (1, 2, 4) and size. */
extern const HnFewFn (*const hn_few_half)[3][HN_FEW_SIZES];

G_END_DECLS
