/*
 * A model made ready to be pruned.
 */
#pragma once

#include "base/progress.h"
#include "ir/graph.h"

G_BEGIN_DECLS

/* Weights dense, functions unfolded, simplified, all names apart, types known, of the opset that it had; weights lie so
 * that kernels can use them. Errors: UNSUPPORTED naming the node that cannot be converted; those of passes, BUDGET. */
gboolean hn_prune_ready(HnModel *m, HnBudget *budget, const HnProgress *progress, GError **error);

/* What nobody needs goes, and types are found anew, of a model whose blocks were taken out. Errors: the same. */
gboolean hn_prune_sweep(HnModel *m, HnBudget *budget, GError **error);

G_END_DECLS
