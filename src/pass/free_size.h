/*
 * A fixed dimension of a model's inputs becomes free, where it is a size: height, width, time. What is computed at
 * other sizes is what the operators say; that it is what somebody wants cannot be known. Shapes have to come out:
 * constant shapes of views follow, and a node that fits the old size only is named.
 */
#pragma once

#include "pass/free_batch.h"

G_BEGIN_DECLS

/* m, which has no functions and is not changed, with those dimensions called `symbol`. *out: free with hn_model_free().
 * Errors: as hn_free_batch(). */
gboolean hn_free_size(const HnModel *m, const HnFreeDim *dims, guint n, const char *symbol, HnBudget *budget,
                      HnModel **out, GError **error);

G_END_DECLS
