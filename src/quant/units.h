/*
 * Weights in other units: channels of a model's tensors that share a unit (HN_BOND_UNIT of pass/lib/channel_groups.h)
 * are divided by one number where they are made, and multiplied by it where they are read.
 */
#pragma once

#include "pass/lib/channel_groups.h"

G_BEGIN_DECLS

/* Divides the channels of class k by s[k] everywhere, in c's model or a copy of it. Errors: BUDGET. */
gboolean hn_units_scale(const HnChannels *c, HnModel *m, const double *s, HnBudget *budget, GError **error);

G_END_DECLS
