/*
 * A search's plan by error: which nodes stay f32 so that the goals are met. For the files of the search alone.
 */
#pragma once

#include "quant/search_state.h"

G_BEGIN_DECLS

/* Each candidate alone: the sensitivity table. */
gboolean hn_search_alone(HnSearchState *s, GError **error);

/* Some plan, if a few trials find one: nodes whose weights are rounded worst for their bytes stay f32, as many as need
 * to. */
gboolean hn_search_quick(HnSearchState *s, GError **error);

/* What is asked for where the base does not meet the goals; `part` of the limits is what it uses up. Tried alone, all
 * nodes must have been. Where no plan meets the goals, none is kept. */
gboolean hn_search_by_error(HnSearchState *s, double part, GError **error);

G_END_DECLS
