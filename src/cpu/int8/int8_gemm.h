/*
 * Products of quantized activations with constant weights: packed panels, and what turns sums into results. The rows of
 * A are the caller's: a matrix's, or what a convolution's windows see.
 *
 * A row of A consists of `segs` segments of `depth` adjacent bytes. Columns belong to groups of `out` columns, each of
 * which sees another part of A; a panel is hn_int8_cols() columns of a group, at most.
 */
#pragma once

#include "cpu/int8/int8_kernel.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/sparse/sparse_bytes.h"
#include "op/conv.h"
#include "op/quantlinear.h"
#include "run/int8_forms.h"

G_BEGIN_DECLS

/* Weights are [out][...], as a convolution's are, not [in][out]. */
gboolean hn_int8_by_rows(const HnStep *s);
/* For hn_pack_own(): this, of weights that the step's zero points have been taken from. */
int64_t hn_int8_variant(const HnStep *s, guint64 how);
/* Of a convolution's step; FALSE: the window does not fit. */
gboolean hn_int8_conv_plan(const HnStep *s, HnConvPlan *plan);

typedef struct {
    gint64 groups, extras; /* of 4 bytes; of which could saturate, behind the others */
    gsize b;               /* bytes into the packed panels */
    int64_t extra;         /* first of them in the list of all */
    int cols;
    gboolean two;    /* by hn_int8_two_fns() */
    gboolean sparse; /* by cpu/sparse/sparse_bytes.h */
    HnSparseLists lists;
} HnInt8Panel;

typedef struct {
    int64_t n_groups, out, segs, depth; /* set before prepare */
    gboolean blocks;                    /* that too: by matrix units, which are there */
    gboolean sparse;                    /* that too: panels of many zeros as lists, where that is faster */
    int64_t rows;                       /* of A; with sparse */
    int64_t panels;                     /* of a group */
    int64_t chunks, seg_groups;         /* of a segment: chunks for matrix units (0: none), groups of 4 bytes */
    int chunk;                          /* bytes of one */
    HnInt8Panel *panel;                 /* [n_groups][panels] */
    int32_t *extra;                     /* which group of 4 it repeats */
    int64_t n_extra;
    /* [n_groups][panels][hn_int8_cols()]; begin: for activations as they are if signed, or flipped to unsigned ones */
    int32_t *begin, *begin_signed;
    float *scale, *shift;
    double *most;        /* that a sum can be away from 0 */
    int32_t *weight_sum; /* where the activation's scale or zero point is known at run time only; else NULL */
    HnInt8Out finish;
    HnInt8Lut map; /* of HnStep.table */
    HnPack *packed;
} HnInt8Gemm;

/* NULL: the step's types and parameters can be computed by such a product, `channels` columns in all; else why not. */
const char *hn_int8_reject(const HnStep *s, int64_t channels);

/* The same for who can do with weights of 9 bits, and takes an activation's scale and zero point that are known at run
 * time only: of results that are numbers. */
const char *hn_int8_reject_wide(const HnStep *s, int64_t channels);
/* One of these is. */
gboolean hn_int8_is_late(const HnStep *s);

/* Weights less their zero point as rows for columns: w[column][segs * depth]. On failure p is to be cleared too. */
gboolean hn_int8_gemm_prepare(HnInt8Gemm *p, HnStep *s, const int8_t *w, GError **error);
/* As lists (cpu/sparse/sparse_bytes.h) p's columns take less time than dense ones, which are `gain` times as fast as
 * panels. p as set before prepare. */
gboolean hn_int8_gemm_has_lists(const HnInt8Gemm *p, const int8_t *w, double gain);
/* The part of it that says what sums begin with and become; without packing. */
void hn_int8_gemm_columns(HnInt8Gemm *p, const HnStep *s, const int8_t *w);
void hn_int8_gemm_clear(HnInt8Gemm *p);
/* *now: p with a late scale and zero point as they are in this run; uses hn_int8_late_bytes() of scratch memory. */
gsize hn_int8_late_bytes(const HnInt8Gemm *p);
void hn_int8_gemm_now(const HnInt8Gemm *p, const HnStep *s, HnInt8Gemm *now, void *scratch);
/* What bytes are exchanged by in this run; once before parallel regions. */
void hn_int8_gemm_exchange(HnInt8Gemm *p, HnInt8Out *finish, const HnStep *s);
/* A step's weights, to be read one by one. */
typedef struct {
    const HnTensor *w, *zero; /* zero: NULL where all zero points are 0 */
} HnInt8Weights;
HnInt8Weights hn_int8_weights(const HnStep *s);

static inline int hn_int8_byte(const HnTensor *t, int64_t i)
{
    return t->dtype == HN_I8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}
/* Weight i less its zero point; `each` elements belong to one channel, or with 0 they take turns of `turn` channels. */
static inline int hn_int8_weight(const HnInt8Weights *of, int64_t i, int64_t each, int64_t turn)
{
    const int v = hn_int8_byte(of->w, i);
    if (of->zero == NULL)
        return v;
    return v - hn_int8_byte(of->zero, of->zero->n == 1 ? 0 : each > 0 ? i / each : i % turn);
}

/* One run of a step. */
typedef struct {
    const HnInt8Gemm *p;
    const HnStep *s;
    HnInt8Out finish;
    const int8_t *b;
    int32_t *at;           /* [n_extra] */
    const int64_t *seg_at; /* [segs]: from a row's begin to its segments */
    int64_t group_step;    /* bytes of A from group to group */
    gboolean is_signed;    /* A holds signed bytes */
    char *y;
    gsize y_size;
    int64_t y_pitch; /* elements from row to row */
} HnInt8Run;

/* Fills in r->at; behind r->seg_at. */
void hn_int8_offsets(HnInt8Run *r);
/* `lines` lines, `line` bytes apart, of `n` rows, `step` bytes apart; results from row `row` on, one after the other;
 * units (panels of all groups) [u0, u1). Unsigned. */
void hn_int8_lines(const HnInt8Run *r, const uint8_t *a, int64_t line, int64_t lines, int64_t step, int64_t n,
                   int64_t row, int64_t u0, int64_t u1);
/* At least 16 rows, `step` bytes apart, between hn_int8_blocks_begin() and _end(). Of every `line` rows the first
 * `valid` are results. */
void hn_int8_rows_apart(const HnInt8Run *r, const uint8_t *a, int64_t step, int64_t row, int64_t rows, int64_t line,
                        int64_t valid, int64_t u0, int64_t u1);

G_END_DECLS
