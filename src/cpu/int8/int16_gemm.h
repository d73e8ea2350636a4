/*
 * Exact products of 8-bit matrices, for ConvInteger, QLinearConv, MatMulInteger and QLinearMatMul.
 *
 * y[m][n] = bias[m] + sum over k of a[m][k] * b[k][n], in 32 bits that wrap. Zero points are taken off first, which
 * leaves numbers of 10 bits: they are multiplied as 16-bit pairs, which no instruction set saturates. a lies as rows of
 * pairs; b as units of 16 columns: [k / 2][16][2]. Columns are the output positions of a window over planes, one per
 * channel of the source; a plain matrix b is that of a single line per channel.
 */
#pragma once

#include "op/window.h"

G_BEGIN_DECLS

#define HN_INT_UNIT 16 /* columns */

typedef struct HnInt16Gemm HnInt16Gemm;

/* 8-bit elements, less their zero point. */
typedef struct {
    uint8_t flip; /* to be xor-ed: makes signed elements unsigned ones, by 128 too large */
    int16_t less;
} HnInt16GemmZero;

/* Where results go: i32, or 8-bit elements y = saturated(rounded(sum * scale) + zero). */
typedef struct {
    void *y;
    int64_t pitch; /* elements from row to row */
    HnDtype dtype; /* HN_I32, HN_U8, HN_I8 */
    const float *scale;
    int row_step, column_step; /* of scale */
    double zero, nan;          /* nan: what becomes of a sum without value */
} HnInt16GemmOut;

struct HnInt16Gemm {
    int64_t m, n, k, pairs; /* pairs: of k, rounded up */
    int64_t channels;
    HnWindowAxis h, v; /* of the window; taps are their kernels' product */
    int64_t units;     /* of n, rounded up to an even number */
    int64_t tile;      /* units that are packed at a time, even */
    /* for the instructions that may be used */
    void (*micro)(int32_t *c, int rows, const int16_t *a, const int16_t *b, const HnInt16Gemm *p);
    void (*bytes)(const HnInt16GemmOut *o, uint8_t *to, const int32_t *sum, const float *scale, int64_t n);
    void (*widen)(int16_t *to, const uint8_t *x, HnInt16GemmZero zero, int64_t n);
    void (*interleave)(int16_t *to, int64_t pitch, const int16_t *even, const int16_t *odd, int64_t n);
};

HnInt16GemmZero hn_int16_gemm_zero(HnDtype dtype, int64_t zero);

/* m rows; h NULL: one line. */
void hn_int16_gemm_init(HnInt16Gemm *p, int64_t m, int64_t channels, const HnWindowAxis *h, const HnWindowAxis *v);
/* A window of one tap over `columns` columns: a plain matrix. */
void hn_int16_gemm_init_matrix(HnInt16Gemm *p, int64_t m, int64_t k, int64_t columns);

/* Bytes of packed rows, of `units` packed units, of the memory that packing units needs besides. */
gsize hn_int16_gemm_rows_bytes(const HnInt16Gemm *p);
gsize hn_int16_gemm_units_bytes(const HnInt16Gemm *p, int64_t units);
gsize hn_int16_gemm_line_bytes(const HnInt16Gemm *p);

/* zero points: one, or one per row (zero_step 1); NULL: 0. */
void hn_int16_gemm_pack_rows(const HnInt16Gemm *p, int16_t *to, const void *a, HnDtype dtype, const void *zero,
                             int zero_step);
/* Units first .. first + n - 1 of the source x. */
void hn_int16_gemm_pack_units(const HnInt16Gemm *p, int16_t *to, const void *x, HnInt16GemmZero zero, int64_t first,
                              int64_t n, int16_t *line);
/* Columns of n units from `first` on, which lie at b. bias: [m] or NULL. */
void hn_int16_gemm_multiply(const HnInt16Gemm *p, const int16_t *a, const int16_t *b, int64_t first, int64_t n,
                            const int32_t *bias, const HnInt16GemmOut *out);

G_END_DECLS
