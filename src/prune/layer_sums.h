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
    gboolean aims;      /* hn_layer_sums_aim() may be called */
    const guint8 *gone; /* by hn_channels_class(): before; NULL: nothing is */
} HnLayerSums;

HnLayerSums hn_layer_sums(const HnPruneMap *map, const HnPruneOptions *o);
void hn_layer_sums_clear(HnLayerSums *p);
void hn_layer_sums_add(HnLayerSums *p, int layer);
/* For one of its inputs to go. */
void hn_layer_sums_choose(HnLayerSums *p, int layer);

/* Those of one level of the map: of all layers that read classes that go, and of those whose weights are fitted. keep:
 * by class, as for hn_prune_run(); NULL: of each some go. dirty: something has gone before. */
HnLayerSums hn_layer_sums_of_level(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, gboolean dirty,
                                   int level);
/* The class has channels that are to go at this level. */
gboolean hn_prune_goes_at(const HnPruneMap *map, const int *keep, int c, int level);

/* Pass i of several, and what comes of its sums later; cleared by the caller. */
typedef HnLayerSums (*HnLayerPassFn)(gconstpointer data, int i, gsize *solving);
/* The most that hn_layer_sums_need() says of n passes, planned only where it may be more than that of others. */
gboolean hn_layer_sums_most(HnLayerPassFn pass, gconstpointer data, int n, gsize *bytes, GError **error);

/* Bytes that a pass takes, all sums together: of `solving`, what is made of them later takes (with the session that
 * targets need), or of sessions, what is more. Where there is no limit nothing is said of sessions. Errors: those of
 * planning. */
gboolean hn_layer_sums_need(const HnLayerSums *p, gsize solving, gsize *bytes, GError **error);
/* What solving all of them takes, where classes are to be chosen and weights to be fitted. */
gsize hn_layer_sums_solving(const HnLayerSums *p);
/* Is there memory for that pass? Errors: those of planning. */
gboolean hn_layer_sums_fit(const HnLayerSums *p, gsize solving, gboolean *fit, GError **error);

/* pruned: the model whose x are looked at, NULL: the dense one. Errors: those of running, BUDGET. */
gboolean hn_layer_sums_run(const HnLayerSums *p, HnModel *pruned, GError **error);

/* Can the layer have targets (hn_gram_aim())? Layers i with weights w[i] get some, pruned being as before. Samples are
 * run once more for that: keeping their rows would take memory for each. */
gboolean hn_layer_sums_aims(const HnLayerSums *p, int layer);
gboolean hn_layer_sums_aim(const HnLayerSums *p, HnModel *pruned, double *const *w, GError **error);

/* [groups, k] of g: inputs of the layer that are no more, gone being by hn_channels_class() (NULL: none is); g_free.
 * They need not be 0 in a masked model, whose layers have weights of 0 for them. */
guint8 *hn_layer_gone_inputs(const HnPruneLayer *l, const HnGram *g, const guint8 *gone);
/* HnObs's ridge for so many samples. */
double hn_layer_ridge(const HnPruneOptions *o);
/* Least squares of one layer, and of all: obs[layer]. Where no row was seen, or no finite one, it is NULL. */
gboolean hn_layer_obs(const HnLayerSums *p, int layer, HnObs **obs, GError **error);
gboolean hn_layer_sums_solve(const HnLayerSums *p, HnObs **obs, GError **error);

G_END_DECLS
