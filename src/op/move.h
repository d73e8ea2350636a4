/*
 * Shared by the operators that move elements without looking at them: copies by element size, strings included, and
 * the reading of small integer inputs (axes, shapes, repeats).
 *
 * Elements of packed types (below 8 bits) are refused: they have no address of their own.
 */
#pragma once

#include "op/index.h"
#include "op/op.h"

G_BEGIN_DECLS

#define HN_T_COMPLEX (HN_BIT(HN_C64) | HN_BIT(HN_C128))
#define HN_T_PLAIN (HN_T_COMPUTE | HN_BIT(HN_STRING) | HN_T_COMPLEX) /* the types of opset 13 */
#define HN_T_ALL (HN_T_PLAIN | HN_T_F8 | HN_T_SUBBYTE)               /* the types of opset 25 */

typedef struct {
    uint64_t half[2];
} HnPair; /* an element of 16 bytes */

/* As HN_FOR_SIZE, with HnPair for elements of 16 bytes. */
#define HN_FOR_MOVE(size, M)    \
    switch (size) {             \
        HN_CASE(1, uint8_t, M)  \
        HN_CASE(2, uint16_t, M) \
        HN_CASE(4, uint32_t, M) \
        HN_CASE(8, uint64_t, M) \
        HN_CASE(16, HnPair, M)  \
    default:                    \
        break;                  \
    }

/* Bytes that one element takes; 0: failed, return. */
size_t hn_move_size(HnEval *e, HnDtype dtype);
/* hn_eval_out() for elements that are moved in as bytes. Nothing may fail between this and hn_move_done(), which
 * gives every string its reference; an element left all zero is an empty string. */
void *hn_move_out(HnEval *e, int k, HnDtype dtype, int ndim, const int64_t *dims);
void hn_move_done(HnEval *e, int k);

/* dst is contiguous with these dims; src has strides in elements (0 and negative ones too). ndim <= 2 * HN_MAX_RANK. */
void hn_move_strided(void *dst, const void *src, size_t size, int ndim, const int64_t *dims, const int64_t *strides);
/* n copies of one element; NULL: zeros. */
void hn_move_fill(void *dst, const void *elem, size_t size, int64_t n);

/* Elements of integer input i of rank 0 or 1: how many; -1: failed (longer than max, or a matrix). */
int hn_eval_ints(HnEval *e, int i, int64_t *v, int max);
/* The same for a single element. */
gboolean hn_eval_int(HnEval *e, int i, int64_t *v);
/* Index into an axis of n, counted from the back where negative; failure where it is outside. */
static inline gboolean hn_eval_index(HnEval *e, int64_t *index, int64_t n)
{
    if (*index < -n || *index >= n) {
        hn_eval_fail(e, HN_ERROR_VALUE, "index %" G_GINT64_FORMAT " is outside an axis of %" G_GINT64_FORMAT, *index,
                     n);
        return FALSE;
    }
    *index += *index < 0 ? n : 0;
    return TRUE;
}
/* Elements of index tensor t (i32 or i64), each checked against an axis of n; free with hn_eval_scratch_free(). */
int64_t *hn_eval_indices(HnEval *e, const HnTensor *t, int64_t n);

/* Contents of input i, NULL where nothing is known. */
static inline const HnContents *hn_infer_contents(const HnInfer *x, int i)
{
    return i < x->n_in && x->contents != NULL ? x->contents[i] : NULL;
}
/* Output 0 has the contents of input 0 (under a shape of this rank; dropped where rank > 1). */
void hn_infer_pass_contents(HnInfer *x, int rank);
/* A dimension that cannot be negative, whatever its names stand for. */
gboolean hn_dim_nonnegative(HnDim d);
/* Length of a list input (axes, shape, ...) where known; -1. */
int hn_infer_length(const HnInfer *x, int i);
/* May there be contents of such dimensions? */
static inline gboolean hn_infer_is_list(int rank, const HnDim *dims)
{
    return rank == 0 || (rank == 1 && dims[0].known && dims[0].n <= HN_CONTENTS_MAX);
}
/* Axes as given, each in [-rank, rank) and once: TRUE with mark[axis] set (HN_MAX_RANK places). */
gboolean hn_infer_mark_axes(HnInfer *x, const int64_t *axes, int n, int rank, gboolean *mark);
gboolean hn_eval_mark_axes(HnEval *e, const int64_t *axes, int n, int rank, gboolean *mark);

/* Cost of operators that read no more than they write: slices, gathers, splits. */
void hn_cost_move(const HnInfer *x, HnCost *c);
void hn_cost_nothing(const HnInfer *x, HnCost *c);

G_END_DECLS
