/*
 * Products of DynamicQuantizeLSTM: rows of floats, rounded to bytes with one step, times constant weights in bytes.
 *
 * Columns are those of the gates as rnn_cell.h has them, [panels of 16 units][gates][16]. Where weights less their zero
 * points are bytes, that is what is multiplied; else, and where too many sums of two products would saturate, pairs of
 * 16-bit numbers: either way 4 bytes of a row at a time.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "cpu/int8/int8_kernel.h"
#include "cpu/sparse/sparse_bytes.h"

G_BEGIN_DECLS

/* What is behind a panel's groups: those that hn_int8_split() left something of. */
typedef struct {
    gsize b; /* bytes into the packed weights */
    int64_t extra, extras;
    gboolean sparse; /* lists of weights that are mostly 0 instead of groups */
    HnSparseLists lists;
} HnRnnPanel;

typedef struct {
    const HnInt8KernelFn *fns;
    int64_t inputs, hidden, directions; /* rows of the weights, columns of a gate */
    int64_t groups, columns, panels;    /* of 4 bytes; a multiple of a panel's; panels of `cols` columns */
    int cols, rows;
    gboolean pairs, sparse; /* sparse: of some panels */
    HnRnnPanel *panel;      /* [directions][panels] */
    int32_t *extra;         /* from a row's begin to the groups that are there twice */
    HnPack
        *pack; /* i32[directions][columns] sums of weights; [directions][panels][groups + extras][cols][4], or lists */
    float *scale; /* [directions][columns] */
} HnRnnInt8;

/* For the weights of input i and their steps, constant inputs `step` and step + 1. NULL: they can be multiplied so. */
const char *hn_rnn_int8_reject(const HnStep *s, int i, int step);
HnRnnInt8 *hn_rnn_int8_new(HnStep *s, int i, int step, GError **error); /* on failure to be freed, too */
void hn_rnn_int8_free(HnRnnInt8 *p);

/* The range of n numbers joins range[2], which has 0 in it. */
void hn_rnn_int8_range(const float *x, int64_t n, float *range);
/* Bytes of a row. */
static inline int64_t hn_rnn_int8_row(const HnRnnInt8 *p)
{
    return p->groups * HN_INT8_GROUP;
}
/* A row of p->inputs numbers with the step that a range has. */
void hn_rnn_int8_round(const HnRnnInt8 *p, void *to, const float *x, float scale, int zero);
/* n rows with that step, one behind the other, times the weights of direction d, input i of step s: added to rows of
 * p->columns floats. */
typedef struct {
    const HnRnnInt8 *p;
    const HnStep *s;
    int i;
    int64_t d, n;
    const void *a;
    float scale;
    int zero;
    gboolean backwards; /* the last weights first: of them, some are in the first cache if they were read last before */
    float *to;
} HnRnnInt8Product;
void hn_rnn_int8_multiply(const HnRnnInt8Product *m);

G_END_DECLS
