/*
 * Zeros in weights, where the least is lost, and the rest of the weights made the best there are.
 *
 *     g_autoptr(HnZerosCurves) curves = hn_zeros_curves_new(map, &o, &z, &error);   what zeros would cost
 *     hn_zeros_share(curves, 0.8, through, part);                                   how many for each layer
 *     g_autoptr(HnPruned) p = hn_prune_zeros(map, &o, &z, part, &error);
 *
 * Layers are looked at in the order of the graph, with the inputs of the model as it is so far and the results of the
 * dense one (prune/prune.h); within a layer weights go in rounds (prune/zeros_group.h).
 */
#pragma once

#include "prune/prune.h"

G_BEGIN_DECLS

typedef struct {
    int rows;    /* outputs that share their zeros: 1, 4, 16 */
    int of_four; /* 2: of four inputs in a row two stay, whatever they are worth; 0: as it comes */
} HnZerosOptions;

/* What each layer loses, relative to what it makes, for parts of its weights that become 0, the dense model around it.
 */
typedef struct {
    const HnPruneMap *map;
    GArray **loss; /* by layer: double, with HN_ZEROS_ROUND^i of its weights left; NULL: not known */
} HnZerosCurves;

/* Does the layer take part: it is no depthwise convolution, and sums over 64 products and more. */
gboolean hn_zeros_takes(const HnPruneLayer *l);

/* Errors: those of running, BUDGET. */
HnZerosCurves *hn_zeros_curves_new(const HnPruneMap *map, const HnPruneOptions *o, const HnZerosOptions *z,
                                   GError **error);
void hn_zeros_curves_free(HnZerosCurves *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnZerosCurves, hn_zeros_curves_free)

/* part[]: by layer, of its weights becomes 0; of all that take part `all`. through: HnPruneLoss. Without curves (NULL)
 * each gets the same. */
void hn_zeros_share(const HnPruneMap *map, const HnZerosCurves *c, double all, double through, double *part);

/* What the weights become, in HnPruned.fits: no channel goes. Errors: those of running, BUDGET. */
HnPruned *hn_prune_zeros(const HnPruneMap *map, const HnPruneOptions *o, const HnZerosOptions *z, const double *part,
                         GError **error);
/* As hn_prune_need(), of zeros, their curves included. */
gboolean hn_zeros_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error);

G_END_DECLS
