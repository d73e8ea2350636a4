/*
 * Products of a few rows with a panel of packed columns, whose sums stay in registers: what matrix products and
 * convolutions are made of.
 *
 * The right operand B [k, n] is packed by hn_gemm_kernel_pack() into panels of hn_gemm_kernel_cols() columns, [n /
 * cols][k][cols], zeros beyond the last column. Rows of A are given by pointers: k elements each, adjacent. A row may
 * consist of segments ("taps") that lie apart, as those of a convolution do: the panel is then [taps][k][cols]. A tap
 * that lies in padding points to zeros.
 *
 *     one tile       hn_gemm_kernel_fns(cols)[rows - 1](&args): rows x cols sums of all taps
 *     one product    hn_gemm_blocked(&g, part, parts): m x n sums, blocked for the caches, this part of the work
 *
 * A transposed A (adjacent rows, not adjacent k) is packed block by block on the way, into [k][rows] for each strip,
 * and so is B where it is used once: a panel of some k is multiplied while it is in the first caches.
 * Both begin with the bias, zeros or what C holds (accumulate), and end with an optional addend of C's shape, post
 * operations (cpu/core/post.h), and a clamp to [lo, hi], which NaN passes. No clamp: HN_GEMM_KERNEL_LOW,
 * HN_GEMM_KERNEL_HIGH. Nothing is allocated.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "cpu/core/post.h"

G_BEGIN_DECLS

#define HN_GEMM_KERNEL_MAX_ROWS 12 /* of hn_gemm_kernel_rows() at any level */
#define HN_GEMM_KERNEL_MAX_COLS 32
#define HN_GEMM_KERNEL_FEW 4                 /* rows of a tile from which on sums are made in one order */
#define HN_GEMM_KERNEL_LOOSE_ROWS 6          /* up to which B need not be packed */
#define HN_GEMM_KERNEL_LOW (-G_MAXFLOAT * 2) /* -inf */
#define HN_GEMM_KERNEL_HIGH (G_MAXFLOAT * 2)

/* For the instructions that may be used: the largest tile. */
int hn_gemm_kernel_rows(void);
int hn_gemm_kernel_cols(void);

typedef struct {
    const float *const *a; /* [taps][a_tap]: where rows begin; the first `rows` of each tap are read */
    int64_t a_tap;         /* pointers from tap to tap; 0: all taps have the same ones */
    int64_t a_at, a_step;  /* elements that are added to each pointer: for the first tap; more for each further tap */
    int64_t a_k;           /* elements from k to the next one; 0: 1, adjacent */
    int64_t taps, k;
    const float *b;         /* [taps][k][hn_gemm_kernel_cols()]: (part of) a panel */
    int64_t b_pitch, b_tap; /* floats from k to the next one: hn_gemm_kernel_cols(), which is taken as read above
                               HN_GEMM_KERNEL_LOOSE_ROWS; from tap to tap */
    const float *bias;      /* [cols]; NULL: zeros */
    const float *add;       /* [rows][add_pitch]; NULL: none */
    float *c;               /* [rows][c_pitch] */
    int64_t add_pitch, c_pitch;
    int cols;            /* 1 ... hn_gemm_kernel_cols() */
    gboolean accumulate; /* begin with c instead of the bias */
    const HnPost *post;  /* [posts] */
    int posts;
    int64_t channel; /* of the first column, for the posts */
    float lo, hi;
    const float *next; /* what to bring closer meanwhile, from here on; NULL: nothing */
    int64_t next_step; /* ... floats for each k */
} HnGemmKernelArgs;

typedef void (*HnGemmKernelFn)(const HnGemmKernelArgs *t);

/* For 1, 2 ... hn_gemm_kernel_rows() rows of so many columns, which t->cols has to be. */
const HnGemmKernelFn *hn_gemm_kernel_fns(int cols);
extern const HnGemmKernelFn *const hn_gemm_kernel_narrow; /* those of at most 8 columns at AVX-512 */

/* to[i * planes + p] = from[p * plane + i], i < n: a few planes side by side. */
void hn_gemm_kernel_interleave(float *to, const float *from, int64_t plane, int64_t planes, int64_t n);

/* Floats of n columns of k rows in panels. */
int64_t hn_gemm_kernel_packed(int64_t k, int64_t n);
/* Packs b[i * row + j * col] of any alignment, i < k, j < n: fast where row or col is 1. */
void hn_gemm_kernel_pack(float *to, const void *b, int64_t row, int64_t col, int64_t k, int64_t n);

/* c[m, n] = a[m, k] * b[k, n] and what the tiles begin and end with. */
typedef struct {
    int64_t m, n, k;
    gboolean pairs; /* products of bf16 (cpu/gemm/gemm_pairs.h): b is packed so, or on the way, and there is room */
    const float *a, *b;
    float *c;
    int64_t b_pitch; /* 0: b is packed; else elements from row to row of a plain b, which pays for a few rows of c */
    /* Not NULL: b is b[i * b_row + j * b_col], which is packed on the way into these hn_gemm_kernel_panels() floats. */
    float *panels;
    int64_t b_row, b_col;
    int64_t a_pitch, c_pitch; /* elements from row to row */
    int64_t a_k;              /* elements from k to k of a; 0: 1. Where that is not 1, a_pitch is, and b is packed: */
    float
        *room; /* hn_gemm_kernel_room() floats that this part has for itself, with `pairs` too; NULL: a is read as is */
    const float *bias; /* [n] or NULL */
    const float *add;  /* [m][add_pitch] or NULL */
    int64_t add_pitch;
    gboolean accumulate;
    const HnPost *post; /* [posts], of channels [0, n) */
    int posts;
    float lo, hi;
    /* [lates], of the same channels, for the finished results of each tile; NULL: none */
    const HnPost *late;
    int lates;
    /* Called for each block of finished results while they are hot, rows [row, row + rows) and columns [col, col +
     * cols) of c; NULL: not. */
    void (*done)(gpointer data, int64_t row, int64_t rows, int64_t col, int64_t cols);
    gpointer data;
} HnGemmBlocked;

/* Floats that a part of a product packs blocks of A, m x k, into. Of pairs, k are the words here and below. */
int64_t hn_gemm_kernel_room(int64_t m, int64_t k);
/* Floats that a part of a product packs b, k x n, into on the way. */
int64_t hn_gemm_kernel_panels(int64_t k, int64_t n);
/* How `parts` share the tiles, `strips` of them down `rows` rows and `panels` across: as a grid, at most so many, whose
 * largest share is the smallest. Rows are cut rather than columns where it is tall, else columns: rows of two threads
 * share no line of memory, and what is packed on the way is packed by each of those that share columns. */
void hn_gemm_kernel_grid(int64_t rows, int64_t strips, int64_t panels, gboolean tall, int parts, int *down,
                         int *across);
/* A grid of `down` x `across` rectangles of a product, row by row: units that threads share by hn_parallel_for(). */
typedef struct {
    int down, across;
} HnGemmCut;

/* More units than threads where that costs little, so that those that are faster do more; as many at most, where
 * operands are packed anew in each of them. */
HnGemmCut hn_gemm_cut(int64_t m, int64_t n, int64_t k, gboolean anew, int threads);
/* The rectangle that begins with a unit and ends before `end`: rows [*r0, *r1), panels [*p0, *p1). Returns the unit
 * behind it. */
int64_t hn_gemm_unit(const HnGemmCut *cut, int64_t m, int64_t panels, int64_t unit, int64_t end, int64_t *r0,
                     int64_t *r1, int64_t *p0, int64_t *p1);
/* Units [from, to). */
void hn_gemm_blocked_units(const HnGemmBlocked *g, const HnGemmCut *cut, int64_t from, int64_t to);
/* Part `part` of `parts` that may run at the same time. */
void hn_gemm_blocked(const HnGemmBlocked *g, int part, int parts);

G_END_DECLS
