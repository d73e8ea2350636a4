/*
 * Operations of a model by its operators' records, without a plan: nothing is bound to a device, no weight is read.
 */
#pragma once

#include "data/input_shapes.h"
#include "op/infer.h"

G_BEGIN_DECLS

/* Types of all values where the inputs that are no weights have the sizes of `shapes` (NULL: 1 where they are free);
 * what is unknown or does not fit stays without. hn_types_free(). */
HnTypes *hn_flops_types(HnModel *m, const HnShapes *shapes, HnBudget *budget);

/* Of one node, a multiply-add counting 2. FALSE: its types are not all known, or it runs sub-graphs, whose nodes count
 * by themselves. */
gboolean hn_flops_node(const HnTypes *t, const HnNode *n, double *flops);

/* Of a run: of branches the one with most, bodies as often as they run where that is known, and once where it is not.
 * *left: nodes of which it is not known. */
double hn_flops(const HnTypes *t, const HnModel *m, guint *left);

G_END_DECLS
