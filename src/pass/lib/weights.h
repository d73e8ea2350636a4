/*
 * Arithmetic on weights, for passes that move a factor or a summand into them: which nodes are affine, which multiply
 * by constant weights, and the weights that do both at once. All of it is computed in double and rounded once, to the
 * weight's own type.
 */
#pragma once

#include "op/linear.h"
#include "pass/rewrite.h"

G_BEGIN_DECLS

/* A weight that others use too is copied where the copy is no longer than this. */
#define HN_WEIGHTS_COPY ((gsize)64 << 10)

/* --- y = x * scale[c] + shift[c] ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t n;               /* channels, at least 1 */
    double *scale, *shift;   /* n of each */
    gboolean scales, shifts; /* a factor is not 1, a summand is not 0 */
} HnAffine;

void hn_affine_clear(HnAffine *a);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HnAffine, hn_affine_clear)

/* Where n is BatchNormalization, or adds, subtracts, multiplies by or divides by a constant: the input that it does
 * this to, which is of a float type. NULL: it is not. */
HnValue *hn_affine_data(const HnRewrite *r, const HnNode *n);
/* What such a node does to its data of `rank` dimensions, `channels` along `axis`. FALSE: it is not one number for each
 * channel, or its result is larger. */
gboolean hn_affine_read(const HnRewrite *r, const HnNode *n, int rank, int axis, int64_t channels, HnAffine *a);
/* The same where n multiplies or divides all elements by one number, whatever the shape. */
gboolean hn_affine_number(const HnRewrite *r, const HnNode *n, int64_t channels, HnAffine *a);
/* All factors are the same. */
gboolean hn_affine_uniform(const HnAffine *a);

/* --- products with weights ---------------------------------------------------------------------------------------- */

typedef struct {
    HnNode *node;      /* Conv, ConvTranspose, Gemm, MatMul */
    HnNode *add;       /* of a constant, behind a MatMul; NULL: none */
    HnValue *y;        /* what add, or else node, makes */
    HnLinearView view; /* of node; a MatMul's weights may be its first input */
    const HnTensor *w; /* they have elements; NULL: not constant */
    int rank, axis;    /* of y: its channels lie along axis */
    int64_t channels;  /* of y */
    HnValue *b;        /* of Conv, ConvTranspose and Gemm, or what add adds; NULL: none */
    double *bias;      /* `channels` of it, as it is stored; NULL: none, or not one constant for each channel */
} HnLinear;

void hn_linear_clear(HnLinear *l);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HnLinear, hn_linear_clear)

/* y is the product, or the sum of a product and a constant. FALSE too where the weights are stored packed
 * (HN_OP_UNPACK). */
gboolean hn_linear_read(const HnRewrite *r, HnValue *y, HnLinear *l);
/* The same for a node; where it is a MatMul that only an Add of a constant reads, with that. */
gboolean hn_linear_from(const HnRewrite *r, HnNode *node, HnLinear *l);

/* n, which does `a` to l->y, goes: its result becomes that of the product. Where only views lie between l->y and n, and
 * `a` is one factor, they stay. Asks hn_rw_go(). FALSE: nothing was done. */
gboolean hn_linear_absorb(HnRewrite *r, HnNode *n, const HnLinear *l, const HnAffine *a);
/* A bias of l->channels numbers in the shape that the product, or the Add, takes. NULL: no memory. */
HnTensor *hn_linear_bias(const HnRewrite *r, const HnLinear *l, const double *bias);
/* That becomes its bias, and beta 1. A MatMul has an Add already. Call hn_rw_take() or hn_rw_done() next. */
void hn_linear_set_bias(HnRewrite *r, const HnLinear *l, HnTensor *bias);

/* --- new weights -------------------------------------------------------------------------------------------------- */

/* Weights seen as [g, a, b, inner]. */
typedef struct {
    int64_t g, a, b, inner;
} HnWeightsView;

/* `axis` of w is b, what lies in front of it a. */
HnWeightsView hn_weights_along(const HnTensor *w, int axis);
/* The same of l's weights, and groups are g where the axis holds the channels of one: l->view.in or out. */
HnWeightsView hn_linear_weights(const HnLinear *l, int axis);
/* Element [i, j, k, ...] times s[i * b + k]. NULL: no memory. */
HnTensor *hn_weights_scaled(const HnTensor *w, const HnWeightsView *v, const double *s, HnBudget *budget);
/* Sums over k of element [i, j, k, m] times s[i * b + k]: [g, a, inner] of them, to be g_free'd. */
double *hn_weights_dot(const HnTensor *w, const HnWeightsView *v, const double *s);
/* NULL: no memory. */
HnTensor *hn_weights_new(HnDtype dtype, int ndim, const int64_t *dims, const double *x, HnBudget *budget);
/* Every element of t is finite; f16 elements made from `before` (NULL: from nothing) have not lost their digits. */
gboolean hn_weights_good(const HnTensor *t, const HnTensor *before);
/* f32 weights of the same dims: b is a times a positive factor for each index of `axis` (-1: one for all), but for
 * roundings. The factors, to be g_free'd; NULL: it is not. */
float *hn_weights_factors(const HnTensor *a, const HnTensor *b, int axis);
/* Nobody else uses v, or it is short enough to be copied. */
gboolean hn_weights_own(const HnRewrite *r, const HnValue *v);

G_END_DECLS
