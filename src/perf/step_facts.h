/*
 * What is known of a step before it is timed: the work in it, and what people call it.
 */
#pragma once

#include "op/op.h"
#include "run/backend.h"

G_BEGIN_DECLS

/* FALSE where an input or output has no type yet, which the cost and shapes of a step need: it depends on elements. */
gboolean hn_step_has_types(const HnStep *s);

/* Operations and bytes of one call: inputs and outputs once each, but for those that lie in their place already. */
void hn_step_cost(const HnStep *s, HnCost *c);

/* "Conv+Relu": the step's operators, then those computed along with it (g_free). */
char *hn_step_operators(const HnStep *s);

/* One of the first two inputs is of 8-bit integers. */
gboolean hn_step_is_int8(const HnStep *s);

/* Its result is held as a half. */
gboolean hn_step_is_half(const HnStep *s);

/* "f32[1,3,224,224]" for each of n ports, "" for an absent one; NULL at the end (g_strfreev). */
char **hn_step_shapes(const HnPort *ports, int n);

G_END_DECLS
