/*
 * What a file declares of values was true of the sizes that its inputs had.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* Takes the types of all values in g and its sub-graphs, but for those of weights and of g's own inputs. */
void hn_pass_forget_types(HnGraph *g);

G_END_DECLS
