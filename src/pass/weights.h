/*
 * Arithmetic on weights, for passes that move a factor or a summand into them. Results are rounded once, to the
 * weight's own type.
 */
#pragma once

#include "pass/rewrite.h"

G_BEGIN_DECLS

/* w with element [..., i, ...] along `axis` times s[i]; NULL: no memory. */
HnTensor *hn_weights_scaled(const HnTensor *w, int axis, const double *s, HnBudget *budget);

/* y = scale[c] * (what n computes) + shift[c] for each output channel c, of which input 1 of n has one for each place
 * along `axis`: goes into that weight and into input 2, which is made where it is absent. Both are constant; n is Conv,
 * ConvTranspose of one group, or Gemm with alpha = beta = 1. Call hn_rw_take() or hn_rw_done() next. */
gboolean hn_weights_affine(HnRewrite *r, HnNode *n, int axis, const double *scale, const double *shift);

G_END_DECLS
