/*
 * A stretch of one output line of a convolution with a filter for each channel, for a block of channels.
 */
#pragma once

#include "cpu/byte_tile.h"

G_BEGIN_DECLS

typedef struct {
    const uint8_t *const *row; /* [kernel_h] source lines at the block's first channel; NULL: padding */
    int64_t kernel_h, kernel_w, stride, dilation; /* along the line */
    int64_t first, columns;                       /* source columns that are seen */
    int64_t in, pitch;                            /* columns of the source, bytes from one to the next */
    int channels;                                 /* of the block */
    uint8_t pad, flip;                            /* what padding is; what makes bytes unsigned */
    uint8_t *staged;                              /* [columns][groups][4][channels of a block] */
    const uint8_t *weights;                       /* [kernel_w][groups][4][channels of a block] */
    const int32_t *begin;                         /* [channels of a block], in the order of sums, as the two below */
    const float *scale, *shift;
    const HnByteOut *finish;
    int64_t out;
    uint8_t *y; /* bytes */
    int64_t y_pitch;
    int32_t *sums; /* instead of y: [out][channels of a block] in their order; NULL: none */
} HnDepthwiseRow;

G_END_DECLS
