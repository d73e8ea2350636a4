/*
 * The kernels for convolutions with one channel to a group, or some (depthwise_group.h), which conv.c lists.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "cpu/core/post.h"

extern const HnKernel hn_cpu_depthwise, hn_cpu_conv_group, hn_cpu_depthwise_turned, hn_cpu_depthwise_transposed;
/* The last two are of ConvTranspose: with strides of 1, cpu/conv/turned.h, and any. */

#define HN_DEPTH_LINE 16    /* floats of a line of a cache */
#define HN_DEPTH_NX 8       /* outputs of a tile, at most */
#define HN_DEPTH_K 7        /* taps of a row of the window that is known to the loops, at most */
#define HN_DEPTH_TAPS 8     /* of a pass, at most: with 32 registers, */
#define HN_DEPTH_TAPS_FEW 5 /* and with 16 */

/* Taps side by side, of a row of the window; `at`: elements to what the first one sees. */
typedef struct {
    int64_t at;
    int taps;
} HnDepthPass;

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
    const HnDepthPass *pass; /* [passes], with copied rows: from is [rows] then, and w in the order of passes */
    int passes;
    int64_t w_at;        /* elements to be added to w, then; with groups, for each further vector of channels */
    int each;            /* channels of a group, where there are several, and ... */
    const float *spread; /* [each][vector]: which input of a vector its lanes read, as integers */
    const HnPost *post;  /* [posts], which results are given to then */
    int posts;
    float lo, hi; /* what they are clamped to in the end */
} HnDepthTile;

typedef void (*HnDepthFn)(const HnDepthTile *t);

enum {
    HN_DEPTH_3_1,
    HN_DEPTH_3_2,
    HN_DEPTH_5_1,
    HN_DEPTH_5_2,
    HN_DEPTH_7_1,
    HN_DEPTH_LONG,   /* other windows of 4 taps and more, side by side */
    HN_DEPTH_ANY,    /* any taps, strides and dilations */
    HN_DEPTH_PACKED, /* of copied rows (cpu/conv/depthwise_packed.h) */
    HN_DEPTH_KINDS
};

/* Brings floats [from, to) of memory that comes next closer: pixels lie further apart than processors look ahead. */
static inline void hn_depth_come(const float *at, int64_t from, int64_t to, gboolean written)
{
    for (; from < to; from += HN_DEPTH_LINE)
        if (written)
            __builtin_prefetch(at + from, 1, 2);
        else
            __builtin_prefetch(at + from, 0, 2);
}

/* Tiles of a kind, by outputs, of the level whose vectors the channels fill; lanes: channels of a vector. */
const HnDepthFn *hn_depth_tiles(int kind, int64_t channels, int64_t *lanes);
/* n pixels of `channels` channels, which lie `step` apart: for each `lanes` channels a line of vectors side by side,
 * `line` from one to the next. */
void hn_depth_copy(int64_t lanes, float *to, int64_t line, const float *from, int64_t step, int64_t n,
                   int64_t channels);
