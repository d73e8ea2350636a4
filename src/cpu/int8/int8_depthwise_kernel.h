/*
 * Tiles of depthwise convolutions of bytes: up to HN_INT8_DEPTH_NX outputs of a row side by side, a block of channels
 * each, whose sums stay in registers, and which read the source where it is.
 *
 * Products are added in groups of taps: of rows of the window below each other, and in a row that is left over of taps
 * side by side. With AVX2 groups are pairs of 16-bit numbers, of 8 channels; with dot products of bytes (AVX512-VNNI
 * and -VBMI) they are 4 bytes, of 16 channels.
 */
#pragma once

#include "cpu/int8/int8_kernel.h"

G_BEGIN_DECLS

#define HN_INT8_DEPTH_NX 8 /* outputs of a tile, at most */
#define HN_INT8_DEPTH_PAIR 2
#define HN_INT8_DEPTH_PAIR_BLOCK 8
#define HN_INT8_DEPTH_QUAD 4
#define HN_INT8_DEPTH_QUAD_BLOCK 16

typedef struct {
    const uint8_t *const *const *row; /* [rows]: of each column of the source channel 0, or padding */
    int64_t column, tiles;            /* the first column, and how many tiles lie side by side */
    int rows, k, stride, dilation;    /* of the window, and how it moves along the row */
    int64_t channels, first, end;     /* all, at least a block; blocks to be computed: the last one lies back to fit */
    const void *weights;              /* [blocks][groups][channels of a block][taps of a group]: 16 or 8 bits */
    int64_t groups;                   /* hn_int8_depth_groups() */
    const int32_t *begin;             /* [blocks][channels of a block], as are the two below */
    const float *scale, *shift;       /* shift NULL: nothing */
    HnDtype dtype;                    /* of results */
    gboolean plain;                   /* the zero point is 0, the limits are those of the type */
    uint32_t zero, lo, hi; /* of 16 bits, twice; of bytes, four times: what results are added to and limited to */
    uint8_t *y;
    int64_t y_pitch; /* bytes from output to output */
    int32_t *sums;   /* instead of y, of one block: [outputs][sums_pitch]; NULL: none */
    int64_t sums_pitch;
} HnInt8DepthKernel;

typedef void (*HnInt8DepthFn)(const HnInt8DepthKernel *t);

/* Groups of `each` taps of a window, and which taps (row * k + column) group i is; -1: none. */
int64_t hn_int8_depth_groups(int each, int64_t rows, int64_t k);
void hn_int8_depth_group(int each, int64_t rows, int64_t k, int64_t i, int64_t *taps);

/* What sums, which are small, become: bytes. */
void hn_int8_depth_end(HnInt8DepthKernel *t, const HnInt8Out *o);

/* There are tiles for just this window and stride. */
gboolean hn_int8_depth_known(int64_t rows, int64_t k, int64_t stride, int64_t dilation);
/* By outputs less 1, for groups of `each` taps. Pairs take any window, and signed bytes as they are; to quads they are
 * flipped to unsigned ones. */
const HnInt8DepthFn *hn_int8_depth_tiles(int each, int64_t rows, int64_t k, int64_t stride, int64_t dilation,
                                         gboolean is_signed);

/* Of groups of `each` channels, as many of outputs as of inputs, by quads of channels: weights are
 * [blocks][rows][each / 4][k][channels of a block][4]. NULL: no such tiles. */
const HnInt8DepthFn *hn_int8_group_tiles(int64_t each, int64_t rows, int64_t k, int64_t stride, int64_t dilation,
                                         gboolean is_signed);

G_END_DECLS
