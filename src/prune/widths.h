/*
 * How many channels of each class stay, for a budget.
 *
 * What a model costs, be it operations, time or bytes, is said as a number for each layer that falls with the channels
 * that it reads and makes; what the classes' readers lose is known for every width (hn_prune_curves()). Widths are
 * taken back in steps, always where the least is lost for what is gained, until the cost is met.
 */
#pragma once

#include "prune/layers.h"

G_BEGIN_DECLS

/* A node whose cost falls as its weights do, such as a recurrent layer's. */
typedef struct {
    const char *node; /* HnChannelMember.node */
    GArray *members;  /* int: of hn_channels_members() */
    double cost;      /* of the dense model's; and of that, what does not fall */
    double part;
} HnPruneOther;

typedef struct {
    const HnPruneMap *map;
    double *layer;     /* by layer: cost of the dense model's */
    double *part;      /* by layer: of that, what does not fall with its channels, 0 to 1 */
    GPtrArray *others; /* HnPruneOther *: nodes that are no layers, but have weights that lose channels */
    double rest;       /* of all else */
    int lanes;         /* 0: layers cost as their products do; else hn_prune_costs_by_vectors() */
} HnPruneCosts;

HnPruneCosts *hn_prune_costs_new(const HnPruneMap *map);
void hn_prune_costs_free(HnPruneCosts *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnPruneCosts, hn_prune_costs_free)

/* Of operations, what they take where results are computed `lanes` at a time: of a layer, for each row of its input,
 * (k + 16) (ceil(outs / lanes) + 1) steps for k products of each of `outs` results. So narrow layers take more than
 * their part of the products, as they do on any processor with vectors. */
void hn_prune_costs_by_vectors(HnPruneCosts *c, int lanes);

/* With keep[c] channels of class c: of a layer, the part of its products that are left, and of all the cost. */
double hn_prune_layer_part(const HnPruneCosts *costs, int layer, const int *keep);
double hn_prune_other_part(const HnPruneCosts *costs, const HnPruneOther *other, const int *keep);
double hn_prune_cost(const HnPruneCosts *costs, const int *keep);
/* Bytes of its weights. */
double hn_prune_other_bytes(const HnPruneCosts *costs, const HnPruneOther *other);

#define HN_PRUNE_WIDTHS 8 /* of HnPruneSteps, where what is lost is all that counts */

/* Widths that are looked at: multiples of a vector, or of its half, quarter and so on, where a class has fewer than
 * `widths` of them. Few are those that fill vectors. */
typedef struct {
    int vector; /* numbers */
    int widths;
} HnPruneSteps;

HnPruneSteps hn_prune_steps(int vector); /* HN_PRUNE_WIDTHS */

/* Channels that a width of class c is a multiple of. */
int hn_prune_step(const HnPruneMap *map, int c, HnPruneSteps s);

/* Of each class the part `ratio` goes, in steps that lose least: one channel at least, and one stays. */
void hn_prune_uniform(const HnPruneMap *map, double ratio, int vector, int *keep);

/* What widths lose. Layers behind make up for part of what those before them lost, or make more of it, and nobody knows
 * for how much. */
typedef struct {
    double *const *of; /* by class, as hn_prune_curves() has it */
    double through;    /* times what the first layers lose that is there at the end */
} HnPruneLoss;

/* The same of layers of that level. */
double hn_prune_gets_through(const HnPruneMap *map, int layer_level, double through);

/* keep[] from all channels on, until the cost is at most `most`. FALSE: it cannot be, and keep[] is the least. */
gboolean hn_prune_allocate(const HnPruneCosts *costs, const HnPruneLoss *loss, double most, HnPruneSteps steps,
                           int *keep);

G_END_DECLS
