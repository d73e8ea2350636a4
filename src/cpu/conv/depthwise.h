/*
 * The kernel for convolutions with one channel to a group, which conv.c lists.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "cpu/core/post.h"

extern const HnKernel hn_cpu_depthwise, hn_cpu_depthwise_turned, hn_cpu_depthwise_transposed;
/* The others are of ConvTranspose: with strides of 1, cpu/conv/turned.h, and any. */

#define HN_DEPTH_NX 8 /* outputs of a tile, at most */
#define HN_DEPTH_K 7  /* taps of a row of the window that is known to the loops, at most */

/* Outputs of a row side by side. */
typedef struct {
    const float *const *from; /* [rows][columns]: where input columns begin, zeros for padding */
    int64_t at;               /* elements to be added to them */
    const float *const *w;    /* [rows]: taps of a row of the window, [k][channels] */
    int64_t columns, channels, pitch;
    const float *bias, *add; /* add: [.., add_pitch], is added to the results; NULL: nothing is */
    int64_t add_pitch;
    float *y;
    int64_t first, end; /* channels */
    int rows, k, stride, dilation;
    const HnPost *post; /* [posts], which results are given to then */
    int posts;
    float lo, hi; /* what they are clamped to in the end */
} HnDepthTile;

typedef void (*HnDepthFn)(const HnDepthTile *t);

/* By outputs, tiles of any taps, strides and dilations. */
const HnDepthFn *hn_depth_any(int64_t channels);

enum {
    HN_DEPTH_3_1,
    HN_DEPTH_3_2,
    HN_DEPTH_5_1,
    HN_DEPTH_5_2,
    HN_DEPTH_7_1,
    HN_DEPTH_LONG, /* other windows of 4 taps and more, side by side */
    HN_DEPTH_ANY,
    HN_DEPTH_KINDS
};
