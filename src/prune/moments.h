/*
 * Means and spreads of the channels that layers make, as the dense model has them: what estimating the running
 * statistics of BatchNormalization anew does, in the weights and biases of layers, so that it also works where these
 * are folded into them. (K. Jordan et al., "REPAIR: REnormalizing Permuted Activations for Interpolation Repair",
 * 2023.)
 */
#pragma once

#include "prune/prune.h"

G_BEGIN_DECLS

/* A copy of p with other biases, and with `spreads` scaled weights, in the layers behind what went, in the order of the
 * graph. o->data is there. Errors: those of running, BUDGET. */
HnPruned *hn_pruned_matched(const HnPruned *p, const HnPruneOptions *o, gboolean spreads, GError **error);

/* Bytes that takes at least, beside what comes of it, as hn_prune_need(). Errors: those of planning. */
gboolean hn_moments_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error);

G_END_DECLS
