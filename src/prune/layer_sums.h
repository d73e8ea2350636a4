/*
 * HnLayerSums: a pass over samples that takes the sums of least squares (prune/gram.h) for some layers of a model.
 */
#pragma once

#include "prune/obs.h"
#include "prune/prune.h"

G_BEGIN_DECLS

typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
    GArray *layers;     /* int */
    HnGram **grams;     /* by layer */
    guint8 *wanted;     /* by layer: y of the dense model is wanted, too ... */
    guint8 *chosen;     /* ... and some of its inputs are to go */
    const guint8 *gone; /* by hn_channels_class(): before; NULL: nothing is */
} HnLayerSums;

HnLayerSums hn_layer_sums(const HnPruneMap *map, const HnPruneOptions *o);
void hn_layer_sums_clear(HnLayerSums *p);
void hn_layer_sums_add(HnLayerSums *p, int layer);
/* For one of its inputs to go. */
void hn_layer_sums_choose(HnLayerSums *p, int layer);

/* Bytes of sums that one pass is for. */
gsize hn_layer_sums_room(const HnPruneOptions *o);

/* pruned: the model whose x are looked at, NULL: the dense one; taken. Errors: those of running, BUDGET. */
gboolean hn_layer_sums_run(const HnLayerSums *p, HnModel *pruned, GError **error);

/* HnObs's ridge for so many samples. */
double hn_layer_ridge(const HnPruneOptions *o);
/* Least squares of one layer, and of all: obs[layer]. Where no row was seen, or no finite one, it is NULL. */
gboolean hn_layer_obs(const HnLayerSums *p, int layer, HnObs **obs, GError **error);
gboolean hn_layer_sums_solve(const HnLayerSums *p, HnObs **obs, GError **error);

G_END_DECLS
