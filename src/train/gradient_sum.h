/*
 * HnGradientSum: gradients of numbered micro-batches, added in a fixed binary tree: 0 and 1, 2 and 3, then these sums,
 * and so on. The sum does not depend on threads, nor on who made which part.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

typedef struct HnGradientSum HnGradientSum;

/* Of n f32 tensors each time. */
HnGradientSum *hn_gradient_sum_new(guint n, int threads, HnBudget *budget);
void hn_gradient_sum_free(HnGradientSum *s);

/* The next micro-batch's, which are copied. Errors: BUDGET. */
gboolean hn_gradient_sum_add(HnGradientSum *s, HnTensor *const *gradients, GError **error);
/* The sum of all since the last call, borrowed until the next one. NULL: error, or there were none. */
HnTensor *const *hn_gradient_sum_finish(HnGradientSum *s, GError **error);
/* How many sums are held at once, at most, while gradients of `parts` micro-batches are added. */
guint hn_gradient_sum_levels(guint parts);

G_END_DECLS
