/*
 * Sequences of maps, which converters put behind the scores of a classifier, as the scores themselves.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* Each output of m's graph that a ZipMap makes, and nobody reads, becomes that node's input, under the name of the
 * output: f32[rows, labels]. Returns how many. Nodes are bound where they could be. */
int hn_unzip_maps(HnModel *m);

G_END_DECLS
