/*
 * HnFactors: which tensors of a model are in other units than those of the model that it was made of. A tool that moves
 * factors of channels from one layer to the next leaves them in the metadata, so that both can be compared tensor by
 * tensor:
 *
 *     hone.units     JSON: [{"tensors": ["a", "b"], "axis": 1, "factors": [2, 0.5, ...]}, ...]
 *
 * Channel i along the axis of these tensors is that of the original divided by factor i.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

#define HN_UNITS "hone.units"

typedef struct HnFactors HnFactors;

/* What the metadata say; what is not well-formed there counts as nothing. */
HnFactors *hn_factors_read(const HnModel *m);
void hn_factors_free(HnFactors *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnFactors, hn_factors_free)

/* factors[n]: positive; times those that the tensor has already. All 1: nothing is noted. */
void hn_factors_add(HnFactors *f, const char *tensor, int axis, const double *factors, int64_t n);
/* Into the metadata, tensors in the order in which they were added; nothing where there are none. */
void hn_factors_write(const HnFactors *f, HnModel *m);

gboolean hn_factors_has(const HnFactors *f, const char *tensor);
/* t in the original's units, or, back, t of the original in this model's; a reference to t where the tensor has no
 * factors. NULL without an error: t is no f32 that the factors fit. Errors: BUDGET. */
HnTensor *hn_factors_apply(const HnFactors *f, const char *tensor, HnTensor *t, gboolean back, HnBudget *budget,
                           GError **error);

G_END_DECLS
