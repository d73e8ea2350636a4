/*
 * Convolutions whose groups are of a few channels, as many of outputs as of inputs, so that a vector of channels is of
 * whole groups: tiles for depthwise.c, which knows what surrounds them.
 */
#pragma once

#include "cpu/conv/depthwise.h"
#include "op/window.h"

G_BEGIN_DECLS

/* How weights lie: [vectors of channels][rows of the window][each][kernel][lanes]. The last vector ends with the last
 * channel, and repeats some of those before. */
typedef struct {
    int64_t each, lanes;  /* channels of a group, of a vector */
    int64_t rows, kernel; /* of the window: depth and height, width */
} HnDepthGroup;

/* There are tiles for groups of `each` channels. */
gboolean hn_depth_group_fits(int64_t each, int64_t channels);
/* By outputs of a tile; lanes: channels of a vector. */
const HnDepthFn *hn_depth_group_tiles(const HnWindowAxis *w, int64_t each, int64_t channels, int64_t *lanes);
/* [each][lanes], for HnDepthTile.spread. */
void hn_depth_group_spread(float *to, int64_t each, int64_t lanes);
/* Where the weights of a vector's lanes are, for a tap of the window and input i of a group. */
int64_t hn_depth_group_at(const HnDepthGroup *g, int64_t block, int64_t tap, int64_t i);

G_END_DECLS
