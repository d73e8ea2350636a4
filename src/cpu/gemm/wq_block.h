/*
 * The products of cpu/gemm/wq_kernel.h for many rows on matrix units (cpu/int8/int8_kernel.h): rows become two planes
 * of bytes, q = 256 * high + low, a panel's weights become bytes, and the units' sums of each segment are scaled and
 * added.
 */
#pragma once

#include "cpu/gemm/wq_kernel.h"

G_BEGIN_DECLS

#define HN_WQ_BLOCK_ROWS 16 /* at least */

typedef struct {
    HnWqForm form;
    int64_t chunks; /* of a segment */
    int chunk;      /* bytes of one */
    int64_t seg;    /* bytes of a segment */
} HnWqBlock;

/* The units are there. */
gboolean hn_wq_has_blocks(void);
HnWqBlock hn_wq_block_of(const HnWqForm *form);

/* Rows as bytes: like HnWqRows. */
typedef struct {
    int8_t *high, *low; /* [rows][segs][seg] */
    HnWqRows q;         /* its q has one row only */
} HnWqPlanes;

gsize hn_wq_planes_bytes(const HnWqBlock *b, int64_t rows);
HnWqPlanes hn_wq_planes_in(void *memory, const HnWqBlock *b, int64_t rows);
void hn_wq_planes_row(const HnWqBlock *b, const HnWqPlanes *to, int64_t i, const float *x);

/* Memory for a panel's weights as bytes. */
gsize hn_wq_block_bytes(const HnWqBlock *b);
/* Around the calls of a thread. */
void hn_wq_blocks_begin(const HnWqBlock *b);
void hn_wq_blocks_end(void);
/* Rows [from, from + rows), at least HN_WQ_BLOCK_ROWS, of x times the panel t->w, into t->c, which is the first
 * row's; t->x is not read. */
void hn_wq_block(const HnWqBlock *b, const HnWqPlanes *x, int64_t from, int64_t rows, const HnWqKernel *t,
                 void *memory);

G_END_DECLS
