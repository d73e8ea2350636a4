/*
 * Pruning of channels: which go, and what the weights of those that read them become.
 *
 * Layers are looked at in the order of the graph. The inputs x of a layer are those of the model pruned up to there,
 * the results y that it is to make those of the dense model; its weights are the best by least squares (prune/obs.h),
 * and the channels that go are those without which these are least wrong. Nothing is learned, and no labels are needed.
 *
 *     g_autoptr(HnPruneMap) map = hn_prune_map_new(m, budget, &error);
 *     hn_prune_curves(map, &o, loss, &error);                   what widths would cost
 *     g_autoptr(HnPruned) p = hn_prune_run(map, &o, keep, &error);
 *     HnModel *small = hn_pruned_model(p, &error);
 */
#pragma once

#include "base/progress.h"
#include "data/data.h"
#include "prune/choose.h"
#include "run/session.h"

G_BEGIN_DECLS

/* What somebody who can learn does for pruning. */
typedef struct {
    /* score[k], by hn_channels_class(), 0 so far: what is lost when channel k of a class goes. Those of a class that
     * stay 0 are told apart by their weights (HN_PRUNE_L2). Errors: its own. */
    gboolean (*score)(gpointer data, const HnPruneMap *map, double *score, GError **error);
    /* Other weights for *m, which it may replace by another model: between rounds (prune/rounds.h). */
    gboolean (*heal)(gpointer data, HnModel **m, GError **error);
    gpointer data;
} HnPruneLearner;

/* Where memory is limited: what a session takes, and what there is for sums and the sessions that make them. */
typedef struct {
    HnTensor *const *in; /* a sample */
    gsize values;        /* of a session of the whole model (check/session_need.h) */
    gsize beside;        /* the same, beside values */
    GHashTable *bytes;   /* of the dense model's values, by name: gsize *; those of which it is known */
    gsize room;
} HnPruneMemory;

typedef struct {
    const HnBackend *backend;
    int threads;
    HnBudget *budget;
    const HnPruneMemory *memory; /* NULL: any */
    const HnProgress *progress;  /* may be NULL */
    const HnData *data;          /* whose inputs are the model's; NULL: there are no samples */
    int64_t first, n;            /* of it */
    const HnModel *wanted;       /* whose layers' results are those to make; NULL: the map's model */
    HnPruneScore score;
    const HnPruneLearner *learner; /* HN_PRUNE_TAYLOR needs its score; else NULL will do */
    gboolean fit;                  /* weights become others */
    double ridge;                  /* HnObs; 0: a default */
    uint64_t seed;                 /* of what is chosen by chance */
} HnPruneOptions;

/* What goes of a model, and what its weights become. */
typedef struct {
    const HnPruneMap *map;
    HnBudget *budget;
    guint8 *gone; /* by hn_channels_class() */
    int *kept;    /* by class: channels that stay */
    double
        *loss; /* by class: of its readers, relative to what they make, right behind its own removal; NaN: not known */
    HnTensor **fits; /* by layer, two each: weight, bias; NULL: as it was */
    HnTensor **bare; /* by layer: the weight as it was, but for its zeros; NULL: it has no new ones */
    guint fitted;    /* layers */
} HnPruned;

/* loss[c][i]: what the readers of class c lose when the best i + 1 of its channels go, relative to what they make, the
 * dense model around them; n - 1 of them. By weights alone without samples. Errors: those of running, BUDGET. */
gboolean hn_prune_curves(const HnPruneMap *map, const HnPruneOptions *o, double *const *loss, GError **error);

/* Bytes that curves, and pruning, take at least, beside what comes of them: o->memory says what sessions take. Errors:
 * those of planning. */
gboolean hn_prune_curves_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error);
gboolean hn_prune_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error);

/* keep[c]: channels of class c that stay, 1 to n. Errors: those of running, BUDGET. */
HnPruned *hn_prune_run(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, GError **error);
/* Nothing goes, and all weights stay as they are. */
HnPruned *hn_pruned_new(const HnPruneMap *map, HnBudget *budget);
/* The same channels gone and the same weights 0; all others as they became, or as they were (fits FALSE). */
HnPruned *hn_pruned_copy(const HnPruned *p, gboolean fits);
void hn_pruned_free(HnPruned *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnPruned, hn_pruned_free)

/* Copies of the map's model: without the channels, or (masked) with 0 for all that reads them. Errors: BUDGET, GRAPH.
 */
HnModel *hn_pruned_model(const HnPruned *p, GError **error);
HnModel *hn_pruned_masked(const HnPruned *p, GError **error);

G_END_DECLS
