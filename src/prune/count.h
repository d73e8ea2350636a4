/*
 * Operations of models, and of their layers.
 */
#pragma once

#include "prune/prune.h"
#include "prune/widths.h"

G_BEGIN_DECLS

/* Of a run on tensors of the types of in[], by the records' costs. by_node: first output -> double *, those of each
 * node, are added to it; may be NULL. Errors: those of planning. */
gboolean hn_prune_flops(HnModel *m, HnTensor *const *in, HnBudget *budget, GHashTable *by_node, double *flops,
                        GError **error);

/* The same for each layer of costs->map, and of all else; base: the map's model. */
gboolean hn_prune_flops_of_layers(HnModel *base, HnTensor *const *in, HnBudget *budget, HnPruneCosts *costs,
                                  GError **error);

/* The map's model with so many channels, whichever: for what does not depend on them. o: for threads and memory. */
HnModel *hn_prune_narrow(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, GError **error);

G_END_DECLS
