/*
 * HnUnits: which channels of a model's tensors could be measured in other units together, with no other result.
 *
 * When channel c of a tensor is divided by a number, whoever makes it has to do that, and whoever reads it has to
 * multiply again. Weights do either: rows of them and biases where it is made, columns of them where it is read;
 * LayerNormalization and constants that are added or multiplied divide too. Relu, pools, sums, concatenations and
 * whatever moves elements about (channels of ShuffleNet) pass a factor on, so that channels of several tensors share
 * one: a class. Classes that something else reads or makes (Sigmoid, an output of the model) are locked.
 *
 * Clip between 0 and a bound is a pass for channels that stay below the bound in all that was seen, as long as they do
 * so in their new unit: see HnClipped.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

typedef struct HnUnits HnUnits;

/* Of the main graph of m, whose types are known. m outlives it and is not edited meanwhile. Errors: BUDGET. */
HnUnits *hn_units_new(HnModel *m, HnBudget *budget, GError **error);
void hn_units_free(HnUnits *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnUnits, hn_units_free)

int hn_units_count(const HnUnits *c);
gboolean hn_units_locked(const HnUnits *c, int k);
void hn_units_lock(HnUnits *c, int k);

/* The class of each place along an axis of v, n of them; NULL: its channels are not known. */
const int *hn_units_of(const HnUnits *c, const HnValue *v, int *axis, int64_t *n);

/* What a Clip's input may reach. */
typedef struct {
    const HnValue *v;
    double most;
} HnClipped;

const GArray *hn_units_clips(const HnUnits *c); /* HnClipped */

/* Divides the channels of class k by s[k] everywhere, in m or a copy of it. Errors: BUDGET. */
gboolean hn_units_scale(const HnUnits *c, HnModel *m, const double *s, HnBudget *budget, GError **error);

G_END_DECLS
