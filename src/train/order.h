/*
 * The order of the nodes of a step's backward part: any that puts nodes behind what they read computes the same, and
 * one that frees values earlier needs less memory.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

/* Moves nodes of g, from `first` on; what nobody reads yet are gradients of weights:
 *   down: in front of the first node that reads what they make, as far as something else reads their inputs, too;
 *   up:   those that turn or cut the gradient of a weight, behind what makes it.
 * So gradients of weights come before those of activations: the activation is free when the other is made. Nodes that
 * hold graphs, and those that such graphs read from, stay. */
void hn_order_backward(HnGraph *g, const HnTypes *types, guint first);

G_END_DECLS
