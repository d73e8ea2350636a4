/*
 * A fixed dimension of a model's inputs becomes free, where it counts samples that do not depend on one another.
 *
 * From the inputs on it is followed where each value holds its samples, by the rules of the operators (op/batch.h), and
 * nodes that say something about their number are edited: constant shapes, axes, constants that go beside values of all
 * samples. A node that mixes samples, or of which nothing is known, ends it, and is named: nothing is assumed. A model
 * that comes out computes for n samples what the one before computed for each of them.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct {
    const char *input;
    int axis;
} HnFreeDim;

typedef struct {
    HnModel *model;
    int64_t n0; /* what the dimension was */
    int n_out;
    int *out;      /* per output: the axis of the samples; -1: the same for all of them */
    guint views;   /* that had several places for the samples, and were tried otherwise */
    guint n_apart; /* nodes that run for one sample after the other, each in a Scan */
    char *apart;   /* the first one, "'name' (Loop)"; NULL: there are none */
} HnFreedBatch;

/* m, which is not changed, with those dimensions called `symbol`. Outputs named in `wanted` (ended by a NULL input)
 * have their samples along that axis. Errors: USAGE for what is no dimension, or has several sizes; GUARD naming the
 * node that stands in the way; those of inference; BUDGET. */
gboolean hn_free_batch(const HnModel *m, const HnFreeDim *dims, guint n, const char *symbol, const HnFreeDim *wanted,
                       HnBudget *budget, HnFreedBatch *out, GError **error);
void hn_freed_batch_clear(HnFreedBatch *f);

G_END_DECLS
