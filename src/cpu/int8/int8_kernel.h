/*
 * Products of 8-bit integers in registers: a few rows of activations (unsigned bytes) with a panel of packed weights
 * (signed bytes), summed exactly in 32 bits, and what becomes of the sums.
 *
 * A row of A is cut into groups of 4 adjacent bytes; B is packed as [groups][hn_int8_cols()][4]. Levels without dot
 * products of bytes add pairs of products in 16 bits, which saturate: hn_int8_split() takes from B what could, and that
 * is added by further groups of the same bytes of A ("extra").
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "cpu/int8/int8_lut.h"
#include "ir/dtype.h"

G_BEGIN_DECLS

#define HN_INT8_GROUP 4
#define HN_INT8_MAX_ROWS 12 /* of hn_int8_rows() at any level */
#define HN_INT8_MAX_COLS 32

/* For the instructions that may be used: the largest tile. */
int hn_int8_rows(void);
int hn_int8_cols(void);

/* c[row][col] = begin[col] + sum over groups */
typedef struct {
    const uint8_t *a;
    int64_t step;           /* bytes from row to row */
    const int64_t *seg_at;  /* [segs]: from a row's begin to its segments */
    int64_t segs, groups;   /* of a segment */
    const int32_t *more_at; /* [more]: from a row's begin to further groups, whose B lies behind */
    int64_t more;
    const int8_t *b;
    const int32_t *begin; /* [hn_int8_cols()] */
    int32_t *c;           /* [rows][hn_int8_cols()] */
} HnInt8Kernel;

typedef void (*HnInt8KernelFn)(const HnInt8Kernel *t);

/* For 1, 2 ... hn_int8_rows() rows; of so many columns of a panel, at least. */
const HnInt8KernelFn *hn_int8_fns(int cols);
/* The same of groups of two signed 16-bit numbers, of A and of B, of more columns than half of a panel, or not; sums
 * wrap around. NULL: not at this level. */
const HnInt8KernelFn *hn_int8_pair_fns(gboolean whole);

/* As hn_int8_pair_fns(), of bytes and of weights that hn_int8_split_two() has been through: groups of a segment by
 * twos, which takes three quarters of the time. NULL: not at this level. */
const HnInt8KernelFn *hn_int8_two_fns(gboolean whole);

/* Do two sums of products saturate at this level? */
gboolean hn_int8_saturates(void);
/* Takes from the 4 weights of a group and column what could saturate: rest[] is that, TRUE where there is any. */
gboolean hn_int8_split(int8_t *w, int8_t *rest);
/* The same of a group and the one behind it, whose sums of two products are added in 16 bits, too; FALSE in *fits where
 * the rest would saturate itself. */
gboolean hn_int8_split_two(int8_t *w, int8_t *rest, gboolean *fits);

/* --- matrix units: blocks of 32 or 16 rows, equally far apart, with 32 or 16 columns --------------------------------
 */

#define HN_INT8_BLOCK 32

typedef struct {
    const uint8_t *a;
    int64_t a_step;        /* bytes from row to row */
    const int64_t *seg_at; /* [segs]: from a row's begin to its segments */
    int64_t segs, chunks;  /* chunks of a segment */
    int chunk;             /* bytes of one: a multiple of 4, up to 64 */
    const int8_t *b;       /* [segs][chunks][chunk / 4][32][4] */
    const int32_t *begin;  /* [32] */
    int32_t *c;            /* [rows][32] */
    int rows, cols;        /* either 16 or 32 */
    gboolean is_signed;    /* A */
    gboolean same_b;       /* of one chunk, as in the call before */
} HnInt8Block;

/* They are there and the system lets this process use them. */
gboolean hn_int8_has_blocks(void);
/* Around the calls of a thread, with that chunk. */
void hn_int8_blocks_begin(int chunk);
void hn_int8_block(const HnInt8Block *b);
void hn_int8_blocks_end(void);

/* --- results --------------------------------------------------------------------------------------------------------
 */

typedef struct {
    HnDtype dtype;        /* HN_U8, HN_I8, HN_F32, HN_I32: the sums as they are */
    const float *scale;   /* per column, as far as a whole panel */
    const float *shift;   /* added to the scaled sum; NULL: nothing */
    float lo, hi;         /* limits; of bytes before the zero point is added */
    gboolean small;       /* scaled and shifted sums surely fit into 32 bits */
    int zero;             /* of bytes */
    const uint8_t *table; /* [256] what bytes are exchanged by; NULL: by themselves */
    const HnInt8Lut *map; /* what is known about the table; NULL: nothing */
} HnInt8Out;

/* The bytes' limits are those of their type, the zero point is 0: saturation limits them. */
static inline gboolean hn_int8_only_saturates(const HnInt8Out *o)
{
    return o->zero == 0 && (o->dtype == HN_U8 ? o->lo <= 0 && o->hi >= 255 : o->lo <= -128 && o->hi >= 127);
}

/* rows x cols of sums, hn_int8_cols() apart, from column `col` on, to y with `pitch` elements from row to row. */
void hn_int8_finish(const HnInt8Out *o, void *y, int64_t pitch, const int32_t *c, int64_t rows, int cols, int64_t col);

/* to[i] = from[i] ^ flip */
void hn_int8_flip(uint8_t *to, const uint8_t *from, uint8_t flip, int64_t n);

G_END_DECLS
