/*
 * HnPruneMap: what of a model may go, and who would notice.
 *
 * A class (HnPruneClass) is a group of channels that may be exchanged for each other (pass/lib/channel_groups.h): each
 * of its channels lies along the same axes of the same tensors, and any number of them may go, but not all. Whoever
 * multiplies them by weights and sums up is a reader: a layer whose weights can be computed anew by least squares, or
 * another member, of which only the size of its weights is known.
 */
#pragma once

#include "check/linear_rows.h"
#include "pass/lib/channel_removal.h"

G_BEGIN_DECLS

typedef struct {
    const HnNode *node;
    HnLinearRows rows;
    int level;     /* layers on the longest way to it */
    gboolean free; /* its weights may become others: nobody else reads them, and it is a plain product of them */
    int x, w;      /* inputs of the node: data and weights */
    int bias;      /* the bias; -1: it has none that could become another */
    const int *at; /* class of channels (hn_channels_class()) of each channel of x; NULL: none of them may go */
    float lo, hi;  /* all results below lo, and all above hi, come to the same behind it; infinite: there is no such */
    gboolean passes; /* what goes of x goes of y: no sum of the layer is missing anything */
} HnPruneLayer;

typedef struct {
    const HnChannelGroup *group;
    char *name;     /* of the first tensor that its channels lie along */
    int n;          /* channels */
    int level;      /* of the first layer that reads it; G_MAXINT: none does */
    gboolean fixed; /* somebody wants it to stay */
    GArray *layers; /* int: layers that read it */
    GArray *others; /* int: members that read it and are none of these */
} HnPruneClass;

typedef struct {
    HnModel *model; /* dense */
    HnChannels *channels;
    GPtrArray *groups;  /* HnChannelGroup * */
    GPtrArray *layers;  /* HnPruneLayer * */
    GPtrArray *classes; /* HnPruneClass *: what may go */
    GPtrArray *locked;  /* HnChannelGroup * that may not */
    int levels;
    int *class_of; /* by hn_channels_class(): index into classes; -1: it stays */
    int *place_of; /* the same: which channel of its class it is */
} HnPruneMap;

/* m, whose types are known, outlives it. Errors: BUDGET. */
HnPruneMap *hn_prune_map_new(HnModel *m, HnBudget *budget, GError **error);
void hn_prune_map_free(HnPruneMap *map);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnPruneMap, hn_prune_map_free)

/* Inputs of a row, without the 1 of a bias, that channel `place` of class c is, in that group of the layer: appended to
 * `at` (int64_t). */
void hn_prune_inputs(const HnPruneMap *map, const HnPruneLayer *l, int c, int place, int64_t group, GArray *at);

/* The layer's weights and bias as HnObs has them: [groups, k (+ 1), outs]; g_free. */
double *hn_prune_weights(const HnPruneLayer *l);
/* The same of tensors that took their places; bias NULL: the layer has none, it is 0. */
double *hn_prune_weights_in(const HnPruneLayer *l, const HnTensor *weight, const HnTensor *bias);
/* The same back: a weight, and a bias (NULL where it has none) that the node's tensors become. Errors: BUDGET. */
gboolean hn_prune_tensors(const HnPruneLayer *l, const double *w, HnBudget *budget, HnTensor **weight, HnTensor **bias,
                          GError **error);

G_END_DECLS
