/*
 * Operators that ONNX Runtime's tools write become those of the default domain (op/contrib.h), before anything else
 * looks at a model that is to run.
 */
#pragma once

#include "ir/graph.h"

/* Nodes of the model's graph and sub-graphs that have a core form. */
guint hn_count_contrib(const HnModel *m);
/* Spells them out, without `all` only those that have no record to run by; what is made is of the newest opset,
 * whatever the model imports. Nodes of other domains stay. Errors: UNSUPPORTED, for the first form that cannot be said,
 * and for nodes whose weights are laid out for one processor. */
gboolean hn_spell_out_contrib(HnModel *m, gboolean all, GError **error);
/* Outputs of such nodes of the main graph get the types that follow from what they are spelled out as, as if they had
 * been declared. What cannot be spelled out stays unknown. */
void hn_type_contrib(HnModel *m);
