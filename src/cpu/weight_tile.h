/*
 * Products of a few rows of numbers with a panel of constant weights of 8 or 4 bits, without unpacking the panel: rows
 * are turned into integers of 16 bits, and products of integers are summed exactly.
 *
 * The K of a row and of a column is cut into segments of at most HN_WEIGHT_SEGMENT. A row has a scale for each segment,
 * such that its largest magnitude becomes 32639; what that rounds is at most 2^-15.99 of it. Weights have a scale (and
 * zero point) per column, or one per column and segment ("blocked").
 *
 * A panel of hn_weight_cols() columns, weights 0 beyond the last one, is
 *     blocked: for each segment: scales f32[cols], zero points i8[cols] (if they differ), groups
 *     else:    scales f32[cols], zero points i8[cols] (if they differ), groups of all segments
 * with a group of 8 k, zeros behind a segment's end:
 *     8 bits:  i8[4 pairs of k][cols][2]
 *     4 bits:  [cols][2 bytes of k even, 2 of k odd]: nibble i of the 16 bits is that of pair i; 0 to 15
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

#define HN_WEIGHT_SEGMENT 128 /* 256 times 32639 times so many fit 31 bits: sums do not wrap */
#define HN_WEIGHT_GROUP 8
#define HN_WEIGHT_MAX_ROWS 6 /* of hn_weight_rows() at any level */
#define HN_WEIGHT_MAX_COLS 32

/* For the instructions that may be used: the largest tile. */
int hn_weight_rows(void);
int hn_weight_cols(void);

/* How a K is cut. */
typedef struct {
    int64_t k, segment;   /* elements of all segments but the last */
    int64_t segs, groups; /* segments; groups of each but the last */
    int64_t last;         /* groups of the last one */
    int64_t padded;       /* elements of a row in groups */
} HnWeightCut;

HnWeightCut hn_weight_cut(int64_t k, int64_t segment);

/* Rows as integers. */
typedef struct {
    int16_t *q;   /* [rows][padded] */
    float *scale; /* [rows][segs] */
    float *sum;   /* [rows][segs]: of a segment's q */
} HnWeightRows;

/* Bytes of so many rows, and their places in such memory, which is aligned to 64 bytes. */
gsize hn_weight_rows_bytes(const HnWeightCut *cut, int64_t rows);
HnWeightRows hn_weight_rows_in(void *memory, const HnWeightCut *cut, int64_t rows);
/* Row i of `to`: x[k]. A row with a number that is not finite, or whose scale is not, makes NaN only. */
void hn_weight_row(const HnWeightCut *cut, const HnWeightRows *to, int64_t i, const float *x);

typedef struct {
    HnWeightCut cut;
    int bits; /* 8 or 4 */
    gboolean blocked, zeros;
    int zero; /* where they do not differ */
} HnWeightForm;

/* Bytes of a panel. */
gsize hn_weight_panel(const HnWeightForm *f);

/* c[row][col] = bias[col] + sum over k of x[row][k] * (w[k][col] - zero) * scale */
typedef struct {
    const HnWeightForm *form;
    HnWeightRows x;    /* the first of the rows */
    const char *w;     /* the panel */
    const float *bias; /* [cols] or NULL */
    float *c;
    int64_t c_pitch;
    int cols;
} HnWeightTile;

/* Segments [from, to) of a panel as numbers, y[k][hn_weight_cols()], which are the columns of a panel of cpu/tile.h. */
void hn_weight_unpack(const HnWeightForm *f, const char *panel, int64_t from, int64_t to, float *y);
/* The product of so many rows is faster with integers than with unpacked weights. */
gboolean hn_weight_is_few(int64_t rows, int bits);

typedef void (*HnWeightFn)(const HnWeightTile *t);

/* For 1, 2 ... hn_weight_rows() rows with weights of so many bits. */
const HnWeightFn *hn_weight_fns(int bits);

G_END_DECLS
