/*
 * Weights as files may store them: dense, or as indices and values of what is not 0.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* The elements of t whose bytes are not all 0, with indices into the flat tensor. NULL without an error: no element has
 * whole bytes, or a file would get no shorter. Errors: BUDGET. */
HnSparse *hn_sparse_of(const HnTensor *t, HnBudget *budget, GError **error);

gboolean hn_model_has_sparse(const HnModel *m);
/* Each weight of the model, of sub-graphs too, that is shorter so becomes sparse; returns how many do, -1: BUDGET. */
int hn_model_store_sparse(HnModel *m, HnBudget *budget, GError **error);
/* Sparse weights become dense, but for those whose file is a small part of what they would be then: returns how many
 * do; -1: BUDGET, FORMAT. */
int hn_model_store_dense(HnModel *m, HnBudget *budget, GError **error);

G_END_DECLS
