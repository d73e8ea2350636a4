/*
 * What a loss changes by when a channel goes, to the first order: the sum over samples of | sum of activation times
 * gradient | (Molchanov et al., Importance Estimation for Neural Network Pruning, 2019).
 *
 * The inner sum is taken where the channel is read: over a layer's inputs of that channel it is the same as that of
 * weight times gradient of the weight, and no activation is needed.
 */
#pragma once

#include "prune/layers.h"

G_BEGIN_DECLS

/* Adds one sample's: gradients[i] is that of layer i's weight, of its type and dims; NULL: it is not known. score: by
 * hn_channels_class(). */
void hn_prune_taylor_add(const HnPruneMap *map, HnTensor *const *gradients, double *score);

G_END_DECLS
