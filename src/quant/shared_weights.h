/*
 * Weights that take the place of several.
 *
 * A network that uses one weight in several places, each with a BatchNormalization or a factor of its own behind it,
 * has as many weights once these are multiplied in: each is another one times a positive factor for each channel. Their
 * integers are the same, only the scales differ.
 */
#pragma once

#include "quant/pack_weights.h"
#include "quant/quant_plan.h"

G_BEGIN_DECLS

typedef struct HnSharedWeights HnSharedWeights;

HnSharedWeights *hn_shared_weights_new(void);
void hn_shared_weights_free(HnSharedWeights *s);

/* Weight v was packed as k, along `axis` of output channels (-1: there is none); q and zero are the values that hold
 * k's integers. */
void hn_shared_weights_add(HnSharedWeights *s, const HnValue *v, HnQuantForm form, int axis, const HnPacked *k,
                           HnValue *q, HnValue *zero);
/* v, packed as k, is one of those times a factor for each channel: k gets that one's integers and scales that make the
 * numbers of them, *q and *zero the values that hold them. FALSE: nothing was done. Errors: BUDGET. */
gboolean hn_shared_weights_find(HnSharedWeights *s, const HnValue *v, HnQuantForm form, int axis, HnPacked *k,
                                HnValue **q, HnValue **zero, HnBudget *budget, GError **error);

/* Weights of equal type, dimensions and elements become one, each seen from where it is read. */
void hn_weights_merge(HnGraph *g);

G_END_DECLS
