/*
 * Pruning in rounds: each begins with what the one before it left, whose results are what it is to make.
 */
#pragma once

#include "prune/prune.h"

G_BEGIN_DECLS

/* In `rounds` of them to keep[c] channels of class c, the part that stays of a class being the same in each round. The
 * learner's heal, where there is one, sees the model after all rounds but the last. Errors: those of hn_prune_run(). */
HnModel *hn_prune_in_rounds(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, int rounds,
                            GError **error);

G_END_DECLS
