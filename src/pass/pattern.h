/*
 * Finding formulas: passes that put one operator where a file spells it out compare with these, so that the order of
 * factors, a division instead of a product, and a constant on either side make no difference.
 *
 * All results on the way have one reader and belong to the graph of the node that the search begins with.
 */
#pragma once

#include "pass/rewrite.h"

G_BEGIN_DECLS

#define HN_PATTERN_LEAVES 6

/* v = factor * leaf[0] * leaf[1] * ... */
typedef struct {
    double factor;
    HnValue *leaf[HN_PATTERN_LEAVES];
    int n;
} HnSgemm;

/* Taken apart as far as Mul, Neg, Div by a number and Pow by 2 or 3 go; v may be read by many. FALSE: more leaves than
 * there is room for. */
gboolean hn_pattern_product(const HnRewrite *r, const HnGraph *g, HnValue *v, HnSgemm *p);
/* x is one of the leaves: takes it out. */
gboolean hn_product_take(HnSgemm *p, const HnValue *x);

/* v = scale * u + shift through Mul, Div, Add, Sub and Neg with numbers: u, which is `stop` where that is on the way. v
 * may be read by many. */
HnValue *hn_pattern_line(const HnRewrite *r, const HnGraph *g, HnValue *v, const HnValue *stop, double *scale,
                         double *shift);

/* The node that makes v, an `op` of g whose result nobody else reads. */
HnNode *hn_pattern_maker(const HnGraph *g, const HnValue *v, const HnOp *op);
/* One number that does not change the shape of `like` by broadcasting. */
gboolean hn_pattern_number(const HnRewrite *r, const HnValue *v, const HnValue *like, double *x);
/* One of n's two inputs is such a number: the other one. */
HnValue *hn_pattern_with_number(const HnRewrite *r, const HnNode *n, double *x);
/* Equal but for the rounding of a constant. */
gboolean hn_pattern_near(const HnRewrite *r, const HnValue *v, double a, double b);
/* v is of f32 or f16, or of bf16 where the graph is lowered. */
gboolean hn_pattern_is_float(const HnRewrite *r, const HnValue *v);
/* v is 0, 1, 2, ... n - 1 along its last axis, the others are of size 1. */
gboolean hn_pattern_counts_up(const HnRewrite *r, const HnValue *v, int64_t n);
/* n is Clip or Relu with constant bounds, infinite where there are none. */
gboolean hn_pattern_bounds(const HnRewrite *r, const HnNode *n, double *lo, double *hi);
/* The only axis that n, a reduction that keeps it, reduces, from the front; -1: several, or not known. */
int hn_pattern_axis(const HnRewrite *r, const HnNode *n);
/* A new weight of one element and v's type. */
HnValue *hn_pattern_scalar(HnRewrite *r, HnGraph *g, const char *stem, const HnValue *v, double x);

G_END_DECLS
