/*
 * What a trainer is fed: the types of a batch before there is one, and targets for its losses.
 */
#pragma once

#include "data/data.h"
#include "train/trainer.h"

G_BEGIN_DECLS

/* The values that m is fed, in order: its inputs that are no initializers. HnValue *, borrowed. */
GPtrArray *hn_train_inputs(const HnModel *m);

/* Fixed types of a sample's tensors, NULL at the end: for HnTrainerOptions.in. Errors: USAGE: an input is absent. */
GPtrArray *hn_train_types(const HnSample *s, GError **error);

/* By input of n samples: single integers that are the same in all of them, which decide branches; else NULL. Borrowed
 * from the first; g_free(). */
HnTensor **hn_train_fixed(HnSample *const *samples, guint n);

/* A made-up target, for measuring: class numbers below `classes`, or normal numbers. */
HnTensor *hn_train_random_target(const HnType *type, int64_t classes, uint64_t seed, HnBudget *budget, GError **error);

G_END_DECLS
