/*
 * HnLowRank: layers as two smaller ones, one behind the other (low rank).
 *
 * y = W x + b becomes y = P' (P W x) + b', where the rows of P are the eigenvectors of the largest eigenvalues of the
 * covariance of the results that the layer makes of samples: of all matrices of that rank, the one that changes them
 * least (X. Zhang et al., "Accelerating very deep convolutional networks", 2015). A convolution becomes one with fewer
 * channels and one over single pixels.
 *
 *     g_autoptr(HnLowRank) f = hn_low_rank_new(map, &o, costs, &error);
 *     hn_low_rank_allocate(f, goal, rank);
 *     HnModel *m = hn_low_rank_model(f, rank, &error);
 */
#pragma once

#include "prune/prune.h"
#include "prune/widths.h"

G_BEGIN_DECLS

typedef struct {
    int layer;       /* of the map */
    int64_t k, outs; /* numbers that it reads for a result, and results */
    int64_t most;    /* a higher rank would be no fewer operations */
    double flops;    /* of the layer as it is */
    double energy;   /* sum of all eigenvalues */
    double *values;  /* [outs], falling */
    double *p;       /* [most, outs] */
    double *mean;    /* [k] of what it reads; NULL: the layer has no bias */
} HnLowRankLayer;

typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
    double rest;   /* operations of all else */
    GArray *items; /* HnLowRankLayer */
} HnLowRank;

/* Of the layers that may become two; costs: operations of all layers (hn_prune_flops_of_layers()). map, o outlive it.
 * Errors: those of running, BUDGET, INTERRUPTED. */
HnLowRank *hn_low_rank_new(const HnPruneMap *map, const HnPruneOptions *o, const HnPruneCosts *costs, GError **error);
void hn_low_rank_free(HnLowRank *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnLowRank, hn_low_rank_free)

/* rank[i] of item i, 0 where it stays whole, such that at most `goal` operations are left, and the sum of what the
 * layers lose, each relative to what it makes, is small. FALSE: there are no such ranks. */
gboolean hn_low_rank_allocate(const HnLowRank *f, double goal, int *rank);
/* A copy of the map's model. Errors: BUDGET, GRAPH. */
HnModel *hn_low_rank_model(const HnLowRank *f, const int *rank, GError **error);

G_END_DECLS
