/*
 * Products of bytes with constant weights of which many are 0, as lists of steps:
 *
 *     c[row][column] = begin[column] + sum over steps and q < 4 of a[row][at + place[column][q]] * w[column][q]
 *
 * A step looks at a window of bytes of each row, of which a shuffle gives every column of a vector four, from places of
 * its own: no pattern is asked for, and rows lie as dense kernels read them. What a step costs is the same however
 * zeros lie, but columns that share them fill steps better.
 *
 * Weights are [column][segs][depth], rows what cpu/int8/int8_gemm.h says. Where sums of two products saturate at 16
 * bits, weights are spread over steps so that none does: sums are exact at all levels.
 */
#pragma once

#include "cpu/int8/int8_kernel.h"

G_BEGIN_DECLS

typedef struct {
    const int8_t *w; /* of column j at w + j * length */
    int64_t length;
    int cols; /* of a panel: up to hn_int8_cols() */
    int64_t segs, depth;
} HnSparseColumns;

/* Of each half of a panel, a vector of columns. */
typedef struct {
    int64_t steps[2];
} HnSparseLists;

/* Segments so long can be computed at this level. */
gboolean hn_sparse_bytes_fit(int64_t depth);
/* How many steps the columns take, and bytes that lists of so many fill: whole lines of the cache. */
HnSparseLists hn_sparse_bytes_count(const HnSparseColumns *c);
gsize hn_sparse_bytes_size(const HnSparseLists *l);
void hn_sparse_bytes_pack(const HnSparseColumns *c, const HnSparseLists *l, void *to);

/* The time of lists for `rows` rows, and that of dense groups of a vector: in products of one row with one vector.
 * Numbers were measured at 64 to 1,024 inputs (test/perf/sparse.py). */
double hn_sparse_bytes_cost(const HnSparseLists *l, int64_t rows);
double hn_sparse_dense_cost(int64_t groups, int64_t rows);

/* Where a step's window begins: byte `at` of a segment. */
typedef struct {
    int32_t seg, at;
} HnSparsePlace;

/* Up to hn_int8_rows() rows, `step` bytes apart, with the columns of one vector. */
typedef struct {
    const uint8_t *a;
    int64_t step;
    const int64_t *seg_at; /* from a row's begin to its segments */
    const uint8_t *lists;
    const HnSparsePlace *places;
    int64_t steps;
    const int32_t *begin;
    int32_t *c; /* [rows], `pitch` numbers apart */
    int64_t pitch;
} HnSparseTile;

typedef void (*HnSparseTileFn)(const HnSparseTile *t);

/* For 1, 2 ... hn_int8_rows() rows. */
const HnSparseTileFn *hn_sparse_bytes_fns(void);
/* Fills in what packed lists say, for sums of a panel that begin so; returns how many halves have columns. */
int hn_sparse_bytes_open(HnSparseTile *halves, const HnSparseLists *l, const void *packed, const int32_t *begin,
                         int cols);

G_END_DECLS
