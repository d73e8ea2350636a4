/*
 * Depthwise convolutions of many taps: rows of the source are copied first, as one vector of channels after the other
 * with zeros for the padding, into a ring of as many rows as a window sees. Its columns lie in the order of
 * their remainder by the stride (or, with strides of 1, by the dilation), so that taps side by side read vectors side
 * by side. Weights lie in the order in which they are read.
 */
#pragma once

#include "cpu/conv/depthwise.h"
#include "op/window.h"

G_BEGIN_DECLS

typedef struct {
    HnWindowAxis axis[3]; /* depth, height, width */
    int64_t channels;
    int64_t lanes, wide, strips; /* channels of a vector; vectors of a strip; strips */
    int64_t parts, segment;      /* remainders of columns; columns of each */
    int64_t lines;               /* of `parts`, those that outputs fall into, too */
    int64_t block, blocks;       /* outputs of a row that share a ring */
    int64_t span[2], line;       /* rows of the ring along depth and height; floats of a row of one vector */
    int passes;                  /* of a row of the window */
    HnDepthPass *pass;
    int64_t *order;      /* [kernel width]: taps, pass by pass */
    float *weights;      /* [vectors][depth, height][order][lanes] */
    const HnDepthFn *fn; /* by outputs of a tile */
} HnDepthPacked;

enum { HN_DEPTH_ROW_STALE = -1, HN_DEPTH_ROW_NEW = -2 /* with no zeros for the padding, either */ };

/* What a thread has: in memory of hn_depth_packed_bytes(), of which the ring comes first. */
typedef struct {
    float *ring;
    int64_t *held;          /* [rows of the ring]: which row of the source that is, or one of these */
    const float **row, **w; /* [depth, height] */
    int64_t strip, block;   /* of what the ring holds */
} HnDepthRing;

/* FALSE: copies cost more than they gain, or the ring would be too large. */
gboolean hn_depth_packed_init(HnDepthPacked *p, const HnWindowAxis *axis, int64_t channels);
void hn_depth_packed_clear(HnDepthPacked *p);
/* Weights as [taps][channels]. */
void hn_depth_packed_fill(HnDepthPacked *p, const float *weights);

gsize hn_depth_packed_bytes(const HnDepthPacked *p);
void hn_depth_packed_begin(const HnDepthPacked *p, HnDepthRing *r, void *memory);
/* What the ring is for from now on. */
void hn_depth_packed_turn(const HnDepthPacked *p, HnDepthRing *r, int64_t strip, int64_t block);
/* Outputs of the ring's strip and block in the row at (sample, depth, height) of the result. y and add are where the
 * row begins; t says what to do with sums. */
void hn_depth_packed_row(const HnDepthPacked *p, HnDepthRing *r, HnDepthTile *t, const float *x, int64_t x_pitch,
                         const int64_t at[3], float *y, const float *add);

G_END_DECLS
