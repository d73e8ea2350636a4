/*
 * Products in loops, for who runs a model without having optimized it.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* Where a Loop's body takes rows of a tensor and multiplies them, states that no run changes go, and then products that
 * can be made in front of the loop are. Other models stay as they are. On failure m is only good to be freed. Errors:
 * those of hn_pass_run(). */
gboolean hn_hoist_products(HnModel *m, GError **error);

G_END_DECLS
