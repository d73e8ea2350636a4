/*
 * Products of a few rows of numbers with a panel of constant weights of 8 or 4 bits, without unpacking the panel: rows
 * are turned into integers of 16 bits, and products of integers are summed exactly.
 *
 * The K of a row and of a column is cut into segments of at most HN_WQ_SEGMENT, or HN_WQ_LONG_SEGMENT. A row has a
 * scale for each segment, such that its largest magnitude becomes 32639; what that rounds is at most 2^-15.99 of it.
 * Weights have a scale (and zero point) per column, or one per column and segment ("blocked").
 *
 * A panel of hn_wq_cols() columns, weights 0 beyond the last one, is
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

#define HN_WQ_SEGMENT 128      /* 256 times 32639 times so many fit 31 bits: sums do not wrap */
#define HN_WQ_LONG_SEGMENT 256 /* the same of weights whose magnitudes are 128 at most */
#define HN_WQ_GROUP 8
#define HN_WQ_MAX_ROWS 6 /* of hn_wq_rows() at any level */
#define HN_WQ_MAX_COLS 32

/* For the instructions that may be used: the largest tile. */
int hn_wq_rows(void);
int hn_wq_cols(void);

/* How a K is cut. */
typedef struct {
    int64_t k, segment;   /* elements of all segments but the last */
    int64_t segs, groups; /* segments; groups of each but the last */
    int64_t last;         /* groups of the last one */
    int64_t padded;       /* elements of a row in groups */
} HnWqCut;

HnWqCut hn_wq_cut(int64_t k, int64_t segment);

/* Rows as integers. */
typedef struct {
    int16_t *q;   /* [rows][padded] */
    float *scale; /* [rows][segs] */
    float *sum;   /* [rows][segs]: of a segment's q */
} HnWqRows;

/* Bytes of so many rows, and their places in such memory, which is aligned to 64 bytes. */
gsize hn_wq_rows_bytes(const HnWqCut *cut, int64_t rows);
HnWqRows hn_wq_rows_in(void *memory, const HnWqCut *cut, int64_t rows);
/* Row i of `to`: x[k]. Its sums are 0 unless they are wanted, which zero points other than 0 do. A row with a number
 * that is not finite, or whose scale is not, makes NaN only. */
void hn_wq_row(const HnWqCut *cut, const HnWqRows *to, int64_t i, const float *x, gboolean sums);

typedef struct {
    HnWqCut cut;
    int bits; /* 8 or 4 */
    gboolean blocked, zeros;
    int zero; /* where they do not differ */
} HnWqForm;

/* Bytes of a panel. */
gsize hn_wq_panel(const HnWqForm *f);

/* c[row][col] = bias[col] + sum over k of x[row][k] * (w[k][col] - zero) * scale */
typedef struct {
    const HnWqForm *form;
    HnWqRows x;        /* the first of the rows */
    const char *w;     /* the panel */
    const float *bias; /* [cols] or NULL */
    float *c;
    int64_t c_pitch;
    int cols;
} HnWqKernel;

/* Segments [from, to) of a panel as numbers, y[k][hn_wq_cols()], which are the columns of a panel of
 * cpu/gemm/gemm_kernel.h. */
void hn_wq_unpack(const HnWqForm *f, const char *panel, int64_t from, int64_t to, float *y);
/* The product of so many rows is faster with integers than with unpacked weights. */
gboolean hn_wq_is_few(int64_t rows, int bits);

typedef void (*HnWqFn)(const HnWqKernel *t);

/* For 1, 2 ... hn_wq_rows() rows with weights of so many bits. */
const HnWqFn *hn_wq_fns(int bits);

G_END_DECLS
