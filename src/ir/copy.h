/*
 * A model's copy.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* Everything that a file holds, the weights' elements shared: hn_model_equal() finds no difference. Nodes have to be
 * bound again. m has no functions (hn_settle_opset() unfolds them). */
HnModel *hn_model_copy(const HnModel *m);

G_END_DECLS
