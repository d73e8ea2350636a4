/*
 * Which channels of a class go.
 */
#pragma once

#include "base/progress.h"
#include "prune/layers.h"
#include "prune/obs.h"

G_BEGIN_DECLS

typedef enum {
    HN_PRUNE_OBS,    /* least error of all readers, the rest of their weights being the best there are */
    HN_PRUNE_L1,     /* sum of the magnitudes of all weights of the channel */
    HN_PRUNE_L2,     /* the same of their squares */
    HN_PRUNE_BN,     /* factor of a BatchNormalization, or of what it became part of */
    HN_PRUNE_WANDA,  /* weights of readers, times the root mean square of what they read */
    HN_PRUNE_TAYLOR, /* what a loss changes by when the channel goes, by its gradient: see prune/taylor.h */
    HN_PRUNE_RANDOM, /* any */
    HN_PRUNE_SCORES
} HnPruneScore;

const char *hn_prune_score_name(HnPruneScore s);
gboolean hn_prune_score_parse(const char *text, HnPruneScore *s);

/* A score for each channel of class c, [n], from weights alone; wanda and obs: those of readers that no HnObs speaks
 * for, as parts of their sum. */
void hn_prune_weight_scores(const HnPruneMap *map, int c, HnPruneScore s, uint64_t seed, double *score);

/* The channels of class c one after the other, the one with the least loss first, `most` of them: order[most]. obs[i],
 * of layer i, loses their inputs; NULL: nothing is known of it. others[n]: what else each is worth. loss[i]: of all up
 * to order[i], relative to what each reader makes, summed over readers; may be NULL. FALSE: it was halted, obs and
 * order are good for nothing. */
gboolean hn_prune_choose(const HnPruneMap *map, int c, HnObs *const *obs, const double *others, int most, int *order,
                         double *loss, const HnProgress *progress, GError **error);

/* Of these n channels, which have gone, those come back for which another one goes with less loss, until there is none
 * (the local search of OSSCAR); nothing where that would take long. *loss: of all, as above. */
gboolean hn_prune_exchange(const HnPruneMap *map, int c, HnObs *const *obs, const double *others, int n, int *order,
                           double *loss, const HnProgress *progress, GError **error);

/* The readers lose the inputs of these channels, chosen by something else. */
void hn_prune_take(const HnPruneMap *map, int c, HnObs *const *obs, const int *order, int n);

G_END_DECLS
