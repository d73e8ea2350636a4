/*
 * Channels that leave a model: whole classes of HN_BOND_FATE, from weights and results alike.
 *
 * What is left computes what the model computed with everything that reads those channels multiplied by 0. Weights lose
 * rows and columns, and parameters that count channels change with them (HnOp.narrow).
 */
#pragma once

#include "pass/lib/channel_groups.h"

G_BEGIN_DECLS

/* Locks the classes that pass through nodes whose parameters cannot follow: found by trying, on copies of c's model
 * that are given away again. Errors: BUDGET. */
gboolean hn_channels_lock_fixed(HnChannels *c, GError **error);

/* m, a copy of c's model, without the classes k whose gone[k] is set (hn_channels_class(k) == k; none is locked, and
 * some of each group stay). Its types are inferred anew. Errors: BUDGET; GRAPH, where a node cannot follow; m is of no
 * use then. */
gboolean hn_channels_remove(const HnChannels *c, const guint8 *gone, HnModel *m, GError **error);

/* m, a copy of c's model, with 0 for the weights that read those classes, and for those of linear layers that make
 * them: what the model without them has to agree with. Errors: BUDGET. */
gboolean hn_channels_mask(const HnChannels *c, const guint8 *gone, HnModel *m, GError **error);

G_END_DECLS
