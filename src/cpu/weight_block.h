/*
 * The products of cpu/weight_tile.h for many rows on matrix units (cpu/byte_tile.h): rows become two planes of bytes,
 * q = 256 * high + low, a panel's weights become bytes, and the units' sums of each segment are scaled and added.
 */
#pragma once

#include "cpu/weight_tile.h"

G_BEGIN_DECLS

#define HN_WEIGHT_BLOCK_ROWS 16 /* at least */

typedef struct {
    HnWeightForm form;
    int64_t chunks; /* of a segment */
    int chunk;      /* bytes of one */
    int64_t seg;    /* bytes of a segment */
} HnWeightBlock;

/* The units are there. */
gboolean hn_weight_has_blocks(void);
HnWeightBlock hn_weight_block_of(const HnWeightForm *form);

/* Rows as bytes: like HnWeightRows. */
typedef struct {
    int8_t *high, *low; /* [rows][segs][seg] */
    HnWeightRows q;     /* its q has one row only */
} HnWeightPlanes;

gsize hn_weight_planes_bytes(const HnWeightBlock *b, int64_t rows);
HnWeightPlanes hn_weight_planes_in(void *memory, const HnWeightBlock *b, int64_t rows);
void hn_weight_planes_row(const HnWeightBlock *b, const HnWeightPlanes *to, int64_t i, const float *x);

/* Memory for a panel's weights as bytes. */
gsize hn_weight_block_bytes(const HnWeightBlock *b);
/* Around the calls of a thread. */
void hn_weight_blocks_begin(const HnWeightBlock *b);
void hn_weight_blocks_end(void);
/* Rows [from, from + rows), at least HN_WEIGHT_BLOCK_ROWS, of x times the panel t->w, into t->c, which is the first
 * row's; t->x is not read. */
void hn_weight_block(const HnWeightBlock *b, const HnWeightPlanes *x, int64_t from, int64_t rows, const HnWeightTile *t,
                     void *memory);

G_END_DECLS
