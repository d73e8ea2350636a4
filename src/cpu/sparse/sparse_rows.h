/*
 * HnSparseRows: constant weights of which many are 0, as lists of the others, and products of them with columns.
 *
 *     y[o][p] = bias[o] + sum over i of w[o][i] * x[at(i) + p]
 *
 * Columns p lie side by side: pixels of a plane (a tap of a window is another at(i)), or rows of a matrix turned round.
 * Outputs are taken in strips: four whose weights are 0 for the same inputs, so that each x is loaded once for them, or
 * one. (E. Elsen et al., "Fast sparse convnets", 2020.) A vector of weights that are all 0 costs nothing.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

#define HN_SPARSE_STRIP 4

/* How many of an input's weights are 0, and how they lie. */
typedef struct {
    int64_t outs, inputs;
    int64_t entries4, entries1; /* of strips of four, and of single outputs */
    int64_t strips;
} HnSparseCount;

/* w: element (o, i) at o * row + i * col, of any alignment. FALSE: less than the part `least` is 0. */
gboolean hn_sparse_count(const void *w, int64_t outs, int64_t inputs, int64_t row, int64_t col, double least,
                         HnSparseCount *count);

typedef struct {
    int64_t first; /* output */
    int outs;      /* HN_SPARSE_STRIP or 1 */
    int64_t n;     /* entries */
    int64_t at, w; /* in HnSparseRows.at, and of its weight in the packed ones */
} HnSparseStrip;

typedef struct {
    HnSparseCount count;
    HnSparseStrip *strip; /* those of four first */
    int64_t fours;
    int32_t *at; /* [entries]: elements from a column's x */
} HnSparseRows;

/* offset[i]: where input i lies. g_free() of each; floats of packed weights: hn_sparse_floats(). */
void hn_sparse_rows_init(HnSparseRows *r, const HnSparseCount *count, const void *w, int64_t row, int64_t col,
                         const int64_t *offset);
void hn_sparse_rows_clear(HnSparseRows *r);
gsize hn_sparse_floats(const HnSparseCount *count);
void hn_sparse_pack(const HnSparseRows *r, float *to, const void *w, int64_t row, int64_t col);

/* What is to be done with columns [0, columns), hn_sparse_columns() at most, of some strips. */
typedef struct {
    const HnSparseRows *rows;
    const float *weights, *bias; /* bias NULL: 0 */
    const float *x;
    float *y; /* of output 0 */
    int64_t y_pitch;
    const float *add; /* what comes to the results, as y lies; NULL: nothing */
    int64_t add_pitch;
    float lo, hi; /* results are clamped to */
    int64_t columns;
} HnSparseArgs;

int64_t hn_sparse_columns(void);
int64_t hn_sparse_lanes(void); /* of a vector */
/* Strips [from, to); y of strip s is written at y + first * y_pitch, `tile`: at y + (0 to 3) * y_pitch. */
void hn_sparse_strips(const HnSparseArgs *a, int64_t from, int64_t to);
void hn_sparse_tile(const HnSparseArgs *a, int64_t strip);

/* rows of `columns` elements, at most hn_sparse_columns(), `from_pitch` apart: to others that are `to_pitch` apart. */
void hn_sparse_copy(float *to, int64_t to_pitch, const float *from, int64_t from_pitch, int64_t rows, int64_t columns);

/* One call of the loops: up to 6 vectors of columns of some strips. */
typedef struct {
    const float *x, *w, *bias, *add; /* w: of all strips */
    const int32_t *at;               /* the same */
    float *y;
    int64_t y_pitch, add_pitch;
    float lo, hi;
    int tail;      /* columns of the last vector */
    gboolean tile; /* y is where the strip's own results go */
} HnSparseCall;

typedef void (*HnSparseFn)(const HnSparseCall *c, const HnSparseStrip *s, const HnSparseStrip *end);

G_END_DECLS
