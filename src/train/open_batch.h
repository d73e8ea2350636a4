/*
 * Batches of any length for a model whose file says how many samples it takes.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* m, or in its place, where the first axes of its inputs are one number, the same model with any number of samples
 * (pass/free_batch.h), whose weights are m's by name and shape. What mixes samples stays as it is. in: what it will be
 * fed, where it stays as it is if that is what it takes; NULL: anything. Takes m. Of a graph
 * that nobody has prepared. */
HnModel *hn_train_open_batch(HnModel *m, HnType *const *in, HnBudget *budget);

G_END_DECLS
