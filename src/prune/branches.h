/*
 * HnPruneBlock: a part of a graph that can go as a whole, because what goes into it may take the place of what comes
 * out: a branch of a residual sum, or a layer that makes as many numbers as it reads.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct {
    const HnValue *out, *in; /* in takes the place of out */
    guint layers;            /* with weights, that nobody needs any more */
} HnPruneBlock;

/* Those of the model's graph, whose types are known, in its order. */
GArray *hn_prune_blocks(const HnModel *m);

/* Takes the place of everything that reads `out`; what only served it goes. Both are values of m's graph; FALSE: not
 * of the same type, or `in` is made of `out`. */
gboolean hn_prune_skip(HnModel *m, const char *out, const char *in);

G_END_DECLS
