/*
 * A stretch of one output line, or of two below each other, of a convolution with a filter for each channel, for a
 * block of channels. A second line sees the same source lines as the first and one more, which takes the place of a tap
 * that is filled up: it has the weights moved on by one tap.
 */
#pragma once

#include "cpu/int8/int8_kernel.h"

G_BEGIN_DECLS

typedef struct {
    const uint8_t *const *row;          /* [seen] source lines at the block's first channel; NULL: padding */
    int64_t seen, groups;               /* source lines, and how many groups of taps they are */
    int lines;                          /* of outputs: 1 or 2 */
    int64_t kernel_w, stride, dilation; /* along the line */
    int64_t first, columns;             /* source columns that are seen */
    int64_t in, pitch;                  /* columns of the source, bytes from one to the next */
    const uint8_t *end;                 /* of the source: nothing is read from there on */
    int channels;                       /* of the block */
    uint8_t pad, flip;                  /* what padding is; what makes bytes unsigned */
    uint8_t *staged;                    /* [columns][groups][4][channels of a block] */
    const uint8_t *weights;             /* [lines][weights_line]: [kernel_w][groups][4][channels of a block] */
    int64_t weights_line;               /* bytes */
    const int32_t *begin;               /* [channels of a block], in the order of sums, as the two below */
    const float *scale, *shift;
    const HnInt8Out *finish;
    int64_t out;
    uint8_t *y; /* bytes */
    int64_t y_pitch, y_line;
    int32_t *sums;     /* instead of y: [lines][sums_line]: [out][channels of a block] in their order; NULL: none */
    int64_t sums_line; /* numbers */
} HnDepthwiseRow;

G_END_DECLS
