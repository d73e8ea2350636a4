/*
 * New weights for a model that is to be trained from the start, each by what it is for, as records say it:
 *
 *     of a linear layer      normal, standard deviation sqrt(2 / fan-in) (He et al., 2015); its bias 0
 *     of a recurrent one     uniform within 1 / sqrt(hidden units), bias too
 *     tables, positions      normal, standard deviation 0.02
 *     norms                  scale 1, shift 0, running mean 0 and variance 1
 *     factors, addends       1, 0; the slope of a PRelu 0.25
 *
 * What is not trained stays.
 */
#pragma once

#include "train/trainable.h"

G_BEGIN_DECLS

/* Changes m, a model as it was read. Errors: those of binding and inferring, BUDGET, USAGE (patterns). */
gboolean hn_init_weights(HnModel *m, const HnTrainableOptions *o, uint64_t seed, GError **error);

G_END_DECLS
