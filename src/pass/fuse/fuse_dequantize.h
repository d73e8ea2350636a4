/*
 * What lowering makes DequantizeLinear of, for planning: it is not to be computed ahead.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

/* n makes f32 of a constant of 8 bits, and all that reads it only multiplies by scales of one axis, perhaps after zero
 * points were subtracted. */
gboolean hn_spells_dequantize(const HnTypes *types, const HnNode *n);

G_END_DECLS
